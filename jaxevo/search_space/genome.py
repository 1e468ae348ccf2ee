"""The genotype: an architecture as plain data.

A genome is a normal and a reduction cell (paper, section 3.1), and may have a layout: how wide and
how many its cells are, and of which convolutions, which the paper leaves to the settings. A cell is
a list of nodes; a node applies one operation to each of two earlier states and concatenates the
results. States are numbered: 0 and 1 are the cell's inputs, `k + 2` is the output of node `k`.
Nothing here knows how a network is built or trained.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from jaxevo.config import CONV_KINDS, MAX_LAYOUT, MAX_NODES
from jaxevo.search_space.canonical import canonical_cell

NUM_INPUTS = 2  # states 0 and 1 of a cell, which are the same tensor
CELL_KINDS = ("normal", "reduction")
# The genes of a layout: those that each has, then those that it may leave to the settings.
LAYOUT_NUMBERS = ("channels", "num_normal_cells")
LAYOUT_OPTIONS = ("conv_kind", "channel_multiplier")
LAYOUT_FIELDS = LAYOUT_NUMBERS + LAYOUT_OPTIONS


class Op(enum.StrEnum):
    """The operations of the search space (paper, section 3.1)."""

    IDENTITY = "identity"
    CONV_3X3 = "conv_3x3"
    CONV_5X5 = "conv_5x5"
    CONV_7X7 = "conv_7x7"
    MAX_POOL_3X3 = "max_pool_3x3"
    AVG_POOL_3X3 = "avg_pool_3x3"

    @property
    def kernel_size(self) -> int:
        """Side of the convolution's kernel; 0 for operations without one."""
        return {Op.CONV_3X3: 3, Op.CONV_5X5: 5, Op.CONV_7X7: 7}.get(self, 0)


OPS = tuple(Op)


@dataclasses.dataclass(frozen=True)
class Node:
    """A hidden node: `concat(ops[0](state[inputs[0]]), ops[1](state[inputs[1]]))`."""

    inputs: tuple[int, int]
    ops: tuple[Op, Op]

    def __post_init__(self) -> None:
        if len(self.inputs) != 2 or not all(type(i) is int for i in self.inputs):
            raise ValueError(f"inputs must be two state numbers, not {list(self.inputs)!r}")
        if len(self.ops) != 2 or not all(op in OPS for op in self.ops):
            raise ValueError(
                f"ops must be two of {', '.join(OPS)}, not {[str(op) for op in self.ops]}"
            )

    @property
    def operands(self) -> tuple[tuple[int, Op], tuple[int, Op]]:
        """The two `(input state, operation)` pairs."""
        return ((self.inputs[0], self.ops[0]), (self.inputs[1], self.ops[1]))


@dataclasses.dataclass(frozen=True)
class Cell:
    """A directed acyclic graph of hidden nodes in topological order."""

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.nodes) <= MAX_NODES:
            raise ValueError(f"a cell has 1 to {MAX_NODES} nodes, not {len(self.nodes)}")
        for k, node in enumerate(self.nodes):
            for i in node.inputs:
                if not 0 <= i < k + NUM_INPUTS:
                    raise ValueError(
                        f"node {k}: input {i} is not one of the earlier states 0 to {k + 1}"
                    )

    @property
    def num_nodes(self) -> int:
        """B of the paper."""
        return len(self.nodes)

    def numbered_nodes(self) -> Iterator[tuple[int, Node]]:
        """Pairs of a node's state and the node."""
        return enumerate(self.nodes, NUM_INPUTS)

    def unused_states(self) -> tuple[int, ...]:
        """Hidden states that no node reads; concatenated, they are the cell's output."""
        used = {i for node in self.nodes for i in node.inputs}
        return tuple(s for s in range(NUM_INPUTS, self.num_nodes + NUM_INPUTS) if s not in used)

    def depths(self) -> tuple[int, ...]:
        """The longest way from the cell's input to each state; 0 for the inputs."""
        depths = [0] * NUM_INPUTS
        for node in self.nodes:
            depths.append(1 + max(depths[i] for i in node.inputs))
        return tuple(depths)


@dataclasses.dataclass(frozen=True)
class Layout:
    """How the cells of a genome are stacked, where that is its own and not the search's.

    Attributes:
        channels: Feature maps of an operation in the first cells (D).
        num_normal_cells: Groups of normal cells, with a reduction cell between two groups (N).
        conv_kind: One of `config.CONV_KINDS`; None: as the settings of networks say.
        channel_multiplier: Factor on the feature maps after a reduction cell (K); None: likewise.
    """

    channels: int
    num_normal_cells: int
    conv_kind: str | None = None
    channel_multiplier: int | None = None

    def __post_init__(self) -> None:
        for name, most in MAX_LAYOUT.items():
            value = getattr(self, name)
            if value is None and name in LAYOUT_OPTIONS:
                continue
            if type(value) is not int or not 1 <= value <= most:
                raise ValueError(f"{name} is a whole number from 1 to {most}, not {value!r}")
        if self.conv_kind is not None and self.conv_kind not in CONV_KINDS:
            raise ValueError(f"conv_kind is one of {', '.join(CONV_KINDS)}, not {self.conv_kind!r}")

    def genes(self) -> dict[str, Any]:
        """The settings of networks that it decides, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def describe(self) -> str:
        """The layout in words."""
        words = [f"{self.channels} channels", f"{self.num_normal_cells} normal cells"]
        if self.conv_kind is not None:
            words.append(f"{self.conv_kind} convolutions")
        if self.channel_multiplier is not None:
            words.append(f"width x{self.channel_multiplier} after a reduction cell")
        return ", ".join(words)


@dataclasses.dataclass(frozen=True)
class Genome:
    """The pair of cells from which a whole network is stacked.

    Without a layout of its own it is stacked as the settings of networks say.
    """

    normal: Cell
    reduction: Cell
    layout: Layout | None = None

    def canonical_key(self) -> str:
        """A text that two genomes share exactly if they are isomorphic.

        The order of a node's operands, the order of nodes where the graph allows another, and which
        of the two equal inputs is read make no difference: such genomes describe the same network
        up to the order of its channels.
        """
        return self._canonical_key

    @functools.cached_property
    def _canonical_key(self) -> str:
        keys = [canonical_cell(cell) for cell in self.cells]
        if self.layout is not None:
            # A kind of convolutions and a factor, if it has them, follow: "8x3 full *1".
            own = self.layout
            factor = f"*{own.channel_multiplier}" if own.channel_multiplier else None
            words = (f"{own.channels}x{own.num_normal_cells}", own.conv_kind, factor)
            keys.append(" ".join(filter(None, words)))
        return " / ".join(keys)

    @property
    def cells(self) -> tuple[Cell, Cell]:
        """The normal and the reduction cell, in the order of `CELL_KINDS`."""
        return self.normal, self.reduction

    def cell(self, kind: str) -> Cell:
        """The cell of a kind, "normal" or "reduction"."""
        return self.cells[CELL_KINDS.index(kind)]

    def with_cell(self, kind: str, cell: Cell) -> Genome:
        """A genome with another cell of this kind."""
        return dataclasses.replace(self, **{kind: cell})

    def to_dict(self) -> dict[str, Any]:
        """Plain lists and dicts, the part `genome` of a genome file (`genome_files.dumps`).

        A layout is there only if the genome has one.
        """
        cells = {
            kind: [{"inputs": list(n.inputs), "ops": [str(op) for op in n.ops]} for n in cell.nodes]
            for kind, cell in zip(CELL_KINDS, self.cells, strict=True)
        }
        return cells | ({} if self.layout is None else {"layout": self.layout.genes()})

    @classmethod
    def from_dict(cls, data: Any) -> Genome:
        """The reverse of `to_dict`. Raises `ValueError` naming the field at fault."""
        expect_keys(data, "genome", CELL_KINDS, optional=("layout",))
        normal, reduction = (_parse_cell(data[kind], kind) for kind in CELL_KINDS)
        return cls(normal, reduction, _parse_layout(data["layout"]) if "layout" in data else None)


def expect_keys(
    data: Any, where: str, required: Iterable[str], *, optional: Iterable[str] = ()
) -> None:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected an object, found {type(data).__name__}")
    required, allowed = set(required), {*required, *optional}
    if unknown := sorted(set(data) - allowed):
        names = ", ".join(map(repr, unknown))
        raise ValueError(f"{where}: unknown key {names}; allowed are {', '.join(sorted(allowed))}")
    if missing := sorted(required - set(data)):
        raise ValueError(f"{where}: missing key {', '.join(map(repr, missing))}")


def _parse_cell(data: Any, where: str) -> Cell:
    if not isinstance(data, list):
        raise ValueError(f"{where}: expected a list of nodes, found {type(data).__name__}")
    if len(data) > MAX_NODES:
        raise ValueError(f"{where}: a cell has 1 to {MAX_NODES} nodes, not {len(data)}")
    nodes = []
    for k, item in enumerate(data):
        expect_keys(item, f"{where} node {k}", ("inputs", "ops"))
        if not isinstance(item["inputs"], list) or not isinstance(item["ops"], list):
            raise ValueError(f"{where} node {k}: inputs and ops must be lists of two")
        try:
            ops = tuple(Op(op) if op in OPS else op for op in item["ops"])
            nodes.append(Node(tuple(item["inputs"]), ops))  # type: ignore[arg-type]
        except ValueError as error:
            raise ValueError(f"{where} node {k}: {error}") from None
    try:
        return Cell(tuple(nodes))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _parse_layout(data: Any) -> Layout:
    expect_keys(data, "layout", LAYOUT_NUMBERS, optional=LAYOUT_OPTIONS)
    try:
        return Layout(**data)
    except ValueError as error:
        raise ValueError(f"layout: {error}") from None
