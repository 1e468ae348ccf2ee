"""Charts of sizes, errors and strategies: what they show, and that nothing overlaps or is cut."""

from __future__ import annotations

import dataclasses
import itertools
import os

import numpy as np
import pytest
from builders_figures import assert_readable
from builders_runs import hash_run, make_result
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jaxevo.config.presets import STRATEGIES
from jaxevo.errors import InputError
from jaxevo.reports import cell_pictures, charts
from jaxevo.reports.charts import Point
from jaxevo.run.workdir import Workdir


def test_files_of_a_run(tmp_path):
    run = hash_run(tmp_path / "run", number=3)
    names = ["cells.svg", "cells.png", "progress.svg", "progress.png", "sizes.svg", "sizes.png"]
    assert [path.name for path in charts.draw_run(run, tmp_path)] == names
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    assert charts.draw_run(hash_run(tmp_path / "empty", number=0), tmp_path) == []


def test_cells_of_any_individual_and_only_pictures_that_are_missing(tmp_path):
    run = hash_run(tmp_path / "run", number=9)
    assert run.best is not None
    best = run.best.genome.normal.num_nodes
    other = next(
        c.individual
        for c in run.candidates.values()
        if c.individual.genome.normal.num_nodes != best
    )
    written = charts.draw_run(run, tmp_path, other.id)
    cells = [f"cells_{other.id}.svg", f"cells_{other.id}.png"]
    assert [path.name for path in written] == [
        *(*cells, "progress.svg", "progress.png", "sizes.svg", "sizes.png")
    ]
    assert f"(B = {other.genome.normal.num_nodes})" in written[0].read_text()
    written[1].unlink()
    written[2].write_text("there")
    assert charts.draw_run(run, tmp_path, other.id, missing_only=True) == written[:2]
    assert charts.draw_run(run, tmp_path, other.id, missing_only=True) == []
    assert written[2].read_text() == "there"
    # Those of before the result are of a run that was continued.
    result = Workdir(run.path).result
    result.write_text("{}")
    later = written[2].stat().st_mtime + 10
    for path in (result, *written[:2]):
        os.utime(path, (later, later))
    assert charts.draw_run(run, tmp_path, other.id, missing_only=True) == written[2:]


def test_a_finished_run_on_mnist_stands_beside_the_paper(tmp_path, monkeypatch):
    run = hash_run(tmp_path / "run", number=3, dataset="mnist")
    seen = {}
    monkeypatch.setattr(
        cell_pictures, "save", lambda figure, path: seen.setdefault(path.name, figure) and []
    )
    charts.draw_run(dataclasses.replace(run, result=make_result(run.path)), tmp_path)
    said = assert_readable(seen["parameters"])
    assert {"EvoA (paper): 220,000, 0.41 %", "this run: 10, 45.00 %"} <= set(said)


@pytest.mark.parametrize(
    "wrong", [{"parameters": 0}, {"test_accuracy": 5.0}, {"test_interval": [0.9, 0.1]}]
)
def test_a_result_that_has_no_place_is_refused(wrong, tmp_path):
    run = hash_run(tmp_path / "run", number=3, dataset="mnist")
    with pytest.raises(
        InputError, match="the result in .* cannot be drawn: .* restore result.json"
    ):
        charts.draw_run(dataclasses.replace(run, result=make_result(run.path, **wrong)), tmp_path)


def test_sizes_and_errors_are_where_they_belong():
    figure = charts.parameters_against_error([Point("ours", 50_000, 0.99, (0.98, 0.995))])
    assert marks(figure)[0].get_xydata() == pytest.approx(np.array([[50_000.0, 1.0]]))
    (container,) = figure.axes[0].containers
    (bar,) = container[2][0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.5, 2.0])


def marks(figure: Figure) -> list[Line2D]:
    """The markers of each name in a chart of sizes and errors."""
    return [line for line in figure.axes[0].lines if not line.get_label().startswith("_")]


def assert_in_place(figure: Figure) -> None:
    """The legend within the figure, and axes that the legend leaves enough of it."""
    legend, axes = figure.axes[0].get_legend(), figure.axes[0].bbox
    assert legend is not None
    box = legend.get_window_extent()
    assert (
        box.x0 > axes.x1 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1
    )
    assert axes.width > 0.45 * figure.bbox.width and axes.height > 0.75 * figure.bbox.height


def winners(names: list[str], seeds: int) -> list[Point]:
    rng = np.random.default_rng(0)
    return [
        Point(name, int(rng.integers(10_000, 400_000)), 1 - float(rng.uniform(0.004, 0.05)))
        for name in names
        for _ in range(seeds)
    ]


@pytest.mark.parametrize(("number", "seeds"), [(1, 1), (6, 10), (10, 6), (40, 2)])
def test_many_networks_share_the_marks_of_their_names(number, seeds):
    names = [*STRATEGIES, *(f"strategy {k}" for k in range(31))][:number]
    points = [*winners(names, seeds), *charts.PAPER["mnist"]]
    figure = charts.parameters_against_error(points)
    said = assert_readable(figure)
    assert_in_place(figure)
    drawn = marks(figure)
    assert [len(line.get_xdata()) for line in drawn] == [seeds] * number + [1] * 4
    assert len({(line.get_marker(), line.get_color()) for line in drawn}) == len(drawn)
    if number <= 10:  # in grey too
        assert len({line.get_marker() for line in drawn}) == len(drawn)
    sizes = [point.parameters for point in points if point.name == names[0]]
    of = f", mean of {seeds}" if seeds > 1 else ""
    assert any(text.startswith(f"{names[0]}{of}: {np.mean(sizes):,.0f}, ") for text in said)


@pytest.mark.parametrize("dataset", ["mnist", "svhn"])
@pytest.mark.parametrize("error", [0.004, 0.08, 0.9])
def test_no_mark_of_the_paper_hides_another(dataset, error):
    figure = charts.parameters_against_error(
        [Point("this run", 60_000, 1 - error), *charts.PAPER[dataset]]
    )
    assert_readable(figure)
    assert_in_place(figure)
    assert all(line.get_fillstyle() == "none" for line in marks(figure))
    places = [
        figure.axes[0].transData.transform(line.get_xydata()[0]) * 72 / figure.dpi
        for line in marks(figure)
    ]
    assert (
        min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) > 4
    )  # points; a mark has 6 to 8


@pytest.mark.parametrize(
    ("sizes", "errors"),
    [
        ((50_000, 50_000), (0.02, 0.02)),
        ((30_000, 49_000), (0.004, 0.9)),
        ((900, 11_000_000), (0.0001, 1.0)),
        ((1, 10**12), (0.0, 0.03)),
        ((9_000, 100_000), (0.0, 0.0)),
    ],
)
def test_ticks_of_any_range(sizes, errors):
    points = [Point(f"network {k}", sizes[k], 1 - errors[k]) for k in range(2)]
    figure = charts.parameters_against_error(points)
    assert_readable(figure)
    axes = figure.axes[0]
    for ticks, (low, high) in (
        (axes.get_xticks(), axes.get_xlim()),
        (axes.get_yticks(), axes.get_ylim()),
    ):
        assert 2 <= sum(low <= tick <= high for tick in ticks) <= 14
    for line in marks(figure):
        assert (
            figure.axes[0].bbox.padded(1).contains(*axes.transData.transform(line.get_xydata()[0]))
        )


def test_best_so_far_shows_mean_and_spread():
    curves = {
        "rea": np.array([[0.5, 0.7], [0.7, 0.9]]),
        "random": np.array([[0.5, 0.6], [0.5, 0.6]]),
    }
    figure = charts.best_so_far(curves, "digits, 2 seeds")
    said = assert_readable(figure)
    assert {"rea", "random", "mean of rea", "digits, 2 seeds"} <= set(said)
    first, second = figure.axes
    np.testing.assert_allclose(first.lines[0].get_xydata(), [[1, 0.6], [2, 0.8]])
    spread = first.collections[0].get_paths()[0].vertices
    assert spread[:, 1].min() == 0.5 and spread[:, 1].max() == 0.9
    lines = {line.get_label(): line.get_ydata() for line in second.lines}
    np.testing.assert_allclose(lines["its mean"], [0.5, 0.6])
    np.testing.assert_allclose(lines["mean of rea"], [0.6, 0.8])


@pytest.mark.parametrize(("number", "seeds", "trainings"), [(1, 1, 1), (10, 3, 300)])
def test_best_so_far_of_any_number_of_strategies(number, seeds, trainings):
    fitness = np.maximum.accumulate(
        np.random.default_rng(0).uniform(0.9, 0.99, (number, seeds, trainings)), axis=2
    )
    curves = dict(zip(STRATEGIES, fitness, strict=False))
    figure = charts.best_so_far(curves, "digits")
    assert set(curves) <= set(assert_readable(figure))
    assert [axes.get_title() for axes in figure.axes] == list(curves)
    # Nothing in a panel is told apart by colour: one area, and two lines of different width.
    for axes in figure.axes:
        assert len(axes.collections) == (seeds > 1)
        assert len({line.get_linewidth() for line in axes.lines}) == len(axes.lines) <= 2
        assert (
            axes.bbox.width > 0.18 * figure.bbox.width
            and axes.bbox.height > 0.15 * figure.bbox.height
        )
