"""Random search: every size alike."""

from __future__ import annotations

from collections import Counter

from builders_strategies import (
    ids,
    make,
    run,
    sizes,
)
from scipy.stats import binomtest


def test_random_search_draws_every_size_alike():
    strategy = make(strategy="random", num_generations=400, min_nodes=2)
    drawn = Counter(
        sizes(individual.genome) for individual in run(strategy, lambda individual: 0.5)
    )
    assert set(drawn) == {(a, b) for a in (2, 3, 4) for b in (2, 3, 4)}
    assert all(binomtest(count, drawn.total(), 1 / 9).pvalue > 1e-4 for count in drawn.values())
    assert ids(strategy.population) == [0, 1, 2, 3]  # of equals the older ones
