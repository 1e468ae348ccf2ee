"""A model of fitness chooses what may raise a front most."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders_strategies import count_conv_3x3, kernel_sizes, make
from scipy.stats import wilcoxon

from jaxevo.config import SearchConfig, replace
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.dominance import dominates, hypervolume
from jaxevo.strategies.registry import make_strategy

SETTINGS = {
    **{"population_size": 8, "num_offspring": 8, "num_generations": 7},
    **{"max_nodes": 6, "fitness": "likelihood"},
}


def share(genome: Genome) -> float:
    """A true fitness: the part of operands that are 3x3 convolutions, which also cost least."""
    return count_conv_3x3(genome) / sum(2 * cell.num_nodes for cell in genome.cells)


def noisy(strategy: Strategy, seed: int, noise: float = 0.05) -> list[tuple[float, float]]:
    """Runs a strategy on a noisy fitness; true fitness and cost of all candidates."""
    rng = np.random.default_rng([7, seed])
    found = []
    while candidates := strategy.ask():
        for each in candidates:
            true, cost = share(each.genome), kernel_sizes(each.genome)
            fitness = true + noise * rng.normal()
            strategy.tell(dataclasses.replace(each, fitness=fitness, cost=cost))
            found.append((true, float(cost)))
    return found


def test_its_front_is_better_than_those_of_random_search_and_nsga2_in_noise():
    """16 pairs each: the one-sided Wilcoxon test of the true hypervolume."""
    most = 2 * 2 * 2 * 6 * 7.0
    found = {
        name: [
            hypervolume(noisy(make(seed, strategy=name, **SETTINGS), seed), most)
            for seed in range(16)
        ]
        for name in ("guided_front", "nsga2", "random")
    }
    for other in ("nsga2", "random"):
        difference = np.array(found["guided_front"]) - found[other]
        assert wilcoxon(difference, alternative="greater")[1] < 0.01, other


def test_no_candidate_is_isomorphic_to_an_earlier_one():
    strategy = make(3, strategy="guided_front", **SETTINGS)
    keys = []
    while candidates := strategy.ask():
        each = candidates[0]
        keys += [each.genome.canonical_key()]
        told = {"fitness": share(each.genome), "cost": kernel_sizes(each.genome)}
        strategy.tell(dataclasses.replace(each, **told))
    born_later = keys[SETTINGS["population_size"] :]
    assert len(set(born_later)) == len(born_later)


def test_ranked_begins_with_the_highest_expected_fitness_and_its_front():
    strategy = make(1, strategy="guided_front", **SETTINGS)
    told = []
    while candidates := strategy.ask():
        for each in candidates:
            # The smallest of the first generation is lucky: it would dominate all.
            lucky = each.generation == 0 and kernel_sizes(each.genome) == min(
                kernel_sizes(other.genome) for other in candidates
            )
            fitness = 2.0 if lucky else share(each.genome)
            told.append(dataclasses.replace(each, fitness=fitness, cost=kernel_sizes(each.genome)))
            strategy.tell(told[-1])
    ranked = strategy.ranked(told)
    assert len(ranked) == len(told)
    expected = strategy._evidence.model(strategy._evidence.latest()).expected(ranked)
    points = [(float(f), float(each.cost or 0)) for f, each in zip(expected, ranked, strict=True)]
    assert expected[0] == max(expected)
    front = [k for k, one in enumerate(points) if not any(dominates(two, one) for two in points)]
    assert front == list(range(len(front)))


def test_a_cost_is_needed_to_draw_but_not_to_be_told_a_record():
    config = replace(SearchConfig(), SETTINGS | {"strategy": "guided_front"})
    drawing, reading = make_strategy(config, cost=kernel_sizes), make_strategy(config)
    while drawing.generation < 2:
        each = drawing.ask()[0]
        told = dataclasses.replace(
            each,
            fitness=share(each.genome),
            cost=kernel_sizes(each.genome),
            generation=drawing.generation,
        )
        drawing.tell(told)
        reading.replay(told)
    assert reading.population == drawing.population
    with pytest.raises(ValueError, match="no cost"):
        reading.replay(dataclasses.replace(told, cost=None))
