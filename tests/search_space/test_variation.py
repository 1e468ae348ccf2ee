"""Variation: always valid, at the paper's rates, and changing exactly what it says."""

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from jaxevo.search_space.genome import CELL_KINDS, OPS, Cell, Genome, Node, Op
from jaxevo.search_space.variation import (
    add_node,
    crossover,
    mutate,
    mutate_edge,
    mutate_op,
    random_cell,
    random_small_genome,
)

NUM_DRAWS = 4000


def assert_rate(count: int, draws: int, rate: float) -> None:
    """A count in the two-sided 99.99 % interval of its binomial."""
    low, high = binom.interval(0.9999, draws, rate)
    assert low <= count <= high, f"{count} of {draws} at a rate of {rate}: expected {low} to {high}"


def changed_operands(
    before: Genome, after: Genome
) -> list[tuple[str, int, int, tuple[int, Op], tuple[int, Op]]]:
    """`(cell, node, operand, old, new)` of each operand that differs; genomes of equal sizes."""
    changes = []
    for name in CELL_KINDS:
        pairs = zip(before.cell(name).nodes, after.cell(name).nodes, strict=True)
        for k, (old, new) in enumerate(pairs):
            operands = zip(old.operands, new.operands, strict=True)
            changes += [(name, k, index, a, b) for index, (a, b) in enumerate(operands) if a != b]
    return changes


def fixed_genome(rng: np.random.Generator, num_nodes: int) -> Genome:
    return random_small_genome(rng, num_nodes, num_nodes)


class ScriptedRandom:
    """A generator whose `random()` gives the numbers of a script; all must be used."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self) -> float:
        return self.numbers.pop(0)


def numbered_cell(first_state: int, num_nodes: int) -> Cell:
    """Nodes that can be told apart by their ops: op number `k` in one operand, `first_state` in the
    other's input.
    """
    return Cell(tuple(Node((first_state, 0), (OPS[k], OPS[k])) for k in range(num_nodes)))


def test_random_cells_are_uniform():
    rng = np.random.default_rng(0)
    cells = [random_cell(rng, 3) for _ in range(NUM_DRAWS)]
    for k, operand in itertools.product(range(3), range(2)):
        inputs = Counter(cell.nodes[k].inputs[operand] for cell in cells)
        ops = Counter(cell.nodes[k].ops[operand] for cell in cells)
        assert set(inputs) == set(range(k + 2))
        assert set(ops) == set(OPS)
        for count in inputs.values():
            assert_rate(count, NUM_DRAWS, 1 / (k + 2))
        for count in ops.values():
            assert_rate(count, NUM_DRAWS, 1 / len(OPS))


@pytest.mark.parametrize(
    ("min_nodes", "max_nodes", "sizes"),
    [
        (2, 6, {2, 3}),
        (2, 9, {2, 3, 4}),
        (5, 5, {5}),
        (4, 6, {4}),
        (1, 12, {1, 2, 3, 4, 5, 6}),
        (1, 1, {1}),
    ],
)
def test_random_genomes_start_small(min_nodes: int, max_nodes: int, sizes: set[int]):
    rng = np.random.default_rng(1)
    genomes = [random_small_genome(rng, min_nodes, max_nodes) for _ in range(500)]
    for pair in itertools.product(sizes, repeat=2):  # drawn for each cell
        count = sum((g.normal.num_nodes, g.reduction.num_nodes) == pair for g in genomes)
        assert_rate(count, len(genomes), 1 / len(sizes) ** 2)


def test_variation_gives_valid_genomes():
    # A genome checks itself when it is made, so what is left to see is its size and the names of
    # what was done.
    rng = np.random.default_rng(2)
    names = ("op_mutation", "edge_mutation", "add_node")
    for _ in range(1000):
        parents = random_small_genome(rng, 1, 12), random_small_genome(rng, 2, 6)
        child = crossover(rng, *parents, bias=0.6)
        mutant, operators = mutate(rng, child, 0.5, edge_prob=0.5, add_prob=0.5, max_nodes=6)
        for name in CELL_KINDS:
            sizes = [g.cell(name).num_nodes for g in (*parents, child, mutant)]
            assert sizes[2] == max(sizes[:2])
            assert sizes[3] in (sizes[2], sizes[2] + 1)
            assert sizes[3] <= 6
        assert operators == tuple(name for name in names if name in operators)
        assert bool(operators) == (mutant != child)
        assert Genome.from_dict(mutant.to_dict()) == mutant


# Nodes of parent 1 read state 0, those of parent 2 state 1. A draw up to 0.6 takes the node of
# parent 1.
@pytest.mark.parametrize(
    ("sizes_1", "sizes_2", "draws", "normal", "reduction"),
    [
        ((2, 2), (2, 2), (0.0, 0.99, 0.61, 0.59), (0, 1), (1, 0)),
        ((2, 3), (4, 1), (0.6, 0.601, 0.99), (0, 1, 1, 1), (1, 0, 0)),
        ((4, 1), (2, 3), (0.9, 0.1, 0.1), (1, 0, 0, 0), (0, 1, 1)),
        ((1, 1), (1, 1), (0.7, 0.7), (1,), (1,)),
    ],
)
def test_crossover_by_hand(sizes_1, sizes_2, draws, normal, reduction):
    parent_1 = Genome(*(numbered_cell(0, size) for size in sizes_1))
    parent_2 = Genome(*(numbered_cell(1, size) for size in sizes_2))
    rng: Any = ScriptedRandom(*draws)
    child = crossover(rng, parent_1, parent_2, bias=0.6)
    for cell, origins in ((child.normal, normal), (child.reduction, reduction)):
        assert tuple(n.inputs[0] for n in cell.nodes) == origins
        assert tuple(n.ops[0] for n in cell.nodes) == OPS[: len(origins)]
    assert not rng.numbers


def test_crossover_takes_nodes_at_its_bias():
    rng = np.random.default_rng(3)
    parent_1 = Genome(numbered_cell(0, 4), numbered_cell(0, 4))
    parent_2 = Genome(numbered_cell(1, 4), numbered_cell(1, 4))
    children = [crossover(rng, parent_1, parent_2, bias=0.6) for _ in range(NUM_DRAWS)]
    for name, k in itertools.product(CELL_KINDS, range(4)):
        assert_rate(sum(c.cell(name).nodes[k].inputs[0] == 0 for c in children), NUM_DRAWS, 0.6)


def test_op_mutation_changes_one_op_at_its_rate():
    rng = np.random.default_rng(4)
    places, ops = Counter(), Counter()
    for _ in range(NUM_DRAWS):
        genome = fixed_genome(rng, 3)
        changes = changed_operands(genome, mutate_op(rng, genome, prob=0.4))
        assert len(changes) <= 1
        for name, k, operand, (old_input, old_op), (new_input, new_op) in changes:
            assert old_input == new_input
            assert old_op != new_op
            places[name, k, operand] += 1
            ops[(OPS.index(new_op) - OPS.index(old_op)) % len(OPS)] += 1
    total = places.total()
    assert_rate(total, NUM_DRAWS, 0.4)
    assert len(places) == 12
    assert set(ops) == {1, 2, 3, 4, 5}
    for count in places.values():
        assert_rate(count, total, 1 / 12)
    for count in ops.values():
        assert_rate(count, total, 1 / 5)


def test_edge_mutation_changes_one_input_at_its_rate():
    rng = np.random.default_rng(5)
    places = Counter()
    for _ in range(NUM_DRAWS):
        genome = fixed_genome(rng, 4)
        changes = changed_operands(genome, mutate_edge(rng, genome, prob=0.4))
        assert len(changes) <= 1
        for name, k, operand, (old_input, old_op), (new_input, new_op) in changes:
            assert old_op == new_op
            assert old_input != new_input
            assert max(old_input, new_input) >= 2  # inputs 0 and 1 are the same tensor
            assert new_input < k + 2
            places[name, k, operand] += 1
    assert_rate(places.total(), NUM_DRAWS, 0.4 * 3 / 4)  # a first node has no other state to read
    assert len(places) == 12
    for count in places.values():
        assert_rate(count, NUM_DRAWS, 0.4 / 16)


def test_edge_mutation_reaches_every_other_state():
    rng = np.random.default_rng(6)
    last = Node((0, 3), (OPS[0], OPS[0]))
    cell = Cell((Node((0, 1), (OPS[0], OPS[0])), Node((0, 1), (OPS[0], OPS[0])), last))
    genome = Genome(cell, cell)
    changes = [
        c for _ in range(1000) for c in changed_operands(genome, mutate_edge(rng, genome, prob=1.0))
    ]
    reached = {(operand, new[0]) for _, k, operand, _, new in changes if k == 2}
    assert reached == {(0, 2), (0, 3), (1, 0), (1, 1), (1, 2)}


def test_edge_mutation_changes_nothing_in_single_nodes():
    rng = np.random.default_rng(7)
    for _ in range(100):
        genome = fixed_genome(rng, 1)
        assert mutate_edge(rng, genome, prob=1.0) == genome
        assert (
            "edge_mutation"
            not in mutate(rng, genome, 1.0, edge_prob=1.0, add_prob=0.0, max_nodes=6)[1]
        )


def test_add_node_appends_at_its_rate():
    rng = np.random.default_rng(8)
    grown = Counter()
    for _ in range(NUM_DRAWS):
        genome = fixed_genome(rng, 3)
        after = add_node(rng, genome, prob=0.2, max_nodes=6)
        for name in CELL_KINDS:
            before_nodes, after_nodes = genome.cell(name).nodes, after.cell(name).nodes
            assert after_nodes[:3] == before_nodes
            grown[name] += len(after_nodes) - 3
    assert_rate(grown.total(), NUM_DRAWS, 0.2)
    assert_rate(grown["normal"], NUM_DRAWS, 0.1)


def test_add_node_respects_the_maximum():
    rng = np.random.default_rng(9)
    full, small = random_cell(rng, 6), random_cell(rng, 2)
    added = 0
    for _ in range(NUM_DRAWS):
        assert add_node(rng, Genome(full, full), prob=1.0, max_nodes=6) == Genome(full, full)
        after = add_node(rng, Genome(full, small), prob=0.5, max_nodes=6)
        assert after.normal == full
        added += after.reduction.num_nodes - small.num_nodes
    assert_rate(added, NUM_DRAWS, 0.25)  # the cell is drawn first, and a full one is left as it is


def test_mutate_applies_all_three_independently():
    rng = np.random.default_rng(10)
    counts = Counter()
    for _ in range(NUM_DRAWS):
        counts[
            mutate(rng, fixed_genome(rng, 4), 0.4, edge_prob=0.4, add_prob=0.2, max_nodes=6)[1]
        ] += 1
    rates = {"op_mutation": 0.4, "edge_mutation": 0.3, "add_node": 0.2}
    for applied in itertools.product((False, True), repeat=3):
        names = tuple(name for name, yes in zip(rates, applied, strict=True) if yes)
        rate = np.prod(
            [rate if yes else 1 - rate for rate, yes in zip(rates.values(), applied, strict=True)]
        )
        assert_rate(counts[names], NUM_DRAWS, float(rate))


def test_mutation_rates_of_zero_and_one():
    rng = np.random.default_rng(11)
    for _ in range(200):
        genome = fixed_genome(rng, 3)
        assert mutate(rng, genome, 0.0, edge_prob=0.0, add_prob=0.0, max_nodes=6) == (genome, ())
        assert set(mutate(rng, genome, 1.0, edge_prob=1.0, add_prob=1.0, max_nodes=6)[1]) >= {
            "op_mutation",
            "add_node",
        }


def test_operators_leave_their_arguments_alone_and_repeat_with_the_generator():
    for seed in range(50):
        rng = np.random.default_rng(seed)
        genome, other = fixed_genome(rng, 3), fixed_genome(rng, 4)
        before = (genome.to_dict(), other.to_dict())
        results = []
        for _ in range(2):
            again = np.random.default_rng([seed, 1])
            child = crossover(again, genome, other, bias=0.6)
            results.append(mutate(again, child, 0.4, edge_prob=0.4, add_prob=0.2, max_nodes=6))
        assert results[0] == results[1]
        assert (genome.to_dict(), other.to_dict()) == before
