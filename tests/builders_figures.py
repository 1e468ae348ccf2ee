"""What is said in a figure, where, and whether it can be read."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def visible_texts(figure: Figure) -> list[tuple[str, Bbox]]:
    """Every text that is drawn, with where it is, in pixels."""
    drawn: list[tuple[str, Bbox]] = []

    def draw(self: Text, renderer: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            drawn.append((self.get_text(), self.get_window_extent(renderer)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", draw)
        figure.draw_without_rendering()
    return drawn


def overlapping(texts: list[tuple[str, Bbox]]) -> list[tuple[str, str]]:
    """Pairs of texts that share more than a hair."""
    shrunk = [
        (text, Bbox.from_extents(b.x0 + 0.5, b.y0 + 0.5, b.x1 - 0.5, b.y1 - 0.5))
        for text, b in texts
    ]
    return [
        (a, b) for (a, one), (b, other) in itertools.combinations(shrunk, 2) if one.overlaps(other)
    ]


def outside(figure: Figure, texts: list[tuple[str, Bbox]]) -> list[str]:
    """Texts that are cut at the figure's sides."""
    width, height = figure.bbox.width, figure.bbox.height
    return [t for t, box in texts if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height]


def assert_readable(figure: Figure) -> list[str]:
    """Nothing overlaps or is cut; returns what is said."""
    texts = visible_texts(figure)
    assert not overlapping(texts) and not outside(figure, texts)
    return [text for text, _ in texts]
