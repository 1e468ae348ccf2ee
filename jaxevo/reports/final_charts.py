"""Charts of a run's final training: its curve, and which classes are taken for which others."""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter, StrMethodFormatter

from jaxevo.reports.style import INK, line, plain
from jaxevo.run.confusion import Confusion
from jaxevo.run.result import Result

MAX_NUMBERED = 25  # classes up to which each count is written into its cell
_MAX_NAMED = 40  # class names at a side
_MAX_CHARACTERS = 16  # of a class name


def draw_training(result: Result) -> Figure:
    """Loss and validation accuracy of the winner by epochs of the final training."""
    figure = Figure(figsize=(7.5, 5.5), layout="constrained")
    losses, accuracies = figure.subplots(2, 1, sharex=True)
    epochs = range(1, len(result.final_losses) + 1)
    line(losses, epochs, result.final_losses, label="", style=0)
    line(accuracies, epochs, result.final_accuracies, label="", style=0)
    losses.set_ylabel("mean loss of the epoch")
    if min(result.final_losses) > 0:
        losses.set_yscale("log")
        losses.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    accuracies.set_ylabel("validation accuracy\nafter the epoch")
    accuracies.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    accuracies.set_xlabel("epoch")
    accuracies.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (losses, accuracies):
        axes.grid(color="#ebebeb")
        axes.set_axisbelow(True)
    figure.align_ylabels()
    figure.suptitle(f"final training of individual {result.id}", fontsize=12)
    return figure


def draw_confusion(confusion: Confusion, images: str) -> Figure:
    """A cell for each class and each class that it is taken for, darker where that is more often.

    Shares are of the row's class, so that rare classes are seen too, and small ones are raised.

    Args:
        confusion: The counts.
        images: The images that are counted, such as `test images`.
    """
    number = len(confusion.class_names)
    side = min(max(3.5, 0.42 * number), 10.0)
    figure = Figure(figsize=(side + 2.2, side + 1.2), layout="constrained")
    axes = figure.subplots()
    shares = confusion.counts / confusion.images.clip(min=1)[:, None]
    norm = PowerNorm(1 / 3, 0, 1)
    shown = axes.imshow(shares, cmap="Greys", norm=norm, interpolation="nearest")
    if number <= MAX_NUMBERED:
        _write_counts(axes, confusion.counts, dark=shares > 0.15)
    _name_classes(axes, confusion.class_names)
    axes.set_xlabel("taken for")
    axes.set_ylabel("class")
    axes.set_title(f"{int(confusion.counts.sum()):,} {images}", fontsize=11)
    bar = figure.colorbar(shown, ax=axes, shrink=0.8, format=PercentFormatter(1.0))
    bar.set_ticks([0, 0.01, 0.05, 0.2, 0.5, 1])
    bar.set_label("share of the class")
    return figure


def _write_counts(axes: Axes, counts: np.ndarray, dark: np.ndarray) -> None:
    """The counts above 0, in white where a cell is dark."""
    for row, column in np.argwhere(counts):
        color = "white" if dark[row, column] else INK
        text = f"{counts[row, column]:,}"
        axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)


def _name_classes(axes: Axes, names: tuple[str, ...]) -> None:
    """The names at both sides, some of them where there is no room for all."""
    step = math.ceil(len(names) / _MAX_NAMED)
    places = range(0, len(names), step)
    shown = [plain(_short(names[place])) for place in places]
    upright = all(len(name) <= 3 for name in shown)
    axes.set_xticks(places, shown, rotation=0 if upright else 90, fontsize=8)
    axes.set_yticks(places, shown, fontsize=8)


def _short(name: str) -> str:
    """A name whose middle is left out if it is long: names often differ at their ends."""
    half = _MAX_CHARACTERS // 2
    return name if len(name) <= _MAX_CHARACTERS else f"{name[:half]}…{name[1 - half :]}"
