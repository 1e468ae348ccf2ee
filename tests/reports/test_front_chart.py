"""The chart of a front: what it shows, and that it is legible."""

from __future__ import annotations

import dataclasses

import numpy as np
from builders_figures import assert_readable
from builders_runs import hash_run, make_result

from jaxevo.reports.charts import draw_run
from jaxevo.reports.front_chart import draw_front
from jaxevo.run.front import candidate_points
from jaxevo.run.result import Kept
from jaxevo.strategies.dominance import dominates


def test_the_front_of_a_run(tmp_path):
    run = hash_run(tmp_path / "run", strategy="nsga2")
    figure = draw_front(run)
    said = assert_readable(figure)
    assert {"front of the search", "its knee", "each candidate, in the search"} <= set(said)
    points = candidate_points(run.candidates.values())
    drawn = np.array(figure.axes[0].lines[0].get_xydata())
    for cost, fitness in drawn:
        assert (fitness, cost) in points
        assert not any(dominates(point, (fitness, cost)) for point in points)
    # The hypervolume never shrinks.
    areas = figure.axes[1].lines[0].get_ydata()
    assert len(areas) == len(points) and np.all(np.diff(areas) >= 0)
    # Networks that were trained to the end are drawn too.
    first = min(run.candidates)
    kept = (Kept(first, 0.9, 0.95, 100),)
    result = make_result(tmp_path, id=max(run.candidates), validation_accuracy=0.99, kept=kept)
    said = assert_readable(draw_front(dataclasses.replace(run, result=result)))
    assert "trained to the end: validation accuracy" in said


def test_only_searches_with_two_objectives_have_one(tmp_path):
    for strategy, expected in (("nsga2", True), ("random", False)):
        run = hash_run(tmp_path / strategy, strategy=strategy, number=9)
        written = draw_run(run, tmp_path / strategy)
        assert any(path.stem == "front" for path in written) == expected
