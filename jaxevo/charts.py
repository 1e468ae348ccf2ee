"""Charts of runs: how a search went, and what size of network has which error. Lines differ in dashes and markers."""

from __future__ import annotations

import dataclasses
import pathlib
import statistics
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from jaxevo import plots, report, reproduction
from jaxevo.asktell import Individual
from jaxevo.records import Run

INK, GREY, LIGHT = "#1a1a1a", "#777777", "#c4c4c4"
STYLES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
COLORS = ("#08519c", "#b35806", "#1a1a1a", "#7a7a7a", "#35978f", "#8e6fb0")
MARKERS = "osD^vP*Xhp<>"
_BINS = 10  # points of a line of operator success


@dataclasses.dataclass(frozen=True)
class Point:
    """A network in the chart of sizes and errors."""

    name: str
    parameters: int
    accuracy: float
    interval: tuple[float, float] | None = None  # of the accuracy


# The paper's networks whose sizes it gives, by data set.
PAPER = {
    dataset: tuple(
        Point(f"{reproduction.LABELS[model]} (paper)", figure.parameters, figure.accuracy)
        for model, figure in figures.items()
        if figure.parameters is not None
    )
    for dataset, figures in reproduction.PUBLISHED.items()
    if dataset != "usps"  # its table has no sizes
}
PAPER["svhn"] = PAPER["svhn_cropped"]


def draw_run(run: Run, folder: pathlib.Path) -> list[pathlib.Path]:
    """Writes the pictures of a run, finished or not, and returns their paths: none before the first fitness."""
    written = []
    if run.best is not None:
        written += plots.save(plots.draw_cells(run.best.genome), folder / "cells")
        written += plots.save(progress(run), folder / "progress")
    if run.result and run.config.data.dataset in PAPER:
        result = run.result
        own = Point("this run", result["parameters"], result["test_accuracy"], tuple(result["test_interval"]))
        paper = PAPER[run.config.data.dataset]
        written += plots.save(parameters_against_error([*paper, own]), folder / "parameters")
    return written


def progress(run: Run) -> Figure:
    """Fitness, B, parameters and the success of operators, all by generation, with stagnation avoidances."""
    figure = Figure(figsize=(9, 10), layout="constrained")
    panels = figure.subplots(4, 1, sharex=True)
    _fitness(panels[0], run)
    rows = report.generations(run)
    for values, name, style in (
        ([row.nodes_normal for row in rows], "normal cells", 0),
        ([row.nodes_reduction for row in rows], "reduction cells", 1),
    ):
        _line(panels[1], [row.generation for row in rows], values, f"mean, {name}", style)
    panels[1].set_ylabel("B of those born")
    _parameters(panels[2], run)
    _operators(panels[3], run)
    for axes in panels:
        for event in run.replay.events:
            axes.axvline(event.generation, color=GREY, linewidth=0.9, linestyle=":" if event.kind == "soft" else "-")
        axes.grid(color="#ebebeb")
        axes.set_axisbelow(True)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    panels[-1].set_xlabel("generation")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    dataset = pathlib.Path(run.config.data.dataset).name[-40:]
    figure.suptitle(_plain(f"{dataset}, {run.config.strategy}, seed {run.config.seed}"), fontsize=12)
    return figure


def _plain(text: str) -> str:
    """Words of a record, in which dollars would begin a formula."""
    return text.replace("$", r"\$")


def _line(axes: Axes, x: Sequence[float], y: Sequence[float], label: str, style: int) -> None:
    marker = MARKERS[style] if len(x) < 40 else None
    color, dashes = COLORS[style % len(COLORS)], STYLES[style % len(STYLES)]
    axes.plot(x, y, label=label, color=color, linestyle=dashes, marker=marker, markersize=4, linewidth=1.6)


def _fitness(axes: Axes, run: Run) -> None:
    rows = [row for row in report.generations(run) if row.best is not None and row.median is not None]
    individuals = [candidate.individual for candidate in run.candidates.values()]
    points = np.array([(i.generation, i.fitness) for i in individuals if i.fitness is not None]).reshape(-1, 2)
    axes.scatter(points[:, 0], points[:, 1], s=9, color=LIGHT, label="each candidate")
    generations = [row.generation for row in rows]
    _line(axes, generations, [row.best for row in rows if row.best is not None], "best so far", 0)
    _line(axes, generations, [row.median for row in rows if row.median is not None], "median of those born", 1)
    for kind, style in (("soft", ":"), ("hard", "-")):
        if any(event.kind == kind for event in run.replay.events):
            axes.plot([], [], color=GREY, linewidth=0.9, linestyle=style, label=f"{kind} stagnation avoidance")
    axes.set_ylabel("fitness (validation accuracy)")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _parameters(axes: Axes, run: Run) -> None:
    sizes: dict[int, list[int]] = {}
    best: Individual | None = None
    bests: dict[int, int] = {}
    for candidate in run.candidates.values():
        individual = candidate.individual
        sizes.setdefault(individual.generation, []).append(candidate.parameters)
        if individual.fitness is not None and (best is None or individual.fitness > (best.fitness or 0.0)):
            best = individual
        if best is not None:
            bests[individual.generation] = run.candidates[best.id].parameters
    _line(axes, list(bests), list(bests.values()), "of the best so far", 0)
    _line(axes, list(sizes), [statistics.median(values) for values in sizes.values()], "median of those born", 1)
    axes.set_ylabel("parameters")
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def _operators(axes: Axes, run: Run) -> None:
    """The share of an operator's children that beat their better parent, over some generations each."""
    children = [c.individual for c in run.candidates.values() if c.individual.parents]
    axes.set_ylabel("children that beat\ntheir better parent")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if not children:
        axes.text(0.5, 0.5, "no individual has parents", ha="center", va="center", transform=axes.transAxes)
        return
    last = max(child.generation for child in children)
    edges = np.linspace(1, last + 1, min(_BINS, last) + 1)
    for style, operator in enumerate(sorted({name for child in children for name in child.operators})):
        x, y = [], []
        for low, high in zip(edges, edges[1:], strict=False):
            outcomes = [
                report.beats_parents(run, child)
                for child in children
                if operator in child.operators and low <= child.generation < high
            ]
            if outcomes:
                x.append((low + min(high - 1, last)) / 2)
                y.append(statistics.fmean(outcomes))
        _line(axes, x, y, _plain(operator), style)


def parameters_against_error(points: Sequence[Point]) -> Figure:
    """Test error by number of parameters; those of the paper hollow. The legend names them, so no label overlaps."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    for k, point in enumerate(points):
        error, bars = 100 * (1 - point.accuracy), None
        if point.interval is not None:
            low, high = point.interval
            bars = [[100 * (high - point.accuracy)], [100 * (point.accuracy - low)]]
        axes.errorbar(
            *(point.parameters, error, bars),
            **{"linestyle": "none", "marker": MARKERS[k % len(MARKERS)], "markersize": 8, "capsize": 3},
            color=COLORS[k % len(COLORS)],
            markerfacecolor="white" if "(paper)" in point.name else COLORS[k % len(COLORS)],
            label=f"{point.name}: {point.parameters:,}, {error:.2f} %",
        )
    sizes = [point.parameters for point in points]
    decade = 10 ** np.floor(np.log10(min(sizes)) - 0.05)
    axes.set(xscale="log", xlim=(decade, max(2 * max(sizes), 20 * decade)))
    axes.xaxis.set_major_formatter(EngFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(y=0.15)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="parameters", ylabel="test error (%)")
    axes.grid(color="#ebebeb", which="both")
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    return figure


def best_so_far(curves: Mapping[str, np.ndarray], what: str) -> Figure:
    """Best fitness by trainings done; `curves` are `[seeds, trainings]`: their mean, and from the least to the most."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    for k, (name, values) in enumerate(curves.items()):
        trainings = np.arange(1, values.shape[1] + 1)
        color, dashes = COLORS[k % len(COLORS)], STYLES[k % len(STYLES)]
        style = {"color": color, "linestyle": dashes, "linewidth": 1.8, "drawstyle": "steps-post"}
        axes.plot(trainings, values.mean(0), label=name, **style)
        if len(values) > 1:
            axes.fill_between(
                trainings, values.min(0), values.max(0), color=color, alpha=0.12, linewidth=0, step="post"
            )
    axes.set(xlabel="trainings done (isomorphic genomes not counted)", ylabel="best validation accuracy so far")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(what, fontsize=11)
    axes.grid(color="#ebebeb")
    axes.set_axisbelow(True)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    return figure
