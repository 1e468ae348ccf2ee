"""Style of all charts: colours, dashes, markers and lines.

Colours differ in lightness, and markers in shape too.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

INK, GREY, LIGHT, BAND, PALE = "#1a1a1a", "#777777", "#c4c4c4", "#e2e2e2", "#7fa8d4"
# Cycles of coprime lengths, so that a combination recurs late; colours differ in lightness too.
STYLES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)))
COLORS = ("#08519c", "#c4640f", "#6b0f2a", "#45a99e", "#b18fd8")
MARKERS = "os^dv*P<X>+x12"


# What fitness is, by its setting.
FITNESS = {
    "accuracy": "fitness (validation accuracy)",
    "likelihood": "fitness (likelihood of the validation labels)",
    "speed": "fitness (speed of learning)",
}


def plain(text: str) -> str:
    """Words of a record, in which dollars would begin a formula."""
    return text.replace("$", r"\$")


def logarithmic(axis: Axis) -> None:
    """Makes an axis of whole numbers, such as sizes, logarithmic, with numbers written out."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})  # type: ignore[attr-defined]
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axis.set_minor_formatter(NullFormatter())


def line(axes: Axes, x: Sequence[float], y: Sequence[float], *, label: str, style: int) -> None:
    marker = MARKERS[style % len(MARKERS)] if len(x) < 40 else None
    color = COLORS[style % len(COLORS)]
    dashes = STYLES[style % len(STYLES)]
    axes.plot(
        x, y, label=label, color=color, linestyle=dashes, marker=marker, markersize=4, linewidth=1.6
    )
