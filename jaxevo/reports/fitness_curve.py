"""The fitness of a search's candidates as a small SVG, which is drawn in milliseconds.

It stands in place of the charts in the report of a run that goes on.
"""

from __future__ import annotations

import dataclasses
import itertools

from jaxevo.run.reader import Run

LEFT, RIGHT, TOP, BOTTOM = 60, 630, 10, 190  # of the axes in the template
_MAX_DOTS = 3000


@dataclasses.dataclass(frozen=True)
class Curve:
    """Paths of an SVG, and what they are labelled with."""

    dots: str  # each candidate with a fitness
    line: str  # the best so far
    first: int  # ids at the ends of the horizontal axis
    last: int
    low: float  # fitness at the ends of the vertical axis
    high: float


def fitness_curve(run: Run) -> Curve | None:
    """The curve of the last candidates; None before the first fitness."""
    known = [(c.id, c.fitness) for c in run.candidates.values() if c.fitness is not None]
    if not known:
        return None
    tops = list(itertools.accumulate((fitness for _, fitness in known), max))[-_MAX_DOTS:]
    points = known[-_MAX_DOTS:]
    first, last = points[0][0], points[-1][0]
    low, high = min(fitness for _, fitness in points), tops[-1]

    def x(number: int) -> str:
        return f"{LEFT + (number - first) / max(1, last - first) * (RIGHT - LEFT):.1f}"

    def y(fitness: float) -> str:
        return f"{BOTTOM + (fitness - low) / ((high - low) or 1) * (TOP - BOTTOM):.1f}"

    dots = "".join(f"M{x(number)} {y(fitness)}h0" for number, fitness in points)
    steps = "".join(f"H{x(number)}V{y(top)}" for (number, _), top in zip(points, tops, strict=True))
    return Curve(dots, f"M{LEFT} {y(tops[0])}{steps}", first, last, low, high)
