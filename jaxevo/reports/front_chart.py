"""Charts of sizes: a search's front of fitness and cost, and accuracy by parameters."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from jaxevo.reports.style import COLORS, FITNESS, GREY, LIGHT, MARKERS, line, logarithmic
from jaxevo.run.front import candidate_points, trained_networks
from jaxevo.run.reader import Run
from jaxevo.strategies.dominance import Point, dominates, fronts, hypervolume, knee

_SHORT = "each candidate, after its short training"
_TITLES = {"parameters": "parameters", "multiply_adds": "multiply-adds an image"}


def draw_front(run: Run) -> Figure:
    """Fitness by cost of all candidates with their front, and its hypervolume by candidates."""
    figure = Figure(figsize=(9, 8), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(2, 1))
    points = candidate_points(run.candidates.values())
    _front(above, points, run)
    # The area grows with each candidate that the front did not dominate yet.
    most = max(cost for _, cost in points)
    front: list[Point] = []
    areas: list[float] = []
    for point in points:
        if not any(dominates(other, point) for other in front):
            front = [other for other in front if not dominates(point, other)] + [point]
        areas.append(hypervolume(front, most))
    below.plot(range(1, len(points) + 1), areas, color=COLORS[0], linewidth=1.6)
    below.set_xlabel("candidates")
    below.set_ylabel("hypervolume\n(share of all)")
    for axes in (above, below):
        axes.grid(color="#ebebeb")
        axes.set_axisbelow(True)
    return figure


def _front(axes: Axes, points: list[Point], run: Run) -> None:
    """Every candidate, the front as a staircase, its knee, and the networks trained to the end."""
    fitness, cost = np.array(points).T
    axes.scatter(cost, fitness, s=9, color=LIGHT, label="each candidate, in the search")
    front = [points[place] for place in fronts(points)[0]]
    line(axes, [c for _, c in front], [f for f, _ in front], label="front of the search", style=0)
    if len(front) > 2:
        best = front[knee(front)]
        label = "its knee"
        axes.scatter(best[1], best[0], s=90, facecolors="none", edgecolors=GREY, label=label)
    if run.result is not None:
        trained = trained_networks(run.result)
        x = [float(run.candidates[known].individual.cost or 0) for known, _, _ in trained]
        y = [accuracy for _, _, accuracy in trained]
        label = "trained to the end: validation accuracy"
        axes.scatter(x, y, marker="s", s=28, color=COLORS[1], label=label)
    axes.set_xlabel(_TITLES[run.config.minimize])
    axes.set_ylabel(FITNESS[run.config.fitness])
    _scales(axes)


def _scales(axes: Axes) -> None:
    """Logarithmic sizes, shares in per cent, and a legend."""
    logarithmic(axes.xaxis)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    axes.legend(frameon=False, fontsize=9, loc="lower right")


def draw_sizes(run: Run) -> Figure:
    """Validation accuracy by parameters: candidates, and what was trained to the end."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    # Candidates, by their short trainings.
    known = [
        (each.parameters, each.accuracy)
        for each in run.candidates.values()
        if each.accuracy is not None
    ]
    axes.scatter(*np.array(known).reshape(-1, 2).T, s=9, color=LIGHT, label=_SHORT)
    # Networks that were trained to the end.
    result = run.result
    if result is not None:
        kept = [(each.parameters, each.validation_accuracy) for each in result.kept]
        trained = {
            "winner, trained to the end": [(result.parameters, result.validation_accuracy)],
            "others that were kept, trained alike": kept,
        }
        if (cnn := result.baseline) is not None:
            small = "small hand-designed CNN, trained alike"
            trained[small] = [(cnn.parameters, cnn.validation_accuracy)]
        for style, (label, points) in enumerate(trained.items()):
            look = {"marker": MARKERS[style], "color": COLORS[style], "s": 42}
            if points:
                axes.scatter(*np.array(points).T, label=label, **look)
    axes.set_xlabel("parameters")
    axes.set_ylabel("validation accuracy")
    axes.grid(color="#ebebeb")
    axes.set_axisbelow(True)
    _scales(axes)
    return figure
