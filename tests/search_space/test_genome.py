"""Genomes: what is refused, unused states, depths, cells by kind."""

from __future__ import annotations

import pytest

from jaxevo.search_space.genome import OPS, Cell, Genome, Node, Op

CONV_3X3, CONV_5X5, IDENTITY = Op.CONV_3X3, Op.CONV_5X5, Op.IDENTITY


def node(i: int, j: int, op_1: Op = CONV_3X3, op_2: Op = CONV_3X3) -> Node:
    return Node((i, j), (op_1, op_2))


def test_unused_states_are_those_that_no_node_reads():
    cell = Cell((node(0, 1), node(0, 2), node(1, 1), node(3, 3)))
    assert cell.unused_states() == (4, 5)
    assert cell.num_nodes == 4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        # type: ignore[arg-type]
        (lambda: Node((0,), (CONV_3X3, CONV_3X3)), ["inputs", "two state numbers", "[0]"]),
        (lambda: Node((0, True), (CONV_3X3, CONV_3X3)), ["inputs", "True"]),
        (lambda: Node((0, 1.0), (CONV_3X3, CONV_3X3)), ["inputs", "1.0"]),  # type: ignore[arg-type]
        # type: ignore[arg-type]
        (lambda: Node((0, 1), (CONV_3X3, "conv_9x9")), ["ops", "conv_9x9", *OPS]),
        (lambda: Node((0, 1), ()), ["ops", "[]", *OPS]),  # type: ignore[arg-type]
        (lambda: Cell(()), ["1 to 12 nodes", "not 0"]),
        (lambda: Cell((node(0, 1),) * 13), ["1 to 12 nodes", "not 13"]),
        (lambda: Cell((node(0, 1), node(0, 3))), ["node 1", "input 3", "0 to 2"]),
        (lambda: Cell((node(-1, 1),)), ["node 0", "input -1", "0 to 1"]),
    ],
)
def test_an_impossible_genome_is_refused_in_words(make, words: list[str]):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), error.value


def test_depths_are_the_longest_ways_from_the_input():
    cell = Cell((node(0, 1), node(0, 2), node(1, 1), node(3, 4)))
    assert cell.depths() == (0, 0, 1, 2, 1, 3)
    first = (node(0, 1, IDENTITY, IDENTITY), node(2, 0, IDENTITY, IDENTITY))
    assert Cell((*first, node(1, 1, IDENTITY, IDENTITY))).depths() == (0, 0, 1, 2, 1)


def test_cells_by_kind():
    one, two = Cell((node(0, 1),)), Cell((node(0, 0, IDENTITY),))
    genome = Genome(one, two)
    assert genome.cells == (genome.cell("normal"), genome.cell("reduction")) == (one, two)
    assert genome.with_cell("reduction", one) == Genome(one, one)
    assert genome.with_cell("normal", two) == Genome(two, two)
    with pytest.raises(ValueError):
        genome.cell("output")
