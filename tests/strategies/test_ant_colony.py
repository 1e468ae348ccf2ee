"""Ants: pheromone by hand, and the choices that it makes likely."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
from builders_strategies import (
    make,
    run,
    sizes,
)
from scipy.stats import binomtest

from jaxevo.config import ColonyConfig, EvolutionConfig
from jaxevo.search_space.genome import OPS, Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.strategies.ant_colony import AntColony, choices


def colony(seed: int = 0, **settings: Any) -> AntColony:
    strategy = make(strategy="aco", seed=seed, **settings)
    assert isinstance(strategy, AntColony)
    return strategy


def test_ants_build_larger_cells_in_each_iteration_and_all_at_once():
    strategy = colony(num_generations=7)  # 4 + 3 * 7 = 25 candidates, 5 an iteration
    assert (len(strategy.ask()), strategy.num_generations) == (5, 4)
    history = run(strategy, lambda individual: 0.5)
    assert [sizes(i.genome) for i in history] == [(2, 2)] * 5 + [(3, 3)] * 5 + [(4, 4)] * 15
    assert all(
        individual.operators == ("ant",) and individual.parents == () for individual in history
    )
    cut = run(
        colony(num_generations=8), lambda individual: 0.5
    )  # 28 candidates: the last iteration has three
    assert Counter(individual.generation for individual in cut) == dict.fromkeys(range(5), 5) | {
        5: 3
    }


def test_pheromone_step_by_step():
    strategy = colony(
        num_ants=2, pheromone_start=0.2, pheromone_decay=0.5, pheromone_evaporation=0.25
    )
    start = {kind: array.copy() for kind, array in strategy.pheromone.items()}
    assert {kind: array.shape for kind, array in start.items()} == {
        "inputs": (2, 4, 2, 5),
        "ops": (2, 4, 2, 6),
    }
    assert all((array == 0.2).all() for array in start.values())
    first, second = strategy.ask()
    for kind, array in strategy.pheromone.items():  # local updates: already there, so nothing moves
        np.testing.assert_allclose(array, start[kind])
    strategy.tell(dataclasses.replace(second, fitness=0.6))
    strategy.tell(dataclasses.replace(first, fitness=0.4))
    expected = start
    for kind, *place in choices(
        second.genome
    ):  # global update: the better one's choices, a quarter of the way to 0.6
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
    assert {("inputs", 1, 2, 1, node.inputs[1]), ("ops", 1, 2, 0, OPS.index(node.ops[0]))} <= set(
        listed
    )


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
