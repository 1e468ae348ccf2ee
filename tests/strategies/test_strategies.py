"""Every strategy on scripted fitness, exact resume of each, and whether they find what is known to be there."""

import dataclasses
import json
import math
import runpy
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import REPOSITORY
from scipy.stats import binomtest, wilcoxon

from jaxevo.config import ColonyConfig, EvolutionConfig, SearchConfig, replace
from jaxevo.search_space.genome import OPS, Genome
from jaxevo.search_space.variation import CELLS, random_cell
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony, choices
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.individual import Individual, rank
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.registry import make_strategy
from jaxevo.strategies.regularized import RegularizedEvolution

Fitness = Callable[[Individual], float | None]

SMALL = {
    **{"population_size": 4, "num_offspring": 3, "num_generations": 8, "max_nodes": 4, "num_ants": 5},
    **{"stagnation_start": 2, "stagnation_patience": 2},
}
KINDS = {"rea": RegularizedEvolution, "aging": AgingEvolution, "random": RandomSearch, "aco": AntColony}
VARIANTS: list[dict[str, Any]] = [
    *({"strategy": name} for name in KINDS),
    {"strategy": "aging", "mating_pool": "survivors"},
    {"strategy": "rea", "crossover": False},
    {"strategy": "rea", "stagnation_avoidance": False},
]


def make(seed: int = 0, **settings: Any) -> Strategy:
    return make_strategy(replace(SearchConfig(), SMALL | settings | {"seed": seed}))


def table_fitness(individual: Individual) -> float | None:
    """A coarse hash of the genome, so that ties are common; one in seven fails."""
    value = zlib.crc32(individual.genome.canonical_key().encode())
    return (None, math.nan, math.inf)[value % 3] if value % 7 == 0 else value % 101 / 100


def step(strategy: Strategy, fitness: Fitness, position: int = 0) -> Individual:
    candidate = strategy.ask()[position]
    told = dataclasses.replace(candidate, fitness=fitness(candidate))
    strategy.tell(told)
    return told


def run(strategy: Strategy, fitness: Fitness, order: np.random.Generator | None = None) -> list[Individual]:
    """Runs to the end and returns all that was told; `order` picks the next of the candidates, else it is the first."""
    history = []
    while candidates := strategy.ask():
        history.append(step(strategy, fitness, int(order.integers(len(candidates))) if order else 0))
    return history


def ids(individuals) -> list[int]:
    return [individual.id for individual in individuals]


def sizes(genome: Genome) -> tuple[int, int]:
    return genome.normal.num_nodes, genome.reduction.num_nodes


@pytest.mark.parametrize("name", KINDS)
def test_strategies_by_name(name: str):
    strategy = make(strategy=name, seed=7)
    assert type(strategy) is KINDS[name]
    assert strategy.best is None and not strategy.done
    assert str(run(strategy, table_fitness)) == str(run(make(strategy=name, seed=7), table_fitness))
    assert str(run(make(strategy=name, seed=8), table_fitness)) != str(run(make(strategy=name, seed=7), table_fitness))


@pytest.mark.parametrize("settings", VARIANTS)
def test_all_have_the_same_budget_and_replace_what_fails(settings: dict[str, Any]):
    strategy = make(**settings, num_generations=6, stagnation_start=99)
    history = run(strategy, lambda individual: None if individual.id in (0, 2, 7, 11, 12, 21) else 0.5)
    valid = [individual for individual in history if individual.fitness is not None]
    assert len(valid) == 4 + 3 * 6 and ids(history) == [*range(len(valid) + 6)]
    assert strategy.done and strategy.ask() == [] and strategy.generation == strategy.num_generations + 1
    assert not {parent for individual in history for parent in individual.parents} & {0, 2, 7, 11, 12, 21}
    with pytest.raises(ValueError, match="individual 3 is not waiting"):
        strategy.tell(history[3])


@pytest.mark.parametrize("settings", VARIANTS)
def test_the_order_of_telling_makes_no_difference(settings: dict[str, Any]):
    expected = run(strategy := make(**settings, seed=2), table_fitness)
    for k in range(3):
        history = run(other := make(**settings, seed=2), table_fitness, np.random.default_rng(k))
        assert str(sorted(history, key=lambda i: i.id)) == str(sorted(expected, key=lambda i: i.id))
        assert other.state_dict() == strategy.state_dict()


@pytest.mark.parametrize("settings", VARIANTS)
def test_resume_at_every_step_gives_the_same_run(settings: dict[str, Any]):
    expected = run(whole := make(**settings, seed=3), table_fitness)
    strategy, history = make(**settings, seed=3), []
    for number in range(len(expected) + 1):
        for save_pending in (False, True):  # before and after candidates are drawn
            if save_pending:
                assert strategy.ask() == strategy.ask()
            resumed = make(**settings, seed=3)
            resumed.load_state_dict(json.loads(json.dumps(strategy.state_dict(), allow_nan=False)))
            assert str(history + run(resumed, table_fitness)) == str(expected)
            assert resumed.state_dict() == whole.state_dict()
        if number < len(expected):
            history.append(step(strategy, table_fitness))
    with pytest.raises(ValueError, match="seed 3.*seed 4"):
        make(**settings, seed=4).load_state_dict(whole.state_dict())


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_recorded_run_is_replayed_without_drawing(settings: dict[str, Any]):
    strategy, replayed = make(**settings, seed=3), make(**settings, seed=99)
    while strategy.ask():
        replayed.replay(step(strategy, table_fitness))
        for name in ("population", "best", "events", "generation", "done"):
            assert getattr(replayed, name) == getattr(strategy, name)
    large = Individual(99, Genome(*(random_cell(np.random.default_rng(0), 5),) * 2), 0, fitness=0.5)
    with pytest.raises(ValueError, match="a cell of 5 nodes, while max_nodes is 4"):
        make(**settings).replay(large)


@pytest.mark.parametrize("name", KINDS)
def test_a_fixed_number_of_nodes_is_kept(name: str):
    history = run(make(strategy=name, min_nodes=3, max_nodes=3), table_fitness)
    assert {sizes(individual.genome) for individual in history} == {(3, 3)}


def test_random_search_draws_every_size_alike():
    strategy = make(strategy="random", num_generations=400, min_nodes=2)
    drawn = Counter(sizes(individual.genome) for individual in run(strategy, lambda individual: 0.5))
    assert set(drawn) == {(a, b) for a in (2, 3, 4) for b in (2, 3, 4)}
    assert all(binomtest(count, drawn.total(), 1 / 9).pvalue > 1e-4 for count in drawn.values())
    assert ids(strategy.population) == [0, 1, 2, 3]  # of equals the older ones


def test_without_crossover_the_better_parent_is_mutated():
    rates = dict.fromkeys(("op_mutation_prob", "edge_mutation_prob", "stagnant_edge_mutation_prob"), 0.0)
    rates |= {"stagnant_op_mutation_prob": 1.0, "add_node_prob": 0.0}
    strategy = make(crossover=False, sample_size=4, mating_pool="survivors", **rates)
    history = {individual.id: individual for individual in run(strategy, lambda individual: -individual.id)}
    children = [individual for individual in history.values() if individual.parents]
    assert len(children) == 3 * 8
    for child in children:  # the sample is the whole population; individual 0 stays its best
        assert child.parents == (0,)
        mutated = child.generation > 2  # from soft stagnation avoidance on
        assert child.operators == (("op_mutation",) if mutated else ())
        assert differences(child.genome, history[0].genome) == mutated


def test_without_stagnation_avoidance_there_is_none():
    assert [event.kind for event in make_and_run(stagnation_avoidance=True).events] == ["soft", "hard", "hard", "hard"]
    assert make_and_run(stagnation_avoidance=False).events == []


def make_and_run(**settings: Any) -> Strategy:
    strategy = make(**settings)
    run(strategy, lambda individual: 0.5)
    return strategy


def test_aging_step_by_step():
    fitness = {0: 0.3, 1: 0.9, 2: 0.1, 3: 0.2, 4: 0.5, 5: 0.4, 6: 0.6, 7: 0.1, 8: 0.2, 9: 0.1}
    strategy = make(strategy="aging", sample_size=4, num_generations=2)
    history, alive = [], []
    while strategy.ask():
        history.append(step(strategy, lambda individual: fitness[individual.id]))
        alive.append(ids(strategy.population))
    # Four at first, best first; then a child a step, and the oldest dies, be it the best.
    assert alive[3:] == [
        [1, 0, 3, 2],
        *([1, 4, 3, 2], [4, 5, 3, 2], [6, 4, 5, 3]),
        *([6, 4, 5, 7], [6, 5, 8, 7], [6, 8, 7, 9]),
    ]
    # The sample is all that live, so the parent is the best of them.
    assert [individual.parents for individual in history] == [(), (), (), (), (1,), (1,), (4,), (6,), (6,), (6,)]
    assert [individual.generation for individual in history] == [0] * 4 + [1] * 3 + [2] * 3
    assert strategy.best == history[1]  # though it died


def test_aging_by_whole_generations():
    fitness = {0: 0.3, 1: 0.9, 2: 0.1, 3: 0.2, 4: 0.5, 5: 0.4, 6: 0.6, 7: 0.1, 8: 0.2, 9: 0.1}
    strategy = make(strategy="aging", sample_size=4, num_generations=2, mating_pool="survivors")
    history, asked, alive = [], [], {}
    while candidates := strategy.ask():
        asked.append(len(candidates))
        history.append(step(strategy, lambda individual: fitness[individual.id]))
        alive.setdefault(strategy.generation, ids(strategy.population))
    assert asked == [4, 3, 2, 1, 3, 2, 1, 3, 2, 1]
    assert [individual.parents for individual in history[4:]] == [(1,)] * 3 + [(6,)] * 3
    assert [alive[g] for g in (1, 2, 3)] == [[1, 0, 3, 2], [6, 4, 5, 3], [6, 8, 7, 9]]


def differences(one: Genome, other: Genome) -> int:
    """How many inputs and ops differ, a node that only one has counting as one."""
    number = 0
    for name in CELLS:
        nodes, others = getattr(one, name).nodes, getattr(other, name).nodes
        number += abs(len(nodes) - len(others))
        for a, b in zip(nodes, others, strict=False):
            number += sum(x != y for x, y in zip((*a.inputs, *a.ops), (*b.inputs, *b.ops), strict=True))
    return number


def test_a_child_of_aging_has_one_mutation_in_proportion_to_the_rates():
    strategy = make(strategy="aging", num_generations=300, max_nodes=12)
    history = {individual.id: individual for individual in run(strategy, lambda individual: individual.id)}
    children = [individual for individual in history.values() if individual.parents]
    for child in children:
        assert differences(child.genome, history[child.parents[0]].genome) == len(child.operators) <= 1
    applied = Counter(child.operators[0] for child in children[:150] if child.operators)
    assert binomtest(applied["op_mutation"], 150, 0.4).pvalue > 1e-3
    assert binomtest(applied["add_node"], 150, 0.2).pvalue > 1e-3  # fewer later: cells are full
    assert applied["edge_mutation"] > 0


def test_the_sample_of_aging_is_drawn_from_what_lives():
    strategy = make(strategy="aging", num_generations=400, sample_size=2, population_size=4)
    living: list[int] = []
    ranks = Counter()
    while candidates := strategy.ask():
        if candidates[0].parents:
            ranks[living.index(candidates[0].parents[0])] += 1
        step(strategy, table_fitness)
        living = ids(strategy.population)
    # The best of two of four: first by 1/2, second by 1/3, third by 1/6, the last never.
    assert all(binomtest(ranks[k], ranks.total(), p).pvalue > 1e-4 for k, p in ((0, 1 / 2), (1, 1 / 3), (2, 1 / 6)))
    assert ranks[3] == 0


def colony(seed: int = 0, **settings: Any) -> AntColony:
    strategy = make(strategy="aco", seed=seed, **settings)
    assert isinstance(strategy, AntColony)
    return strategy


def test_ants_build_larger_cells_in_each_iteration_and_all_at_once():
    strategy = colony(num_generations=7)  # 4 + 3 * 7 = 25 candidates, 5 an iteration
    assert (len(strategy.ask()), strategy.num_generations) == (5, 4)
    history = run(strategy, lambda individual: 0.5)
    assert [sizes(i.genome) for i in history] == [(2, 2)] * 5 + [(3, 3)] * 5 + [(4, 4)] * 15
    assert all(individual.operators == ("ant",) and individual.parents == () for individual in history)
    cut = run(colony(num_generations=8), lambda individual: 0.5)  # 28 candidates: the last iteration has three
    assert Counter(individual.generation for individual in cut) == dict.fromkeys(range(5), 5) | {5: 3}


def test_pheromone_step_by_step():
    strategy = colony(num_ants=2, pheromone_start=0.2, pheromone_decay=0.5, pheromone_evaporation=0.25)
    start = {kind: array.copy() for kind, array in strategy.pheromone.items()}
    assert {kind: array.shape for kind, array in start.items()} == {"inputs": (2, 4, 2, 5), "ops": (2, 4, 2, 6)}
    assert all((array == 0.2).all() for array in start.values())
    first, second = strategy.ask()
    for kind, array in strategy.pheromone.items():  # local updates: already there, so nothing moves
        np.testing.assert_allclose(array, start[kind])
    strategy.tell(dataclasses.replace(second, fitness=0.6))
    strategy.tell(dataclasses.replace(first, fitness=0.4))
    expected = start
    for kind, *place in choices(second.genome):  # global update: the better one's choices, a quarter of the way to 0.6
        expected[kind][tuple(place)] += 0.25 * (0.6 - 0.2)
    for kind, array in strategy.pheromone.items():
        np.testing.assert_allclose(array, expected[kind])
    third = strategy.ask()[0]
    fourth = strategy.ask()[1]
    for ant in (third, fourth):  # local updates halve the way back to the start
        for kind, *place in choices(ant.genome):
            expected[kind][tuple(place)] += 0.5 * (0.2 - expected[kind][tuple(place)])
    for kind, array in strategy.pheromone.items():
        np.testing.assert_allclose(array, expected[kind])
    strategy.tell(dataclasses.replace(third, fitness=0.1))
    strategy.tell(dataclasses.replace(fourth, fitness=0.1))
    for kind, *place in choices(second.genome):  # the best so far is still the second
        expected[kind][tuple(place)] += 0.25 * (0.6 - expected[kind][tuple(place)])
    for kind, array in strategy.pheromone.items():
        np.testing.assert_allclose(array, expected[kind])


def test_choices_name_every_operand():
    genome = Genome(*(random_cell(np.random.default_rng(1), size) for size in (2, 3)))
    listed = list(choices(genome))
    assert len(set(listed)) == len(listed) == 2 * 2 * (2 + 3)
    node = genome.reduction.nodes[2]
    assert {("inputs", 1, 2, 1, node.inputs[1]), ("ops", 1, 2, 0, OPS.index(node.ops[0]))} <= set(listed)


def test_the_pseudo_random_proportional_rule():
    pheromone = np.array([0.1, 0.3, 0.3, 0.1])

    def drawn(greediness: float) -> Counter[int]:
        ants = AntColony(EvolutionConfig(), ColonyConfig(greediness=greediness), seed=0)
        rng = np.random.default_rng(0)
        return Counter(ants._choose(rng, pheromone) for _ in range(4000))

    for greediness in (0.0, 0.5, 1.0):
        counts = drawn(greediness)
        for k, share in enumerate(pheromone / pheromone.sum()):
            probability = greediness * (pheromone[k] == 0.3) / 2 + (1 - greediness) * share
            assert binomtest(counts[k], 4000, probability).pvalue > 1e-4


def test_greedy_ants_repeat_the_best():
    ants = colony(greediness=1.0, min_nodes=4, num_ants=3)
    history = run(ants, lambda individual: 0.9 if individual.id == 1 else 0.1)
    assert all(individual.genome == history[1].genome for individual in history[3:])


@pytest.mark.parametrize(("noise", "bound"), [(0.0, 1e-3), (0.02, 1e-2)])
def test_all_beat_random_search_where_the_best_is_known(noise: float, bound: float):
    found = runpy.run_path(str(REPOSITORY / "benchmarks" / "strategies.py"))["found"]
    best = {name: np.array([found(name, seed, 120, (6, 6), noise) for seed in range(20)]) for name in KINDS}
    for name in ("rea", "aging", "aco"):
        assert wilcoxon(best[name] - best["random"], alternative="greater").pvalue < bound, name


def test_the_best_of_all_is_kept():
    for name in KINDS:
        history = run(strategy := make(strategy=name), table_fitness)
        valid = [i for i in history if i.fitness is not None and math.isfinite(i.fitness)]
        assert strategy.best == min(valid, key=rank)
