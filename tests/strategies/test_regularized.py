"""Regularized evolution on scripted fitness: selection, stagnation, failures, order of work,
resume.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from builders_strategies import (
    Fitness,
    count_conv_3x3,
    differences,
    ids,
    make,
    run,
    table_fitness,
)
from scipy.stats import binom

from jaxevo.config import EvolutionConfig
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.strategies.base import Event, Strategy
from jaxevo.strategies.individual import Individual, rank
from jaxevo.strategies.regularized import RegularizedEvolution, select_parents

NODE = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
GENOME = Genome(Cell((NODE,)), Cell((NODE,)))
SMALL = EvolutionConfig(
    population_size=3,
    num_offspring=2,
    num_generations=12,
    stagnation_start=3,
    stagnation_patience=2,
)
MATING_POOLS = ("growing", "survivors")


def by_id(fitness: dict[int, float]) -> Fitness:
    """Fitness scripted by id; 0 for all others."""
    return lambda individual: fitness.get(individual.id, 0.0)


def pool_of(*fitness: float) -> list[Individual]:
    return [Individual(index, GENOME, 0, fitness=value) for index, value in enumerate(fitness)]


def test_parents_are_the_best_of_a_sample_and_another_of_it():
    pool, rng, draws = pool_of(0.1, 0.7, 0.7, 0.3), np.random.default_rng(0), 4000
    pairs = Counter(tuple(ids(select_parents(rng, pool, 2))) for _ in range(draws))
    # Each of the six pairs, the better one first, of equals the older one.
    assert set(pairs) == {(1, 0), (2, 0), (3, 0), (1, 2), (1, 3), (2, 3)}
    low, high = binom.interval(0.9999, draws, 1 / 6)
    assert all(low <= count <= high for count in pairs.values())
    assert {tuple(ids(select_parents(rng, pool, 4))) for _ in range(100)} == {
        (1, 0),
        (1, 2),
        (1, 3),
    }
    assert {tuple(ids(select_parents(rng, pool, 1))) for _ in range(100)} == {
        (k, k) for k in range(4)
    }


@pytest.mark.parametrize("mating_pool", MATING_POOLS)
def test_generations_step_by_step(mating_pool: str):
    config = dataclasses.replace(
        SMALL, num_generations=3, stagnation_start=99, mating_pool=mating_pool
    )
    fitness = by_id({0: 0.5, 1: 0.2, 2: 0.5, 3: 0.2, 4: 0.6, 5: 0.6, 6: 0.5, 7: 0.4, 8: 0.9})
    strategy = RegularizedEvolution(config, seed=0)
    populations, history = {}, []
    assert strategy.best is None
    while candidates := strategy.ask():
        history.append(dataclasses.replace(candidates[0], fitness=fitness(candidates[0])))
        strategy.tell(history[-1])
        populations.setdefault(strategy.generation, strategy.population)
    # Seen at the start of each generation; 3 individuals, then 2 offspring in each.
    assert [ids(populations[g]) for g in (1, 2, 3, 4)] == [
        [0, 2, 1],
        [4, 0, 2],
        [4, 5, 0],
        [8, 4, 5],
    ]
    assert ids(history) == list(range(9))
    assert [individual.generation for individual in history] == [0, 0, 0, 1, 1, 2, 2, 3, 3]
    assert all(i.operators == ("random",) and i.parents == () for i in history[:3])
    assert all(i.operators[0] == "crossover" and len(i.parents) == 2 for i in history[3:])
    assert strategy.done
    assert strategy.ask() == []
    assert strategy.best == history[8]
    assert strategy.events == []


@pytest.mark.parametrize("mating_pool", MATING_POOLS)
def test_parents_come_from_the_mating_pool(mating_pool: str):
    config = EvolutionConfig(
        num_generations=20, mating_pool=mating_pool, stagnation_start=5, stagnation_patience=5
    )
    history = {
        i.id: i
        for i in run(RegularizedEvolution(config, seed=1), lambda i: count_conv_3x3(i.genome))
    }
    offspring = [i for i in history.values() if i.parents]
    assert all(history[p].fitness is not None for i in offspring for p in i.parents)
    assert all(i.parents[0] != i.parents[1] for i in offspring)
    assert all(rank(history[i.parents[0]]) < rank(history[i.parents[1]]) for i in offspring)
    siblings = sum(history[p].generation == i.generation for i in offspring for p in i.parents)
    assert siblings > 0 if mating_pool == "growing" else siblings == 0


def test_how_many_candidates_may_be_evaluated_at_once():
    for mating_pool, offspring in (("growing", 1), ("survivors", 2)):
        strategy = RegularizedEvolution(dataclasses.replace(SMALL, mating_pool=mating_pool), seed=0)
        assert len(strategy.ask()) == 3
        for candidate in strategy.ask():
            strategy.tell(dataclasses.replace(candidate, fitness=0.5))
        assert len(strategy.ask()) == offspring


@pytest.mark.parametrize("mating_pool", MATING_POOLS)
def test_stagnation_is_avoided_softly_then_hard(mating_pool: str):
    # The best never improves on individual 1. From generation 3 on that is stagnation, and again
    # every 2 generations.
    config = dataclasses.replace(SMALL, mating_pool=mating_pool)
    strategy = RegularizedEvolution(config, seed=0)
    history = run(strategy, by_id({1: 0.5}))
    kinds = [("soft", 3), ("hard", 5), ("hard", 7), ("hard", 9), ("hard", 11)]
    assert strategy.events == [Event(kind, generation, 1, 0.5) for kind, generation in kinds]
    # Hard avoidance adds P - 1 = 2 random individuals to the generation's 2 offspring.
    born = Counter((i.generation, i.operators == ("random",)) for i in history)
    assert born == {(0, True): 3} | {(g, False): 2 for g in range(1, 13)} | {
        (g, True): 2 for g in (5, 7, 9, 11)
    }
    assert strategy.best is not None
    assert strategy.best.id == 1


def test_hard_avoidance_keeps_only_the_best():
    # Ids 0-2, then two a generation; soft at 3, hard at 5, whose offspring are 11 and 12 and whose
    # new ones 13 and 14.
    strategy = RegularizedEvolution(SMALL, seed=0)
    while strategy.generation < 6:
        candidate = strategy.ask()[0]
        strategy.tell(
            dataclasses.replace(
                candidate, fitness=0.9 if candidate.id == 1 else 0.5 - candidate.id / 100
            )
        )
    assert ids(strategy.population) == [1, 13, 14]
    assert [i.generation for i in strategy.population] == [0, 5, 5]


def test_a_better_best_postpones_stagnation():
    # Individual 8 of generation 3 is better: soft at 5. Hard's new ones at 7 are better still: hard
    # at 9.
    strategy = RegularizedEvolution(SMALL, seed=0)
    new = (7, ("random",))
    history = run(
        strategy, lambda i: 0.7 if i.id == 8 else 0.9 if (i.generation, i.operators) == new else 0.5
    )
    assert history[8].generation == 3
    assert [(e.kind, e.generation) for e in strategy.events[:3]] == [
        ("soft", 5),
        ("hard", 7),
        ("hard", 9),
    ]
    assert [e.best_fitness for e in strategy.events[:3]] == [0.7, 0.7, 0.9]


def test_an_equal_best_is_no_improvement():
    strategy = RegularizedEvolution(SMALL, seed=0)
    run(strategy, lambda individual: 0.5)
    assert [e.generation for e in strategy.events] == [3, 5, 7, 9, 11]
    assert {e.best_id for e in strategy.events} == {0}


def test_stagnation_is_looked_for_from_its_start_and_after_its_patience():
    for start, patience, expected in (
        (0, 4, [4, 8, 12]),
        (6, 4, [6, 10]),
        (1, 1, list(range(1, 13))),
        (13, 1, []),
    ):
        config = dataclasses.replace(SMALL, stagnation_start=start, stagnation_patience=patience)
        strategy = RegularizedEvolution(config, seed=0)
        run(strategy, by_id({}))
        assert [e.generation for e in strategy.events] == expected


def test_soft_avoidance_raises_the_mutation_rates_for_good():
    config = dataclasses.replace(
        SMALL,
        min_nodes=2,
        op_mutation_prob=0.0,
        edge_mutation_prob=0.0,
        add_node_prob=0.0,
        stagnant_op_mutation_prob=1.0,
        stagnant_edge_mutation_prob=1.0,
        num_generations=20,
    )
    strategy = RegularizedEvolution(config, seed=0)
    history = [i for i in run(strategy, by_id({})) if i.parents]
    assert all(i.operators == ("crossover",) for i in history if i.generation <= 3)
    assert all("op_mutation" in i.operators for i in history if i.generation > 3)
    assert any("edge_mutation" in i.operators for i in history if i.generation > 3)
    assert not any("add_node" in i.operators for i in history)


def test_failed_candidates_are_replaced_and_never_survive():
    failures = {1: None, 2: math.nan, 4: math.inf, 6: -math.inf, 9: None, 10: None}
    config = dataclasses.replace(SMALL, num_generations=2)
    for mating_pool in MATING_POOLS:
        strategy = RegularizedEvolution(
            dataclasses.replace(config, mating_pool=mating_pool), seed=0
        )
        history = run(strategy, lambda i: failures[i.id] if i.id in failures else 0.5)
        assert ids(history) == list(range(len(history)))
        valid = [i for i in history if i.id not in failures]
        assert [i.generation for i in valid] == [0, 0, 0, 1, 1, 2, 2]
        assert not {p for i in history for p in i.parents} & set(failures)
        assert not set(ids(strategy.population)) & set(failures)


def test_failures_after_hard_avoidance_are_replaced_by_random_individuals():
    strategy = RegularizedEvolution(SMALL, seed=0)
    history = run(strategy, lambda i: None if i.id in (13, 15) else 0.5)
    new = [i for i in history if i.generation == 5 and i.operators == ("random",)]
    assert ids(new) == [13, 14, 15, 16]
    assert all(len(i.parents) == 0 for i in new)


def test_telling_what_was_not_asked_is_refused():
    strategy = RegularizedEvolution(SMALL, seed=0)
    first, second, _ = strategy.ask()
    strategy.tell(dataclasses.replace(first, fitness=0.5))
    strategy.tell(second)  # failed
    for individual in (
        first,
        second,
        dataclasses.replace(first, id=3),
        dataclasses.replace(first, id=-1),
    ):
        with pytest.raises(ValueError, match=f"individual {individual.id} is not waiting"):
            strategy.tell(dataclasses.replace(individual, fitness=0.9))
    assert ids(strategy.population) == [0]
    assert ids(strategy.ask()) == [2, 3]


def test_asking_again_gives_the_same():
    strategy = RegularizedEvolution(SMALL, seed=0)
    while candidates := strategy.ask():
        assert strategy.ask() == candidates
        strategy.tell(dataclasses.replace(candidates[-1], fitness=table_fitness(candidates[-1])))


@pytest.mark.parametrize("mating_pool", MATING_POOLS)
def test_the_order_of_telling_makes_no_difference(mating_pool: str):
    config = EvolutionConfig(
        num_generations=25, mating_pool=mating_pool, stagnation_start=5, stagnation_patience=3
    )
    strategies = [RegularizedEvolution(config, seed=2) for _ in range(6)]
    histories = [
        run(s, table_fitness, np.random.default_rng(k) if k else None)
        for k, s in enumerate(strategies)
    ]
    assert {e.kind for e in strategies[0].events} == {"soft", "hard"}
    for strategy, history in zip(strategies[1:], histories[1:], strict=True):
        # Compared as text, since a fitness of NaN is not equal to itself.
        assert str(sorted(history, key=lambda i: i.id)) == str(
            sorted(histories[0], key=lambda i: i.id)
        )
        assert strategy.population == strategies[0].population
        assert strategy.events == strategies[0].events
    if mating_pool == "survivors":
        assert ids(histories[1]) != ids(histories[0])


@pytest.mark.parametrize("mating_pool", MATING_POOLS)
def test_resume_at_every_step_gives_the_same_run(mating_pool: str):
    config = EvolutionConfig(
        population_size=4,
        num_offspring=3,
        num_generations=12,
        stagnation_start=3,
        stagnation_patience=2,
        mating_pool=mating_pool,
    )
    whole = RegularizedEvolution(config, seed=3)
    expected = run(whole, table_fitness)
    assert {e.kind for e in whole.events} == {"soft", "hard"}
    strategy, history = RegularizedEvolution(config, seed=3), []
    for step in range(len(expected) + 1):
        for save_pending in (False, True):  # before and after candidates are drawn
            if save_pending:
                strategy.ask()
            resumed = RegularizedEvolution(config, seed=3)
            resumed.load_state_dict(json.loads(json.dumps(strategy.state_dict(), allow_nan=False)))
            assert str(history + run(resumed, table_fitness)) == str(expected)
            assert resumed.state_dict() == whole.state_dict()
        if step < len(expected):
            candidate = strategy.ask()[0]
            history.append(dataclasses.replace(candidate, fitness=table_fitness(candidate)))
            strategy.tell(history[-1])


def test_a_state_of_another_seed_is_refused():
    state = RegularizedEvolution(SMALL, seed=0).state_dict()
    with pytest.raises(ValueError, match="seed 0.*seed 1"):
        RegularizedEvolution(SMALL, seed=1).load_state_dict(state)


def test_a_finished_run_can_be_prolonged():
    short, long = (
        RegularizedEvolution(dataclasses.replace(SMALL, num_generations=g), seed=4) for g in (5, 12)
    )
    begin = run(short, table_fitness)
    expected = run(long, table_fitness)
    prolonged = RegularizedEvolution(SMALL, seed=4)
    prolonged.load_state_dict(short.state_dict())
    assert str(begin + run(prolonged, table_fitness)) == str(expected)
    assert prolonged.state_dict() == long.state_dict()


def test_a_run_depends_on_its_seed_alone():
    runs = [str(run(RegularizedEvolution(SMALL, seed), table_fitness)) for seed in (0, 0, 1, 2**40)]
    assert runs[0] == runs[1]
    assert len(set(runs)) == 3


def test_the_smallest_settings_come_to_an_end():
    config = EvolutionConfig(
        population_size=1,
        num_offspring=1,
        sample_size=1,
        num_generations=5,
        stagnation_start=1,
        stagnation_patience=1,
    )
    strategy = RegularizedEvolution(config, seed=0)
    history = run(strategy, by_id({}))
    assert [i.parents for i in history] == [(), *[(0, 0)] * 5]
    assert [e.kind for e in strategy.events] == ["soft", "hard", "hard", "hard", "hard"]
    only_random = RegularizedEvolution(dataclasses.replace(SMALL, num_generations=0), seed=0)
    assert len(run(only_random, by_id({}))) == 3


def test_a_whole_search_of_the_paper_finds_what_it_looks_for():
    config = EvolutionConfig()
    strategy = RegularizedEvolution(config, seed=0)
    bests, mutated = [0.0], Counter()
    while candidates := strategy.ask():
        strategy.tell(
            dataclasses.replace(candidates[0], fitness=count_conv_3x3(candidates[0].genome))
        )
        mutated.update(candidates[0].operators)
        assert strategy.best is not None
        assert strategy.best.fitness is not None
        bests.append(strategy.best.fitness)
    assert bests == sorted(bests)  # elitism
    assert bests[-1] == 24  # both cells full of it
    assert all(cell.num_nodes <= 6 for i in strategy.population for cell in i.genome.cells)
    assert mutated["crossover"] == 2000
    assert len(strategy.population) == 10
    assert mutated["random"] == 10 + 9 * sum(e.kind == "hard" for e in strategy.events)


def test_without_crossover_the_better_parent_is_mutated():
    rates = dict.fromkeys(
        ("op_mutation_prob", "edge_mutation_prob", "stagnant_edge_mutation_prob"), 0.0
    )
    rates |= {"stagnant_op_mutation_prob": 1.0, "add_node_prob": 0.0}
    strategy = make(crossover=False, sample_size=4, mating_pool="survivors", **rates)
    history = {
        individual.id: individual for individual in run(strategy, lambda individual: -individual.id)
    }
    children = [individual for individual in history.values() if individual.parents]
    assert len(children) == 3 * 8
    for child in children:  # the sample is the whole population; individual 0 stays its best
        assert child.parents == (0,)
        mutated = child.generation > 2  # from soft stagnation avoidance on
        assert child.operators == (("op_mutation",) if mutated else ())
        assert differences(child.genome, history[0].genome) == mutated


def test_without_stagnation_avoidance_there_is_none():
    assert [event.kind for event in make_and_run(stagnation_avoidance=True).events] == [
        "soft",
        "hard",
        "hard",
        "hard",
    ]
    assert make_and_run(stagnation_avoidance=False).events == []


def make_and_run(**settings: Any) -> Strategy:
    strategy = make(**settings)
    run(strategy, lambda individual: 0.5)
    return strategy
