"""The chart of a search's progress, of runs at any stage: what it shows, and that it is legible."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from builders_figures import assert_readable
from builders_runs import hash_run

from jaxevo.reports.progress_chart import draw_progress


def test_progress_of_a_whole_run(tmp_path):
    run = hash_run(tmp_path / "run")
    assert {event.kind for event in run.replay.events} == {"soft", "hard"}
    figure = draw_progress(run)
    said = assert_readable(figure)
    operators = ("add_node", "crossover", "edge_mutation", "op_mutation")
    legends = (
        "best so far",
        "median of those born",
        "soft stagnation avoidance",
        "hard stagnation avoidance",
    )
    assert {*legends, *operators} <= set(said) and "digits, rea, seed 0" in said
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    best, fitness = (
        [],
        [c.individual for c in run.candidates.values() if c.individual.fitness is not None],
    )
    for generation in range(16):
        best.append(
            max(i.fitness for i in fitness if i.generation <= generation and i.fitness is not None)
        )
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), best)
    marked = [
        line.get_xdata()[0] for line in figure.axes[1].lines if len(set(line.get_xdata())) == 1
    ]
    assert marked == [event.generation for event in run.replay.events]
    assert all(0 <= value <= 1 for name in operators for value in lines[name].get_ydata())


@pytest.mark.parametrize(
    "settings",
    [
        {"number": 1},
        {"number": 5},
        {"strategy": "aging", "number": 9},
        {"strategy": "random"},
        {"strategy": "aco"},
    ],
)
def test_runs_of_any_strategy_and_length(settings, tmp_path):
    run = hash_run(tmp_path / "run", **settings)
    said = assert_readable(draw_progress(run))
    assert ("no individual has parents" in said) == (
        not any(c.individual.parents for c in run.candidates.values())
    )


def test_words_of_a_record_are_no_formulas(tmp_path):
    run = hash_run(tmp_path / "run", number=9, dataset="photos/$\\frac{$")
    child = next(c for c in run.candidates.values() if c.individual.parents)
    odd = dataclasses.replace(
        child, individual=dataclasses.replace(child.individual, operators=("$\\no$", "op$"))
    )
    run.candidates[child.individual.id] = odd
    said = assert_readable(draw_progress(run))
    assert r"\$\no\$" in said and r"op\$" in said


def test_any_number_of_operators_has_lines(tmp_path):
    run = hash_run(tmp_path / "run", number=9)
    child = next(c for c in run.candidates.values() if c.individual.parents)
    many = dataclasses.replace(
        child.individual, operators=tuple(f"operator {k}" for k in range(40))
    )
    run.candidates[many.id] = dataclasses.replace(child, individual=many)
    assert set(many.operators) <= {line.get_label() for line in draw_progress(run).axes[3].lines}
