"""Pages of tables: the same words as Markdown has, escaped, and pictures that are not too large."""

from __future__ import annotations

import numpy as np
from builders_pages import Page
from matplotlib.figure import Figure

from jaxevo.reports.page import Picture, render_tables
from jaxevo.reports.table import Table

TABLE = Table("Models <1>", ("model", "accuracy"), [("a & b", "99.00%"), ("c", "-")])


def scatter(points: int) -> Figure:
    figure = Figure()
    figure.subplots().scatter(*np.random.default_rng(0).random((2, points)))
    return figure


def test_a_page_of_tables():
    picture = Picture.of(scatter(3), "A caption.", "A <description>.")
    page = Page(render_tables("T", "It is <so>.", [TABLE], remarks=["R & S"], pictures=[picture]))
    for tag, words in (
        *(("h1", "T"), ("caption", "Models <1>"), ("td", "99.00%"), ("figcaption", "A caption.")),
    ):
        assert words in page.texts[tag]
    assert "It is <so>." in page.texts["p"] and "R & S" in page.texts["p"]
    (image,) = page.of("img")
    assert image["alt"] == "A <description>."
    assert str(image["src"]).startswith("data:image/svg+xml;base64,")


def test_markdown_has_the_same_cells():
    assert TABLE.markdown() == [
        *("| model | accuracy |", "|---|---|", "| a & b | 99.00% |", "| c | - |")
    ]


def test_a_picture_of_many_points_is_made_of_pixels():
    picture = Picture.of(scatter(3000), "", "")
    assert picture.source.startswith("data:image/png;base64,") and len(picture.source) < 100_000
