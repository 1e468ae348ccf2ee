"""A genome as integers: the input of the universal network.

Letter: `B` is B_max, the most nodes of a cell.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from jaxevo.search_space.genome import NUM_INPUTS, OPS, Cell, Genome


class EncodedCell(NamedTuple):
    """A cell as integers; entries beyond its last node are zero."""

    num_nodes: jax.Array  # int32 []
    # int32 [B, 2], row of the state that an operand reads: 0 is the input, k + 1 is node k.
    states: jax.Array
    ops: jax.Array  # int32 [B, 2], position in OPS
    unused: jax.Array  # bool [B], whether the node is part of the cell's output


class EncodedGenome(NamedTuple):
    """Both cells of a genome as integers."""

    normal: EncodedCell
    reduction: EncodedCell


def encode(genome: Genome, max_nodes: int) -> EncodedGenome:
    """The genome as the universal network's input.

    Raises `ValueError` for a cell of more than `max_nodes` nodes.
    """
    normal, reduction = (_encode_cell(cell, max_nodes) for cell in genome.cells)
    return EncodedGenome(normal, reduction)


def _encode_cell(cell: Cell, max_nodes: int) -> EncodedCell:
    if cell.num_nodes > max_nodes:
        raise ValueError(
            f"a cell of {cell.num_nodes} nodes does not fit a network for at most {max_nodes}"
        )
    states, operations = np.zeros((2, max_nodes, 2), np.int32)
    for k, node in enumerate(cell.nodes):
        states[k] = [max(i - NUM_INPUTS + 1, 0) for i in node.inputs]
        operations[k] = [OPS.index(op) for op in node.ops]
    unused = np.isin(np.arange(max_nodes) + NUM_INPUTS, cell.unused_states())
    return EncodedCell(np.int32(cell.num_nodes), states, operations, unused)  # type: ignore[arg-type]
