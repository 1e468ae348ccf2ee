"""Charts of runs at any stage: what they show, and that nothing overlaps or is cut."""

import dataclasses
import itertools
import zlib

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from test_plots import outside, overlapping, visible_texts
from test_report import RESULT, individual_record, write_run

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import STRATEGIES
from jaxevo.errors import InputError
from jaxevo.reports import cell_pictures as plots
from jaxevo.reports import charts
from jaxevo.reports.charts import Point
from jaxevo.run import records
from jaxevo.strategies.registry import make_strategy

SETTINGS = {"population_size": 4, "num_offspring": 4, "stagnation_start": 3, "stagnation_patience": 2, "num_ants": 5}


def make_run(path, number: int = 10**6, **settings) -> records.Run:
    """The first `number` candidates of a search on a fitness by hash, of which one in eleven fails."""
    config = configs.replace(SearchConfig(), SETTINGS | {"num_generations": 15} | settings)
    strategy, listed = make_strategy(config), []
    while (candidates := strategy.ask()) and len(listed) < number:
        value = zlib.crc32(candidates[0].genome.canonical_key().encode())
        told = dataclasses.replace(candidates[0], fitness=None if value % 11 == 0 else 0.9 + value % 97 / 1000)
        strategy.tell(told)
        sizes = {"parameters": 4000 * sum(told.genome.normal.num_nodes for _ in range(2)) + value % 1000}
        listed.append(individual_record(told) | sizes)
    return records.load(write_run(path, listed, config))


def assert_readable(figure) -> list[str]:
    texts = visible_texts(figure)
    assert not overlapping(texts) and not outside(figure, texts)
    return [text for text, _ in texts]


def test_progress_of_a_whole_run(tmp_path):
    run = make_run(tmp_path / "run")
    assert {event.kind for event in run.replay.events} == {"soft", "hard"}
    figure = charts.progress(run)
    said = assert_readable(figure)
    operators = ("add_node", "crossover", "edge_mutation", "op_mutation")
    legends = ("best so far", "median of those born", "soft stagnation avoidance", "hard stagnation avoidance")
    assert {*legends, *operators} <= set(said) and "digits, rea, seed 0" in said
    lines = {line.get_label(): line for axes in figure.axes for line in axes.lines}
    best, fitness = [], [c.individual for c in run.candidates.values() if c.individual.fitness is not None]
    for generation in range(16):
        best.append(max(i.fitness for i in fitness if i.generation <= generation and i.fitness is not None))
    np.testing.assert_allclose(figure.axes[0].lines[0].get_ydata(), best)
    marked = [line.get_xdata()[0] for line in figure.axes[1].lines if len(set(line.get_xdata())) == 1]
    assert marked == [event.generation for event in run.replay.events]
    assert all(0 <= value <= 1 for name in operators for value in lines[name].get_ydata())


@pytest.mark.parametrize(
    "settings",
    [{"number": 1}, {"number": 5}, {"strategy": "aging", "number": 9}, {"strategy": "random"}, {"strategy": "aco"}],
)
def test_runs_of_any_strategy_and_length(settings, tmp_path):
    run = make_run(tmp_path / "run", **settings)
    said = assert_readable(charts.progress(run))
    assert ("no individual has parents" in said) == (not any(c.individual.parents for c in run.candidates.values()))


def test_words_of_a_record_are_no_formulas(tmp_path):
    run = make_run(tmp_path / "run", number=9, dataset="photos/$\\frac{$")
    child = next(c for c in run.candidates.values() if c.individual.parents)
    odd = dataclasses.replace(child, individual=dataclasses.replace(child.individual, operators=("$\\no$", "op$")))
    run.candidates[child.individual.id] = odd
    said = assert_readable(charts.progress(run))
    assert r"\$\no\$" in said and r"op\$" in said


def test_any_number_of_operators_has_lines(tmp_path):
    run = make_run(tmp_path / "run", number=9)
    child = next(c for c in run.candidates.values() if c.individual.parents)
    many = dataclasses.replace(child.individual, operators=tuple(f"operator {k}" for k in range(40)))
    run.candidates[many.id] = dataclasses.replace(child, individual=many)
    assert set(many.operators) <= {line.get_label() for line in charts.progress(run).axes[3].lines}


def test_files_of_a_run(tmp_path):
    run = make_run(tmp_path / "run", number=3)
    names = ["cells.svg", "cells.png", "progress.svg", "progress.png"]
    assert [path.name for path in charts.draw_run(run, tmp_path)] == names
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    assert charts.draw_run(make_run(tmp_path / "empty", number=0), tmp_path) == []


def test_cells_of_any_individual_and_only_pictures_that_are_missing(tmp_path):
    run = make_run(tmp_path / "run", number=9)
    assert run.best is not None
    best = run.best.genome.normal.num_nodes
    other = next(c.individual for c in run.candidates.values() if c.individual.genome.normal.num_nodes != best)
    written = charts.draw_run(run, tmp_path, other.id)
    cells = [f"cells_{other.id}.svg", f"cells_{other.id}.png"]
    assert [path.name for path in written] == [*cells, "progress.svg", "progress.png"]
    assert f"Normal cell, B = {other.genome.normal.num_nodes}" in written[0].read_text()
    written[1].unlink()
    written[2].write_text("there")
    assert charts.draw_run(run, tmp_path, other.id, missing_only=True) == written[:2]
    assert charts.draw_run(run, tmp_path, other.id, missing_only=True) == []
    assert written[2].read_text() == "there"


def test_a_finished_run_on_mnist_stands_beside_the_paper(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", number=3, dataset="mnist")
    seen = {}
    monkeypatch.setattr(plots, "save", lambda figure, path: seen.setdefault(path.name, figure) and [])
    charts.draw_run(dataclasses.replace(run, result=RESULT), tmp_path)
    said = assert_readable(seen["parameters"])
    assert {"EvoA (paper): 220,000, 0.41 %", "this run: 10, 45.00 %"} <= set(said)


@pytest.mark.parametrize("wrong", [{"parameters": 0}, {"test_accuracy": 5.0}, {"test_interval": [0.9, 0.1]}])
def test_a_result_that_has_no_place_is_refused(wrong, tmp_path):
    run = make_run(tmp_path / "run", number=3, dataset="mnist")
    with pytest.raises(InputError, match="the result in .* cannot be drawn: .* restore result.json"):
        charts.draw_run(dataclasses.replace(run, result=RESULT | wrong), tmp_path)


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
    assert box.x0 > axes.x1 and box.x1 <= figure.bbox.x1 and box.y0 >= 0 and box.y1 <= figure.bbox.y1
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


def test_colours_differ_in_grey():
    grey = sorted(np.dot(to_rgb(color), (0.299, 0.587, 0.114)) for color in charts.COLORS)
    assert min(np.diff(grey)) > 0.05


@pytest.mark.parametrize("dataset", ["mnist", "svhn"])
@pytest.mark.parametrize("error", [0.004, 0.08, 0.9])
def test_no_mark_of_the_paper_hides_another(dataset, error):
    figure = charts.parameters_against_error([Point("this run", 60_000, 1 - error), *charts.PAPER[dataset]])
    assert_readable(figure)
    assert_in_place(figure)
    assert all(line.get_fillstyle() == "none" for line in marks(figure))
    places = [figure.axes[0].transData.transform(line.get_xydata()[0]) * 72 / figure.dpi for line in marks(figure)]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) > 4  # points; a mark has 6 to 8


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
    for ticks, (low, high) in ((axes.get_xticks(), axes.get_xlim()), (axes.get_yticks(), axes.get_ylim())):
        assert 2 <= sum(low <= tick <= high for tick in ticks) <= 14
    for line in marks(figure):
        assert figure.axes[0].bbox.padded(1).contains(*axes.transData.transform(line.get_xydata()[0]))


def test_best_so_far_shows_mean_and_spread():
    curves = {"rea": np.array([[0.5, 0.7], [0.7, 0.9]]), "random": np.array([[0.5, 0.6], [0.5, 0.6]])}
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
    fitness = np.maximum.accumulate(np.random.default_rng(0).uniform(0.9, 0.99, (number, seeds, trainings)), axis=2)
    curves = dict(zip(STRATEGIES, fitness, strict=False))
    figure = charts.best_so_far(curves, "digits")
    assert set(curves) <= set(assert_readable(figure))
    assert [axes.get_title() for axes in figure.axes] == list(curves)
    # Nothing in a panel is told apart by colour: one area, and two lines of different width.
    for axes in figure.axes:
        assert len(axes.collections) == (seeds > 1)
        assert len({line.get_linewidth() for line in axes.lines}) == len(axes.lines) <= 2
        assert axes.bbox.width > 0.18 * figure.bbox.width and axes.bbox.height > 0.15 * figure.bbox.height
