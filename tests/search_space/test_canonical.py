"""The canonical key against brute force, on symmetric cells, and on large ones."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

from jaxevo.config import MAX_NODES
from jaxevo.search_space.genome import OPS, Cell, Genome, Node, Op
from jaxevo.search_space.variation import random_cell

CONV_3X3, CONV_5X5, IDENTITY = Op.CONV_3X3, Op.CONV_5X5, Op.IDENTITY


def node(i: int, j: int, op_1: Op = CONV_3X3, op_2: Op = CONV_3X3) -> Node:
    return Node((i, j), (op_1, op_2))


def brute_force_form(cell: Cell) -> tuple:
    """The smallest listing over all numberings of the nodes: two cells share it exactly if they are
    isomorphic.
    """
    forms = []
    for numbers in itertools.permutations(range(1, cell.num_nodes + 1)):
        label = (0, 0, *numbers)
        listing = [()] * cell.num_nodes
        for k, n in enumerate(cell.nodes):
            listing[numbers[k] - 1] = tuple(sorted((label[i], str(op)) for i, op in n.operands))
        forms.append(tuple(listing))
    return min(forms)


def isomorphic_copy(rng: np.random.Generator, cell: Cell) -> Cell:
    """The nodes in another topological order, operands swapped and the two inputs exchanged at
    random.
    """
    label, nodes = {0: 0, 1: 1}, []
    while len(nodes) < cell.num_nodes:
        ready = [
            s
            for s, n in enumerate(cell.nodes, 2)
            if s not in label and all(i in label for i in n.inputs)
        ]
        state = ready[rng.integers(len(ready))]
        operands = [
            (label[i] if i > 1 else int(rng.integers(2)), op)
            for i, op in cell.nodes[state - 2].operands
        ]
        rng.shuffle(operands)  # type: ignore[arg-type]
        nodes.append(
            Node(
                (int(operands[0][0]), int(operands[1][0])), (Op(operands[0][1]), Op(operands[1][1]))
            )
        )
        label[state] = len(nodes) + 1
    return Cell(tuple(nodes))


def key(cell: Cell) -> str:
    return Genome(cell, cell).canonical_key()


def assert_keys_mean_isomorphism(cells: list[Cell]) -> int:
    """Equal keys exactly where brute force finds isomorphism; returns the number of classes."""
    pairs = {(key(cell), brute_force_form(cell)) for cell in cells}
    assert len(pairs) == len({k for k, _ in pairs}) == len({form for _, form in pairs})
    return len(pairs)


def all_cells(num_nodes: int, ops: tuple[Op, ...]) -> list[Cell]:
    places = [
        [
            node(i, j, a, b)
            for i, j in itertools.product(range(k + 2), repeat=2)
            for a, b in itertools.product(ops, ops)
        ]
        for k in range(num_nodes)
    ]
    return [Cell(nodes) for nodes in itertools.product(*places)]


def test_canonical_key_of_every_small_cell():
    # Of n ops there are p = n(n+1)/2 pairs, and as many nodes that read inputs only. A second node
    # is another such (p(p+1)/2 cells), reads the first once (n*n for each first), or twice (p for
    # each first).
    assert assert_keys_mean_isomorphism(all_cells(1, (CONV_3X3, IDENTITY))) == 3
    assert assert_keys_mean_isomorphism(all_cells(2, (CONV_3X3, IDENTITY))) == 6 + 3 * 4 + 3 * 3
    assert (
        assert_keys_mean_isomorphism(all_cells(2, (CONV_3X3, CONV_5X5, IDENTITY)))
        == 21 + 6 * 9 + 6 * 6
    )


@pytest.mark.parametrize("num_ops", [1, 2, 6])
def test_canonical_key_of_random_cells(num_ops: int):
    rng = np.random.default_rng(num_ops)
    cells = []
    for index in range(200):
        drawn = random_cell(rng, 2 + index % 4)
        cell = Cell(
            tuple(
                node(*n.inputs, *(OPS[OPS.index(op) % num_ops] for op in n.ops))
                for n in drawn.nodes
            )
        )
        cells += [cell, isomorphic_copy(rng, cell)]
    assert assert_keys_mean_isomorphism(cells) <= 200


# of functions, for ten cells: some seconds at most; without pruning there would be billions
MAX_CALLS = 10_000_000
ADVERSARIAL = {
    "all equal": Cell((node(0, 1),) * 12),
    "six pairs": Cell((node(0, 1),) * 6 + tuple(node(i, i) for i in range(2, 8))),
    "four joins of two": Cell(
        (node(0, 1),) * 8 + tuple(node(i, i + 1, CONV_3X3, CONV_5X5) for i in range(2, 10, 2))
    ),
    "three joins and three left": Cell(
        (node(0, 1),) * 9 + tuple(node(i, i + 1, CONV_3X3, CONV_5X5) for i in range(2, 8, 2))
    ),
    "a ring": Cell((node(0, 1),) * 6 + tuple(node(2 + i, 2 + (i + 1) % 6) for i in range(6))),
    "two rings": Cell(
        (node(0, 1),) * 6
        + tuple(node(2 + 3 * r + i, 2 + 3 * r + (i + 1) % 3) for r in range(2) for i in range(3))
    ),
    "four chains": Cell((node(0, 1),) * 4 + tuple(node(i, i) for i in range(2, 10))),
    "a tree": Cell(
        (node(0, 1),) * 6 + tuple(node(2 * i + 2, 2 * i + 3) for i in range(5)) + (node(12, 12),)
    ),
}


@pytest.mark.parametrize("shape", ADVERSARIAL)
def test_canonical_key_is_quick_for_symmetric_cells(shape: str):
    rng = np.random.default_rng(0)
    cells = [isomorphic_copy(rng, ADVERSARIAL[shape]) for _ in range(10)]
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        copies = {key(cell) for cell in cells}
    finally:
        sys.setprofile(before)
    assert len(copies) == 1
    assert calls < MAX_CALLS


def test_canonical_key_tells_symmetric_cells_apart():
    assert len({key(cell) for cell in ADVERSARIAL.values()}) == len(ADVERSARIAL)


def test_canonical_key_of_large_cells_survives_renumbering():
    rng = np.random.default_rng(1)
    for _ in range(100):
        cell = random_cell(rng, MAX_NODES)
        assert key(cell) == key(isomorphic_copy(rng, cell))


def test_canonical_key_tells_normal_from_reduction():
    one, two = Cell((node(0, 1),)), Cell((node(0, 0, IDENTITY),))
    assert Genome(one, two).canonical_key() != Genome(two, one).canonical_key()
