"""Aging evolution step by step, and its mutations and samples at their rates."""

from __future__ import annotations

from collections import Counter

from builders_strategies import (
    differences,
    ids,
    make,
    run,
    step,
    table_fitness,
)
from scipy.stats import binomtest


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
    assert [individual.parents for individual in history] == [
        (),
        (),
        (),
        (),
        (1,),
        (1,),
        (4,),
        (6,),
        (6,),
        (6,),
    ]
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


def test_a_child_of_aging_has_one_mutation_in_proportion_to_the_rates():
    strategy = make(strategy="aging", num_generations=300, max_nodes=12)
    history = {
        individual.id: individual for individual in run(strategy, lambda individual: individual.id)
    }
    children = [individual for individual in history.values() if individual.parents]
    for child in children:
        assert (
            differences(child.genome, history[child.parents[0]].genome) == len(child.operators) <= 1
        )
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
    assert all(
        binomtest(ranks[k], ranks.total(), p).pvalue > 1e-4
        for k, p in ((0, 1 / 2), (1, 1 / 3), (2, 1 / 6))
    )
    assert ranks[3] == 0
