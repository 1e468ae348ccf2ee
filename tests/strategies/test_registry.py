"""Strategies by name, and whether they find what is known to be there."""

from __future__ import annotations

import runpy

import numpy as np
import pytest
from builders_strategies import (
    KINDS,
    make,
    run,
    table_fitness,
)
from conftest import REPOSITORY
from scipy.stats import wilcoxon


@pytest.mark.parametrize("name", KINDS)
def test_strategies_by_name(name: str):
    strategy = make(strategy=name, seed=7)
    assert type(strategy) is KINDS[name]
    assert strategy.best is None and not strategy.done
    assert str(run(strategy, table_fitness)) == str(run(make(strategy=name, seed=7), table_fitness))
    assert str(run(make(strategy=name, seed=8), table_fitness)) != str(
        run(make(strategy=name, seed=7), table_fitness)
    )


@pytest.mark.parametrize(("noise", "bound"), [(0.0, 1e-3), (0.02, 1e-2)])
def test_all_beat_random_search_where_the_best_is_known(noise: float, bound: float):
    found = runpy.run_path(str(REPOSITORY / "benchmarks" / "strategies.py"))["found"]
    best = {
        name: np.array([found(name, seed, 120, (6, 6), noise) for seed in range(20)])
        for name in ("rea", "aging", "aco", "random")
    }
    for name in ("rea", "aging", "aco"):
        assert wilcoxon(best[name] - best["random"], alternative="greater").pvalue < bound, name
