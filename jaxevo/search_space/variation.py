"""Variation: random genomes, crossover and the three mutations (paper, section 3.2).

Free functions of a random generator and genomes; each returns a new, valid genome. A cell keeps its
nodes in topological order and a node reads only earlier states, so a node stays valid at its place
in any other cell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from jaxevo.search_space.genome import CELL_KINDS, NUM_INPUTS, OPS, Cell, Genome, Node
from jaxevo.search_space.layouts import cross_layouts

T = TypeVar("T")


def random_cell(rng: np.random.Generator, num_nodes: int) -> Cell:
    """A cell whose nodes read any earlier states through any ops, all equally likely."""
    return Cell(tuple(_random_node(rng, k) for k in range(num_nodes)))


def random_small_genome(rng: np.random.Generator, min_nodes: int, max_nodes: int) -> Genome:
    """An individual of the initial population ("population initialization").

    B is drawn for each cell from [`min_nodes`, `max_nodes` / 2], so that evolution starts small and
    adds nodes; where that range is empty every cell has `min_nodes`.
    """
    most = max(min_nodes, max_nodes // 2)
    normal, reduction = (
        random_cell(rng, int(rng.integers(min_nodes, most + 1))) for _ in CELL_KINDS
    )
    return Genome(normal, reduction)


def random_genome(rng: np.random.Generator, min_nodes: int, max_nodes: int) -> Genome:
    """A random genome with B of each cell anywhere in [`min_nodes`, `max_nodes`]."""
    sizes = rng.integers(min_nodes, max_nodes + 1, len(CELL_KINDS))
    normal, reduction = (random_cell(rng, int(num_nodes)) for num_nodes in sizes)
    return Genome(normal, reduction)


def crossover(
    rng: np.random.Generator, parent_1: Genome, parent_2: Genome, *, bias: float
) -> Genome:
    """Merges two genomes node by node, the normal and the reduction cell separately ("crossover").

    Layouts, where the genomes have them, are merged gene by gene.

    A node with its edges comes from `parent_1` with probability `bias` (tau_cross), else from
    `parent_2`; the longer cell gives the nodes that the other does not have.
    """
    normal = _cross_cells(rng, parent_1.normal, parent_2.normal, bias=bias)
    reduction = _cross_cells(rng, parent_1.reduction, parent_2.reduction, bias=bias)
    layout = parent_1.layout
    if layout is not None and parent_2.layout is not None:
        layout = cross_layouts(rng, layout, parent_2.layout, bias=bias)
    return Genome(normal, reduction, layout)


def _cross_cells(rng: np.random.Generator, cell_1: Cell, cell_2: Cell, *, bias: float) -> Cell:
    pairs = zip(cell_1.nodes, cell_2.nodes, strict=False)
    merged = tuple(node_1 if rng.random() <= bias else node_2 for node_1, node_2 in pairs)
    longer = max(cell_1, cell_2, key=lambda cell: cell.num_nodes)
    return Cell(merged + longer.nodes[len(merged) :])


def mutate(
    rng: np.random.Generator,
    genome: Genome,
    op_prob: float,
    *,
    edge_prob: float,
    add_prob: float,
    max_nodes: int,
) -> tuple[Genome, tuple[str, ...]]:
    """Applies the three mutations in the paper's order ("mutation").

    Returns the genome, and the names of the mutations that changed it.
    """
    after_op = mutate_op(rng, genome, op_prob)
    after_edge = mutate_edge(rng, after_op, edge_prob)
    after_add = add_node(rng, after_edge, add_prob, max_nodes=max_nodes)
    steps = (
        ("op_mutation", genome, after_op),
        ("edge_mutation", after_op, after_edge),
        ("add_node", after_edge, after_add),
    )
    return after_add, tuple(name for name, before, after in steps if after != before)


def mutate_op(rng: np.random.Generator, genome: Genome, prob: float) -> Genome:
    """Gives a random operand of a node another op with probability `prob` (tau_m-op).

    The cell, its node and the operand are drawn uniformly.
    """
    if rng.random() >= prob:
        return genome
    name, k, operand = _random_operand(rng, genome)
    node = genome.cell(name).nodes[k]
    op = _choice(rng, [op for op in OPS if op != node.ops[operand]])
    return _with_node(
        genome, name, k, node=dataclasses.replace(node, ops=_put(node.ops, operand, op))
    )


def mutate_edge(rng: np.random.Generator, genome: Genome, prob: float) -> Genome:
    """Lets a random operand read another state with probability `prob` (tau_m-edge).

    The paper calls this "hidden state mutation".

    States 0 and 1 are the same tensor (section 4.2), so an operand that reads one of them must get
    a hidden state to change at all. A first node has none to read: as the paper draws the node
    uniformly, drawing it changes nothing.
    """
    if rng.random() >= prob:
        return genome
    name, k, operand = _random_operand(rng, genome)
    node = genome.cell(name).nodes[k]
    present = node.inputs[operand]
    others = [s for s in range(k + NUM_INPUTS) if s != present and max(s, present) >= NUM_INPUTS]
    if not others:
        return genome
    inputs = _put(node.inputs, operand, _choice(rng, others))
    return _with_node(genome, name, k, node=dataclasses.replace(node, inputs=inputs))


def add_node(rng: np.random.Generator, genome: Genome, prob: float, *, max_nodes: int) -> Genome:
    """Appends a random node to a random cell with probability `prob` (tau_b).

    A cell that has `max_nodes` already stays as it is.
    """
    if rng.random() >= prob:
        return genome
    name = _choice(rng, CELL_KINDS)
    cell = genome.cell(name)
    if cell.num_nodes >= max_nodes:
        return genome
    return genome.with_cell(name, Cell((*cell.nodes, _random_node(rng, cell.num_nodes))))


def _random_node(rng: np.random.Generator, k: int) -> Node:
    """A node for place `k` of a cell."""
    states = range(k + NUM_INPUTS)
    return Node(
        (_choice(rng, states), _choice(rng, states)), (_choice(rng, OPS), _choice(rng, OPS))
    )


def _random_operand(rng: np.random.Generator, genome: Genome) -> tuple[str, int, int]:
    """Draws an operand: a cell's name, a node's place in it, and which of the node's two operands.

    Each of the three is drawn uniformly.
    """
    name = _choice(rng, CELL_KINDS)
    return name, _choice(rng, range(genome.cell(name).num_nodes)), _choice(rng, range(2))


def _choice(rng: np.random.Generator, items: Sequence[T]) -> T:
    return items[int(rng.integers(len(items)))]


def _put(pair: tuple[T, T], position: int, item: T) -> tuple[T, T]:
    return (item, pair[1]) if position == 0 else (pair[0], item)


def _with_node(genome: Genome, name: str, k: int, *, node: Node) -> Genome:
    nodes = genome.cell(name).nodes
    return genome.with_cell(name, Cell((*nodes[:k], node, *nodes[k + 1 :])))
