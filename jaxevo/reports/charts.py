"""Charts of runs: the course of a search, and the error by size of network.

Lines differ in dashes and markers.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    StrMethodFormatter,
)

from jaxevo.checked import MAX_NUMBER
from jaxevo.errors import InputError
from jaxevo.reports import cell_pictures, paper_tables, summary
from jaxevo.reports.final_charts import draw_confusion, draw_training
from jaxevo.reports.front_chart import draw_front, draw_sizes
from jaxevo.reports.progress_chart import draw_progress
from jaxevo.reports.style import BAND, COLORS, INK, MARKERS, PALE
from jaxevo.run.reader import Run
from jaxevo.run.result import Result
from jaxevo.run.workdir import Workdir


@dataclasses.dataclass(frozen=True)
class Point:
    """A network in the chart of sizes and errors."""

    name: str
    parameters: int
    accuracy: float
    interval: tuple[float, float] | None = None  # of the accuracy
    published: bool = False  # by the paper, not trained here


# The paper's networks whose sizes it gives, by data set.
PAPER = {
    dataset: tuple(
        Point(
            f"{paper_tables.LABELS[model]} (paper)",
            figure.parameters,
            figure.accuracy,
            published=True,
        )
        for model, figure in figures.items()
        if figure.parameters is not None
    )
    for dataset, figures in paper_tables.PUBLISHED.items()
    if dataset != "usps"  # its table has no sizes
}
PAPER["svhn"] = PAPER["svhn_cropped"]


def draw_run(
    run: Run, folder: pathlib.Path, known: int | None = None, *, missing_only: bool = False
) -> list[pathlib.Path]:
    """Writes the pictures of a run, finished or not, and returns the paths written.

    There are none before the first fitness.

    The cells are those of the individual `known`, by default of the best. `missing_only` leaves
    those alone that were drawn after the result was written.
    """
    written = []
    result = Workdir(run.path).result
    since = result.stat().st_mtime_ns if missing_only and result.exists() else 0
    for name, draw in pictures(run, known).items():
        paths = cell_pictures.paths(folder / name)
        drawn = all(path.exists() and path.stat().st_mtime_ns >= since for path in paths)
        if not (missing_only and drawn):
            written += cell_pictures.save(draw(), folder / name)
    return written


def pictures(run: Run, known: int | None = None) -> dict[str, Callable[[], Figure]]:
    """Pictures that a run allows: the names of files, and the functions that draw them."""
    found: dict[str, Callable[[], Figure]] = {}
    if (shown := run.find(known)) is not None:
        found["cells" if known is None else f"cells_{known}"] = lambda: cell_pictures.draw_cells(
            shown.genome, summary.name_of(run, shown)
        )
    if run.best is not None:
        found["progress"] = lambda: draw_progress(run)
        if run.config.seeks_front:
            found["front"] = lambda: draw_front(run)
        else:
            found["sizes"] = lambda: draw_sizes(run)
    result = run.result
    if result is None:
        return found
    if result.final_losses:
        found["training"] = lambda: draw_training(result)
    if (confusion := result.confusion()) is not None:
        found["confusion"] = lambda: draw_confusion(confusion, result.measured_on)
    if result.test_interval and (paper := PAPER.get(run.config.data.dataset)):
        own = _own_point(run.path, result)
        found["parameters"] = lambda: parameters_against_error([own, *paper])
    return found


def _own_point(path: pathlib.Path, result: Result) -> Point:
    """Raises `InputError` for a result that has no place in the chart."""
    assert result.test_accuracy is not None and result.test_interval is not None
    parameters = result.parameters
    accuracy = result.test_accuracy
    (low, high) = result.test_interval
    if not 1 <= parameters <= MAX_NUMBER or not 0 <= low <= accuracy <= high <= 1:
        raise InputError(
            f"the result in {path} cannot be drawn: {parameters:.6g} parameters, test accuracy "
            f"{accuracy:g} in {low:g} to {high:g}; restore result.json from a copy"
        )
    return Point("this run", parameters, accuracy, (low, high))


def parameters_against_error(points: Sequence[Point]) -> Figure:
    """Test error by number of parameters, both logarithmic.

    Points of a name share marker, colour and legend entry.

    Markers are hollow, so that none hides another; the paper's are black. The legend stands beside
    the axes, and the figure is as high as it.
    """
    named: dict[str, list[Point]] = {}
    for point in points:
        named.setdefault(point.name, []).append(point)
    figure = Figure(figsize=(9.5, max(5.0, 0.2 * len(named) + 0.6)), layout="constrained")
    axes = figure.subplots()
    for k, (name, group) in enumerate(named.items()):
        _points(axes, name, group, marker=MARKERS[k % len(MARKERS)], color=COLORS[k % len(COLORS)])
    sizes = [point.parameters for point in points]
    axes.set(xscale="log", xlabel="parameters", ylabel="test error (%)")
    ticks, limits = _log_ticks(min(sizes), max(sizes))
    axes.set_xticks(ticks)
    axes.set_xlim(limits)
    axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
    axes.xaxis.set_minor_locator(NullLocator())
    _error_axis(axes, points)
    axes.grid(color="#ebebeb")
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    return figure


def _points(axes: Axes, name: str, group: Sequence[Point], *, marker: str, color: str) -> None:
    """Points of a name, and their mean in the legend."""
    sizes = [point.parameters for point in group]
    errors = [100 * (1 - point.accuracy) for point in group]
    of = f", mean of {len(group)}" if len(group) > 1 else ""
    label = f"{name}{of}: {statistics.fmean(sizes):,.0f}, {statistics.fmean(errors):.2f} %"
    ink, size, width = (INK, 6, 1.0) if group[0].published else (color, 8, 1.6)
    style = {
        "linestyle": "none",
        "marker": marker,
        "fillstyle": "none",
        "markersize": size,
        "markeredgewidth": width,
    }
    axes.plot(sizes, errors, label=label, color=ink, clip_on=False, zorder=3, **style)
    for point, error in zip(group, errors, strict=True):
        if point.interval is not None:
            low, high = point.interval
            bars = [[100 * (high - point.accuracy)], [100 * (point.accuracy - low)]]
            axes.errorbar(
                point.parameters, error, bars, linestyle="none", color=ink, capsize=3, linewidth=1.0
            )


def _error_axis(axes: Axes, points: Sequence[Point]) -> None:
    """Logarithmic; if there is an error of zero, linear below the least one above it."""
    errors = [
        100 * (1 - value) for point in points for value in (point.accuracy, *(point.interval or ()))
    ]
    above = [error for error in errors if error > 0] or [1.0]
    ticks, (low, high) = _log_ticks(min(above), max(above))
    if min(errors) > 0:
        axes.set_yscale("log")
    else:
        axes.set_yscale("symlog", linthresh=low, linscale=0.3)
        ticks, low = [0.0, *ticks], 0.0
    axes.set_yticks(ticks)
    axes.set_ylim(low, min(high, 110))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _log_ticks(least: float, most: float) -> tuple[list[float], tuple[float, float]]:
    """At least two and at most about ten ticks of a logarithmic axis, and its limits.

    The limits leave some room.
    """
    low, high = least / 1.1, most * 1.1
    powers = [
        10.0**k for k in range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ]
    fine = (1, 1.5, 2, 3, 4, 5, 6, 8)
    numbers = [digit * power for power in powers for digit in fine]
    limits = (
        max(number for number in numbers if number <= low),
        min(number for number in numbers if number >= high),
    )
    digits = (1,) if high > 1000 * low else (1, 2, 5) if high > 8 * low else fine
    return [
        d * power for power in powers for d in digits if limits[0] <= d * power <= limits[1]
    ], limits


def best_so_far(curves: Mapping[str, np.ndarray], what: str) -> Figure:
    """Best fitness by trainings done.

    `curves` are `[seeds, trainings]`: their mean is drawn, and the span from the least to the most.

    A panel for each, so that no number of them is too large to be told apart; the first one's mean
    is in all.
    """
    (first, reference), *_ = curves.items()
    columns = math.ceil(math.sqrt(len(curves)))
    rows = math.ceil(len(curves) / columns)
    figure = Figure(figsize=(max(7.5, 3.0 * columns), 1.4 + 2.3 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flatten()
    for k, (axes, (name, values)) in enumerate(zip(panels, curves.items(), strict=False)):
        _seeds(axes, values)
        if k:  # wide and below, so that it is seen where the two agree
            _steps(
                axes, reference.mean(0), f"mean of {first}", color=PALE, linewidth=4.0, zorder=1.5
            )
        axes.set_title(name, fontsize=10)
        if k + columns >= len(curves):
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("trainings done\n(isomorphic genomes not counted)", fontsize=9)
        axes.grid(color="#ebebeb")
        axes.set_axisbelow(True)
    panels[0].yaxis.set_major_formatter(PercentFormatter(1.0))
    panels[0].xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for axes in panels[len(curves) :]:
        axes.remove()
    figure.suptitle(what, fontsize=12)
    figure.supylabel("best validation accuracy so far", fontsize=10)
    entries = panels[len(curves) - 1].get_legend_handles_labels()
    figure.legend(*entries, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure


def _seeds(axes: Axes, values: np.ndarray) -> None:
    """Mean and spread of `[seeds, trainings]`."""
    if len(values) > 1:
        trainings = np.arange(1, values.shape[1] + 1)
        label = "from its worst seed to its best"
        axes.fill_between(
            trainings,
            values.min(0),
            values.max(0),
            color=BAND,
            linewidth=0,
            step="post",
            label=label,
        )
    _steps(
        axes,
        values.mean(0),
        "its mean",
        color=INK,
        linewidth=1.5,
        marker="o",
        markersize=4,
        markevery=[-1],
    )


def _steps(axes: Axes, values: np.ndarray, label: str, **style: Any) -> None:
    axes.plot(np.arange(1, len(values) + 1), values, label=label, drawstyle="steps-post", **style)
