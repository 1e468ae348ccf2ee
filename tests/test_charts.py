"""Charts of runs at any stage: what they show, and that nothing overlaps or is cut."""

import dataclasses
import zlib

import numpy as np
import pytest
from test_plots import outside, overlapping, visible_texts
from test_report import RESULT, individual_record, write_run

from jaxevo import charts, plots, records
from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.strategies import make_strategy

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


def test_files_of_a_run(tmp_path):
    run = make_run(tmp_path / "run", number=3)
    names = ["cells.svg", "cells.png", "progress.svg", "progress.png"]
    assert [path.name for path in charts.draw_run(run, tmp_path)] == names
    assert all((tmp_path / name).stat().st_size > 1000 for name in names)
    assert charts.draw_run(make_run(tmp_path / "empty", number=0), tmp_path) == []


def test_a_finished_run_on_mnist_stands_beside_the_paper(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", number=3, dataset="mnist")
    seen = {}
    monkeypatch.setattr(plots, "save", lambda figure, path: seen.setdefault(path.name, figure) and [])
    charts.draw_run(dataclasses.replace(run, result=RESULT), tmp_path)
    said = assert_readable(seen["parameters"])
    assert {"EvoA (paper): 220,000, 0.41 %", "this run: 10, 45.00 %"} <= set(said)


def test_sizes_and_errors_are_where_they_belong():
    figure = charts.parameters_against_error([charts.Point("ours", 50_000, 0.99, (0.98, 0.995))])
    (container,) = figure.axes[0].containers
    assert container[0].get_xydata().tolist() == [[50_000.0, pytest.approx(1.0)]]
    (bar,) = container[2][0].get_segments()
    np.testing.assert_allclose(bar[:, 1], [0.5, 2.0])


def test_best_so_far_shows_mean_and_spread():
    curves = {"rea": np.array([[0.5, 0.7], [0.7, 0.9]]), "random": np.array([[0.5, 0.6], [0.5, 0.6]])}
    figure = charts.best_so_far(curves, "digits, 2 seeds")
    said = assert_readable(figure)
    assert {"rea", "random", "digits, 2 seeds"} <= set(said)
    np.testing.assert_allclose(figure.axes[0].lines[0].get_xydata(), [[1, 0.6], [2, 0.8]])
    spread = figure.axes[0].collections[0].get_paths()[0].vertices
    assert spread[:, 1].min() == 0.5 and spread[:, 1].max() == 0.9
