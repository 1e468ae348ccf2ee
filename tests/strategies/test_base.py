"""`evolve`: any strategy with any fitness, to its end."""

from __future__ import annotations

import pytest
from builders_strategies import (
    count_conv_3x3,
    make,
    run,
)

from jaxevo.strategies.base import evolve
from jaxevo.strategies.individual import rank


def test_evolve_runs_to_the_end_with_any_fitness():
    best = evolve(make(), count_conv_3x3)
    history = run(make(), lambda i: count_conv_3x3(i.genome))
    assert best == min(history, key=rank)
    assert best.fitness == count_conv_3x3(best.genome)


def test_evolve_ends_when_nothing_can_be_evaluated():
    calls = []
    with pytest.raises(RuntimeError, match="4 candidates in a row have no fitness"):
        evolve(make(), lambda genome: calls.append(genome), max_consecutive_failures=4)
    assert len(calls) == 4
