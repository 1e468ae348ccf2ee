"""NSGA-II: who stays, who is first, and that it finds a front that is known."""

from __future__ import annotations

import dataclasses

import pytest
from builders_strategies import count_conv_3x3, kernel_sizes, make, run, step, table_fitness

from jaxevo.strategies.dominance import crowded_order, fronts
from jaxevo.strategies.individual import is_valid


def valid_fitness(individual) -> float:
    value = table_fitness(individual)
    return value if is_valid(value) else 0.5


def points(individuals) -> list[tuple[float, float]]:
    return [(each.fitness, float(each.cost)) for each in individuals]


def test_the_survivors_are_the_best_by_front_and_crowding():
    strategy = make(strategy="nsga2", mating_pool="survivors", seed=1)
    while not strategy.done:
        before, generation = list(strategy.population), strategy.generation
        born = []
        while strategy.generation == generation:
            told = step(strategy, valid_fitness)
            born += [told]
        distinct = {}
        for each in sorted([*before, *born], key=lambda individual: individual.id):
            distinct.setdefault(each.genome.canonical_key(), each)
        listed = sorted(distinct.values(), key=lambda each: (-each.fitness, each.id))
        kept = [listed[place].id for place in crowded_order(points(listed))][:4]
        assert {each.id for each in strategy.population} == set(kept)


def test_the_fittest_is_the_first_and_the_front_follows():
    strategy = make(strategy="nsga2", num_generations=20)
    history = run(strategy, valid_fitness)
    ranked = strategy.ranked(history)
    assert ranked[0].fitness == max(each.fitness for each in history)
    front = fronts(points(ranked))[0]
    assert sorted(front) == list(range(len(front)))
    assert len(ranked) == len(history)


def test_it_finds_more_of_a_front_than_random_search():
    # Many 3x3 convolutions are wanted, and small kernels: what is best for a cost is known.
    def dominated(name: str, seed: int) -> int:
        strategy = make(
            **{"strategy": name, "seed": seed, "max_nodes": 6, "num_generations": 12},
            **{"population_size": 10, "num_offspring": 10},
        )
        told = [
            dataclasses.replace(each, cost=kernel_sizes(each.genome))
            for each in run(strategy, lambda individual: count_conv_3x3(individual.genome) / 24)
        ]
        # A genome of n convolutions 3x3 and nothing else with a kernel is not dominated.
        found = {each.fitness for each in told if each.cost == 3 * round(24 * each.fitness)}
        return len(found)

    better = [dominated("nsga2", seed) > dominated("random", seed) for seed in range(10)]
    # By chance in nine of ten: 0.011.
    assert sum(better) >= 9


def test_a_fitness_without_a_cost_is_refused():
    strategy = make(strategy="nsga2")
    candidate = strategy.ask()[0]
    with pytest.raises(ValueError, match="individual 0 has a fitness and no cost"):
        strategy.tell(dataclasses.replace(candidate, fitness=0.5))
    with pytest.raises(ValueError, match="individual 0 has a fitness and no cost"):
        strategy.replay(dataclasses.replace(candidate, fitness=0.5))
    strategy.tell(candidate)  # a failure has neither


def test_known_genomes_are_drawn_again_rarely():
    strategy = make(strategy="nsga2", num_generations=20, max_nodes=6)
    history = run(strategy, valid_fitness)
    keys = [each.genome.canonical_key() for each in history]
    assert len(set(keys)) >= 0.95 * len(keys)
