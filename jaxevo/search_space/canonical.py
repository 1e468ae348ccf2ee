"""Isomorphic cells: a text that two cells share exactly if they describe the same graph.

The order of a node's operands, the order of nodes where the graph allows another, and which of the
two equal inputs is read make no difference.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Protocol


class Graph(Protocol):
    """What is used of a cell: its nodes, each with `inputs` and `operands`, by their states."""

    @property
    def num_nodes(self) -> int: ...

    def numbered_nodes(self) -> Iterator[tuple[int, Any]]: ...


@functools.lru_cache(maxsize=4096)
def canonical_cell(cell: Graph) -> str:
    """The smallest listing of a cell over all its topological orders.

    In such a listing a node comes soon after the states that it reads. Listings grow node by node;
    of all partial listings only the smallest are kept. So ties (nodes that look alike so far) are
    the only branching, and of partial listings that can go on in the same ways one is kept.

    Two nodes that both read the input by a 3x3 convolution and the identity are a tie: either may
    be the first, and both partial listings are kept if other nodes read the two differently.
    """
    # State -> its number in the listing; the inputs are alike.
    labels: list[dict[int, int]] = [{0: 0, 1: 0}]
    listing: list[tuple[tuple[int, str], ...]] = []
    for position in range(1, cell.num_nodes + 1):
        best: tuple[tuple[int, str], ...] | None = None
        chosen: dict[tuple, dict[int, int]] = {}
        for label in labels:
            for state, node in cell.numbered_nodes():
                if state in label or not all(i in label for i in node.inputs):
                    continue
                # Numbers count downwards: readers of the latest states come first and soon tell
                # like nodes apart.
                code = tuple(sorted((-label[i], str(op)) for i, op in node.operands))
                if best is None or code < best:
                    best = code
                    chosen = {}
                if code == best:
                    extended = label | {state: position}
                    chosen.setdefault(_open_part(cell, extended), extended)
        assert best is not None  # a cell is acyclic, so some node is always ready
        listing.append(best)
        labels = list(chosen.values())
    return " ".join("+".join(f"{-i}.{op}" for i, op in code) for code in listing)


def _open_part(cell: Graph, label: Mapping[int, int]) -> tuple:
    """Key of the ways in which a partial listing can go on.

    Contains the nodes still to come, and the numbers of the states that these nodes read.
    """
    rest = [(state, node) for state, node in cell.numbered_nodes() if state not in label]
    read = {i for _, node in rest for i in node.inputs}
    return tuple(state for state, _ in rest), tuple(label.get(i) for i in sorted(read))
