"""A model of fitness proposes and ranks."""

from __future__ import annotations

import dataclasses
import statistics

import numpy as np
from builders_strategies import make
from scipy.stats import wilcoxon

from jaxevo.config import NetworkConfig
from jaxevo.search_space.genome import Genome
from jaxevo.strategies import evidence
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.linear_model import features

SETTINGS = {"population_size": 6, "num_offspring": 6, "num_generations": 5, "max_nodes": 6}


def convolutions(genome: Genome) -> float:
    """The part of operands that are convolutions."""
    ops = [op for cell in genome.cells for node in cell.nodes for op in node.ops]
    return sum(op.kernel_size > 0 for op in ops) / len(ops)


def noisy(strategy: Strategy, seed: int, noise: float = 0.1) -> float:
    """Runs a strategy on a noisy fitness; the true value of the individual held for the best."""
    rng = np.random.default_rng([7, seed])
    while candidates := strategy.ask():
        for candidate in candidates:
            fitness = convolutions(candidate.genome) + noise * rng.normal()
            strategy.tell(dataclasses.replace(candidate, fitness=fitness))
    assert strategy.best is not None
    return convolutions(strategy.best.genome)


def test_it_finds_better_genomes_than_chance_in_noise():
    """16 pairs: the one-sided Wilcoxon test, with the mean's gain."""
    found = {
        name: [noisy(make(seed, strategy=name, **SETTINGS), seed) for seed in range(16)]
        for name in ("guided", "random")
    }
    difference = np.array(found["guided"]) - found["random"]
    assert wilcoxon(difference, alternative="greater")[1] < 0.01
    assert statistics.mean(found["guided"]) > statistics.mean(found["random"]) + 0.1


def test_the_best_is_of_the_highest_expected_fitness_not_the_luckiest():
    strategy = make(1, strategy="guided", **SETTINGS)
    told = []
    worst = min(strategy.ask(), key=lambda each: convolutions(each.genome))
    while candidates := strategy.ask():
        for candidate in candidates:
            # One lucky draw among the first: its genome is the worst of all.
            fitness = convolutions(candidate.genome)
            if candidate.id == worst.id:
                fitness = 1.1
            told.append(dataclasses.replace(candidate, fitness=fitness))
            strategy.tell(told[-1])
    luckiest = max(told, key=lambda individual: individual.fitness or 0)
    assert luckiest.id == worst.id
    ranked = strategy.ranked(told)
    assert ranked[0].id != worst.id and convolutions(ranked[0].genome) > 0.5
    assert sorted(each.id for each in ranked) == [each.id for each in told]


def test_nothing_that_was_evaluated_is_proposed_again():
    strategy = make(0, strategy="guided", mating_pool="survivors", **SETTINGS)
    earlier: set[str] = set()
    while candidates := strategy.ask():
        keys = {candidate.genome.canonical_key() for candidate in candidates}
        assert not keys & earlier
        earlier |= keys
        for candidate in candidates:
            strategy.tell(dataclasses.replace(candidate, fitness=convolutions(candidate.genome)))
    assert len(earlier) >= 30  # of 36: those of one generation do not know each other


def test_a_fitness_that_the_model_knows_exactly_ends_no_search():
    # Then the covariance of the model's weights is hardly definite.
    settings = SETTINGS | {"population_size": 10, "num_offspring": 10, "num_generations": 8}
    strategy = make(0, strategy="guided", **settings)
    while candidates := strategy.ask():
        for each in candidates:
            fitness = 1000 * sum(features(each.genome, NetworkConfig()))
            strategy.tell(dataclasses.replace(each, fitness=fitness))
    assert strategy.done


def test_what_is_forgotten_does_not_depend_on_the_order_of_telling(monkeypatch):
    monkeypatch.setattr(evidence, "_MOST", 8)

    def history(backwards: bool) -> list[str]:
        strategy = make(0, strategy="guided", mating_pool="survivors", **SETTINGS)
        found = []
        while candidates := strategy.ask():
            candidate = candidates[-1 if backwards else 0]
            # One in seven fails, and another is drawn in its place.
            fitness = None if candidate.id % 7 == 3 else convolutions(candidate.genome)
            found.append(dataclasses.replace(candidate, fitness=fitness))
            strategy.tell(found[-1])
        return [str(each) for each in sorted(found, key=lambda each: each.id)]

    assert history(backwards=True) == history(backwards=False)


def test_a_generation_is_drawn_at_once_from_those_before_it():
    strategy = make(0, strategy="guided", mating_pool="survivors", **SETTINGS)
    first = strategy.ask()
    for candidate in first:
        strategy.tell(dataclasses.replace(candidate, fitness=convolutions(candidate.genome)))
    drawn = strategy.ask()
    assert len(drawn) == 6
    # Told in another order, the next ones are the same.
    other = make(0, strategy="guided", mating_pool="survivors", **SETTINGS)
    for candidate in other.ask()[::-1]:
        other.tell(dataclasses.replace(candidate, fitness=convolutions(candidate.genome)))
    assert [each.genome for each in other.ask()] == [each.genome for each in drawn]
