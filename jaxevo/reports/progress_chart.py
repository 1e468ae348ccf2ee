"""The chart of a search's progress: fitness, nodes, parameters and operators by generation."""

from __future__ import annotations

import statistics

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from jaxevo.reports import summary
from jaxevo.reports.descent import beats_parents
from jaxevo.reports.style import BAND, FITNESS, GREY, LIGHT, line, logarithmic, plain
from jaxevo.run.reader import Run
from jaxevo.strategies.individual import Individual

_BINS = 10  # points of a line of operator success


def draw_progress(run: Run) -> Figure:
    """Fitness, B, parameters and the success of operators, all by generation.

    Stagnation avoidances are marked.
    """
    figure = Figure(figsize=(9, 10), layout="constrained")
    panels = figure.subplots(4, 1, sharex=True)
    _fitness(panels[0], run)
    rows = summary.generations(run)
    for values, name, style in (
        ([row.nodes_normal for row in rows], "normal cells", 0),
        ([row.nodes_reduction for row in rows], "reduction cells", 1),
    ):
        line(
            panels[1],
            [row.generation for row in rows],
            values,
            label=f"mean of {name}",
            style=style,
        )
    panels[1].set_ylabel("nodes of a cell (B)\nof those born")
    _parameters(panels[2], run)
    _operators(panels[3], run)
    # The last generation, while it lacks individuals.
    young = run.replay.generation
    if any(row.generation == young for row in rows):
        for axes in panels:
            axes.axvspan(young - 0.5, young + 0.5, color=BAND, zorder=0)
        panels[0].fill_between([], [], color=BAND, label=f"generation {young} is not complete")
    for axes in panels:
        for event in run.replay.events:
            axes.axvline(
                event.generation,
                color=GREY,
                linewidth=0.9,
                linestyle=":" if event.kind == "soft" else "-",
            )
        axes.grid(color="#ebebeb")
        axes.set_axisbelow(True)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(
                loc="center left",
                bbox_to_anchor=(1.01, 0.5),
                frameon=False,
                fontsize=9,
                handlelength=3.5,
            )
    panels[-1].set_xlabel("generation")
    panels[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    dataset = summary.data_name(run)
    figure.suptitle(plain(f"{dataset}, {run.config.strategy}, seed {run.config.seed}"), fontsize=12)
    return figure


def _fitness(axes: Axes, run: Run) -> None:
    rows = [
        row for row in summary.generations(run) if row.best is not None and row.median is not None
    ]
    individuals = [candidate.individual for candidate in run.candidates.values()]
    points = np.array(
        [(i.generation, i.fitness) for i in individuals if i.fitness is not None]
    ).reshape(-1, 2)
    axes.scatter(points[:, 0], points[:, 1], s=9, color=LIGHT, label="each candidate")
    generations = [row.generation for row in rows]
    line(
        axes,
        generations,
        [row.best for row in rows if row.best is not None],
        label="best so far",
        style=0,
    )
    line(
        axes,
        generations,
        [row.median for row in rows if row.median is not None],
        label="median of those born",
        style=1,
    )
    for kind, style in (("soft", ":"), ("hard", "-")):
        if any(event.kind == kind for event in run.replay.events):
            axes.plot(
                [],
                [],
                color=GREY,
                linewidth=0.9,
                linestyle=style,
                label=f"{kind} stagnation avoidance",
            )
    axes.set_ylabel(FITNESS[run.config.fitness].replace(" (", "\n("))
    _limit(axes, points[:, 1])
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _limit(axes: Axes, values: np.ndarray) -> None:
    """Leaves out what lies far below the rest, and says how much that is."""
    if not len(values):
        return
    low, middle, high = np.percentile(values, (5, 25, 100))
    floor = min(low, middle - 1.5 * (high - middle))
    below = int((values < floor).sum())
    if below:
        room = 0.05 * (high - floor)
        axes.set_ylim(floor - room, high + room)
        text = f"{below} candidate{'s' if below > 1 else ''} below"
        axes.annotate(text, (0.01, 0.03), xycoords="axes fraction", fontsize=8, color=GREY)


def _parameters(axes: Axes, run: Run) -> None:
    sizes: dict[int, list[int]] = {}
    best: Individual | None = None
    bests: dict[int, int] = {}
    for candidate in run.candidates.values():
        individual = candidate.individual
        sizes.setdefault(individual.generation, []).append(candidate.parameters)
        if individual.fitness is not None and (
            best is None or individual.fitness > (best.fitness or 0.0)
        ):
            best = individual
        if best is not None:
            bests[individual.generation] = run.candidates[best.id].parameters
    line(axes, list(bests), list(bests.values()), label="of the best so far", style=0)
    line(
        axes,
        list(sizes),
        [statistics.median(values) for values in sizes.values()],
        label="median of those born",
        style=1,
    )
    axes.set_ylabel("parameters")
    logarithmic(axes.yaxis)


def _operators(axes: Axes, run: Run) -> None:
    """Draws the share of an operator's children that beat their better parent.

    Shares are over some generations each.
    """
    children = [c.individual for c in run.candidates.values() if c.individual.parents]
    axes.set_ylabel("children that beat\ntheir better parent")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    if not children:
        axes.text(
            0.5,
            0.5,
            "no individual has parents",
            ha="center",
            va="center",
            transform=axes.transAxes,
        )
        return
    # Divide the generations into at most `_BINS` parts.
    last = max(child.generation for child in children)
    edges = np.linspace(1, last + 1, min(_BINS, last) + 1)
    # A line an operator, with a point for each part that has children by it.
    for style, operator in enumerate(
        sorted({name for child in children for name in child.operators})
    ):
        x, y = [], []
        for low, high in zip(edges, edges[1:], strict=False):
            outcomes = [
                beats_parents(run, child)
                for child in children
                if operator in child.operators and low <= child.generation < high
            ]
            if outcomes:
                x.append((low + min(high - 1, last)) / 2)
                y.append(statistics.fmean(outcomes))
        line(axes, x, y, label=plain(operator), style=style)
