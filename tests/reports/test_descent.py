"""The success of operators: a hand-worked table."""

from __future__ import annotations

import dataclasses
import math

import pytest
from builders_runs import table_records, write_run

from jaxevo.reports import descent
from jaxevo.run.reader import load_run


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's formula."""
    z, p = 1.959963984540054, successes / trials
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    low, high = (
        (p + z * z / (2 * trials) + side * half) / (1 + z * z / trials) for side in (-1, 1)
    )
    return low, high


def as_tuple(rate: descent.Rate | None) -> tuple | None:
    return None if rate is None else dataclasses.astuple(rate)


def test_operator_success_of_the_table(tmp_path):
    rows = descent.operator_success(load_run(write_run(tmp_path, table_records())))
    expected = {  # beaten and survived: only generations 0 and 1 are complete
        "crossover": (3, (1, 3), (1, 2)),
        "random": (3, None, (2, 3)),
        "op_mutation": (2, (1, 2), (1, 1)),
    }
    assert [row.operator for row in rows] == list(expected)
    for row in rows:
        applied, *rates = expected[row.operator]
        assert row.applied == applied
        for rate, counts in zip((row.beat_better_parent, row.survived), rates, strict=True):
            assert as_tuple(rate) == (
                None if counts is None else pytest.approx((*counts, *interval(*counts)))
            )
