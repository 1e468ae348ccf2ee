"""Pictures of cells: complete, nothing overlaps or is cut, and no edge passes a box."""

import itertools
import re
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any

import numpy as np
import pytest
from conftest import random_genomes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from jaxevo.reports import cell_layout as layout
from jaxevo.reports import cell_pictures as plots
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Node, Op
from jaxevo.search_space.variation import CELLS, random_cell

GENOMES = [*random_genomes(40, 1, 6), *random_genomes(10, 7, 12, seed=1)]


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
    shrunk = [(text, Bbox.from_extents(b.x0 + 0.5, b.y0 + 0.5, b.x1 - 0.5, b.y1 - 0.5)) for text, b in texts]
    return [(a, b) for (a, one), (b, other) in itertools.combinations(shrunk, 2) if one.overlaps(other)]


def outside(figure: Figure, texts: list[tuple[str, Bbox]]) -> list[str]:
    """Texts that are cut at the figure's sides."""
    width, height = figure.bbox.width, figure.bbox.height
    return [t for t, box in texts if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height]


def expected_texts(genome: Genome) -> Counter[str]:
    """What a picture of both cells must say, and how often."""
    said = Counter({"FINAL: concat": 2, "input 0": 2, "input 1": 2})
    for name, title in zip(CELLS, ("Normal cell", "Reduction cell"), strict=True):
        cell: Cell = getattr(genome, name)
        said[f"{title}, B = {cell.num_nodes}"] += 1
        said.update(str(op) for node in cell.nodes for op in node.ops)
        said.update(f"node {k}: concat" for k in range(cell.num_nodes))
    return said


def test_pictures_of_random_genomes_say_everything_once_and_nothing_overlaps():
    for genome in GENOMES:
        texts = visible_texts(figure := plots.draw_cells(genome))
        assert Counter(text for text, _ in texts) == expected_texts(genome)
        assert not overlapping(texts)
        assert not outside(figure, texts)


def test_texts_fit_their_boxes():
    ops = tuple(Op)
    cell = Cell(tuple(Node((0, 1), (ops[k], ops[k + 1])) for k in range(0, 6, 2)))
    figure = plots.draw_cells(Genome(cell, random_cell(np.random.default_rng(0), 12)))
    room = {"concat": layout.OUTPUT_WIDTH, "_": layout.OP_WIDTH}
    for text, box in visible_texts(figure):
        for mark, width in room.items():
            assert mark not in text or box.width / figure.dpi < width - 0.04, text


def test_overlaps_and_cuts_would_be_seen():
    figure = plots.draw_cells(GENOMES[0])
    figure.axes[0].text(0.0, 1.0, "over everything", fontsize=60, ha="right")
    figure.axes[0].text(2.0, 1.0, "over everything", fontsize=60)
    texts = visible_texts(figure)
    assert overlapping(texts) and outside(figure, texts)


@pytest.mark.parametrize("genome", GENOMES)
def test_no_edge_passes_a_box(genome: Genome):
    for name in CELLS:
        cell: Cell = getattr(genome, name)
        arranged = layout.arrange(cell)
        # An edge is straight within a layer and bends only between two, where no box is.
        for (_, lower), (upper, _) in itertools.pairwise(arranged.y):
            assert upper - lower >= layout.GAP
        for layer in arranged.layers:
            for one, other in itertools.pairwise(layer):
                assert other.x - one.x >= (one.width + other.width) / 2 + layout.SPACE - 1e-6
        assert all(link.target.layer == link.source.layer + 1 for link in arranged.links)
        assert edges(arranged) == wanted_edges(cell)
        into: dict[int | None, list[layout.Link]] = {}
        for link in arranged.links:
            if not link.target.is_lane:
                into.setdefault(link.target.state, []).append(link)
        for links in into.values():  # edges into one box do not cross
            ends = [(link.source.x, arranged.end(link)) for link in links]
            assert sorted(ends) == sorted(ends, key=lambda pair: (pair[1], pair[0]))


def edges(arranged: layout.Layout) -> Counter[tuple]:
    """(source, target, place in the target) of every edge, followed back through its lanes."""
    into_lane = {id(link.target): link.source for link in arranged.links if link.target.is_lane}
    found: Counter[tuple] = Counter()
    for link in arranged.links:
        source = link.source
        while source.is_lane:
            assert source.state == into_lane[id(source)].state
            source = into_lane[id(source)]
        if not link.target.is_lane:
            found[source.state, link.target.state, link.slot] += 1
    return found


def wanted_edges(cell: Cell) -> Counter[tuple]:
    inner = [(i, s, slot) for s, node in enumerate(cell.nodes, NUM_INPUTS) for slot, i in enumerate(node.inputs)]
    return Counter([*inner, *((state, None, slot) for slot, state in enumerate(cell.unused_states()))])


def test_an_operation_stands_where_its_edge_ends():
    node = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
    later = Node((3, 2), (Op.CONV_7X7, Op.MAX_POOL_3X3))
    cell = Cell((node, node, later))
    arranged = layout.arrange(cell)
    texts = {text.get_text(): text for text in plots.draw_cells(Genome(cell, cell)).axes[0].texts}
    for link in arranged.links:
        if link.target.state == 4:
            assert texts[str(later.ops[link.slot])].get_position()[0] == pytest.approx(arranged.end(link))


def test_edges_that_part_are_whole():
    node = Node((0, 0), (Op.IDENTITY, Op.IDENTITY))
    cell = Cell((node, node, node))
    figure, arranged = plots.draw_cells(Genome(cell, cell)), layout.arrange(cell)
    figure.set_dpi(200)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    darkness = 255 - np.asarray(canvas.buffer_rgba())[..., :3].max(axis=2)
    axes, y = figure.axes[0], arranged.y[0][1] + plots.MARGIN + plots.TITLE
    below = arranged.y[1][0] - arranged.y[0][1]
    for link in (link for link in arranged.links if link.source.state == 0):
        for part in (0.05, 0.2, 0.5):  # of the curve, whose control points are half way down
            along = 3 * (1 - part) * part**2 + part**3
            down = 3 * ((1 - part) ** 2 * part + (1 - part) * part**2) / 2 + part**3
            x = link.source.x + along * (arranged.end(link) - link.source.x)
            column, row = axes.transData.transform((x, y + down * below))
            assert darkness[int(figure.bbox.height - row), int(column)] > 150


def test_depths():
    nodes = (Node((0, 1), (Op.IDENTITY,) * 2), Node((2, 0), (Op.IDENTITY,) * 2), Node((1, 1), (Op.IDENTITY,) * 2))
    assert layout.depths(Cell(nodes)) == {0: 0, 1: 0, 2: 1, 3: 2, 4: 1}


def test_files(tmp_path):
    genome = GENOMES[3]
    written = plots.save(plots.draw_cells(genome), tmp_path / "cells")
    assert [path.name for path in written] == ["cells.svg", "cells.png"] and sorted(tmp_path.iterdir()) == sorted(
        written
    )
    svg = written[0].read_text()
    texts = [
        "".join(element.itertext()).strip() for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")
    ]
    assert Counter(texts) == expected_texts(genome)
    assert written[1].read_bytes().startswith(b"\x89PNG")
    assert not re.search(r"<dc:date>", svg)
    plots.save(plots.draw_cells(genome), tmp_path / "again")
    assert (tmp_path / "again.svg").read_text() == svg
