"""Pictures of cells: complete, nothing overlaps or is cut, and edges end where they belong."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections import Counter

import numpy as np
import pytest
from builders_figures import outside, overlapping, visible_texts
from conftest import random_genomes
from matplotlib.backends.backend_agg import FigureCanvasAgg

from jaxevo.reports import cell_layout, cell_pictures
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.search_space.variation import random_cell

WHOSE = "Cells of $x"
LONG = "Cells of the winner, individual 2009: search by rea_no_avoidance on photos-of-flowers-2026"
GENOMES = [*random_genomes(40, 1, 6), *random_genomes(10, 7, 12, seed=1)]


def expected_texts(genome: Genome) -> Counter[str]:
    """What a picture of both cells must say, and how often."""
    said = Counter({"FINAL: concat": 2, "input": 2, WHOSE: 1})
    for cell, title in zip(genome.cells, ("Normal cell", "Reduction cell"), strict=True):
        nodes = "1 node" if cell.num_nodes == 1 else f"{cell.num_nodes} nodes"
        said[f"{title}: {nodes} (B = {cell.num_nodes})"] += 1
        said.update(str(op) for node in cell.nodes for op in node.ops)
        said.update(f"node {k}: concat" for k in range(cell.num_nodes))
    return said


def test_pictures_of_random_genomes_say_everything_once_and_nothing_overlaps():
    for genome in GENOMES:
        texts = visible_texts(figure := cell_pictures.draw_cells(genome, WHOSE))
        assert Counter(text.replace("\\", "") for text, _ in texts) == expected_texts(genome)
        assert not overlapping(texts)
        assert not outside(figure, texts)


def test_a_long_title_has_lines():
    node = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
    figure = cell_pictures.draw_cells(Genome(Cell((node,)), Cell((node,))), LONG)
    texts = visible_texts(figure)
    assert any(text.split() == LONG.split() and "\n" in text for text, _ in texts)
    assert not overlapping(texts) and not outside(figure, texts)


def test_texts_fit_their_boxes():
    ops = tuple(Op)
    cell = Cell(tuple(Node((0, 1), (ops[k], ops[k + 1])) for k in range(0, 6, 2)))
    figure = cell_pictures.draw_cells(
        Genome(cell, random_cell(np.random.default_rng(0), 12)), WHOSE
    )
    room = {"concat": cell_layout.OUTPUT_WIDTH, "_": cell_layout.OP_WIDTH}
    for text, box in visible_texts(figure):
        for mark, width in room.items():
            assert mark not in text or box.width / figure.dpi < width - 0.04, text


def test_overlaps_and_cuts_would_be_seen():
    figure = cell_pictures.draw_cells(GENOMES[0], WHOSE)
    figure.axes[0].text(0.0, 1.0, "over everything", fontsize=60, ha="right")
    figure.axes[0].text(2.0, 1.0, "over everything", fontsize=60)
    texts = visible_texts(figure)
    assert overlapping(texts) and outside(figure, texts)


def test_an_operation_stands_where_its_edge_ends():
    node = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
    later = Node((3, 2), (Op.CONV_7X7, Op.MAX_POOL_3X3))
    cell = Cell((node, node, later))
    arranged = cell_layout.arrange(cell)
    texts = {
        text.get_text(): text
        for text in cell_pictures.draw_cells(Genome(cell, cell), WHOSE).axes[0].texts
    }
    for link in arranged.links:
        if link.target.state == 4:
            assert texts[str(later.ops[link.slot])].get_position()[0] == pytest.approx(
                arranged.end(link)
            )


def test_edges_that_part_are_whole():
    node = Node((0, 0), (Op.IDENTITY, Op.IDENTITY))
    cell = Cell((node, node, node))
    figure, arranged = (
        cell_pictures.draw_cells(Genome(cell, cell), WHOSE),
        cell_layout.arrange(cell),
    )
    figure.set_dpi(200)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    darkness = 255 - np.asarray(canvas.buffer_rgba())[..., :3].max(axis=2)
    axes = figure.axes[0]
    y = arranged.y[0][1] + cell_pictures.MARGIN + cell_pictures.LINE + cell_pictures.TITLE
    below = arranged.y[1][0] - arranged.y[0][1]
    for link in (link for link in arranged.links if link.source.state == 0):
        for part in (0.05, 0.2, 0.5):  # of the curve, whose control points are half way down
            along = 3 * (1 - part) * part**2 + part**3
            down = 3 * ((1 - part) ** 2 * part + (1 - part) * part**2) / 2 + part**3
            x = link.source.x + along * (arranged.end(link) - link.source.x)
            column, row = axes.transData.transform((x, y + down * below))
            assert darkness[int(figure.bbox.height - row), int(column)] > 150


def test_files(tmp_path):
    genome = GENOMES[3]
    written = cell_pictures.save(cell_pictures.draw_cells(genome, WHOSE), tmp_path / "cells")
    assert [path.name for path in written] == ["cells.svg", "cells.png"] and sorted(
        tmp_path.iterdir()
    ) == sorted(written)
    svg = written[0].read_text()
    texts = [
        "".join(element.itertext()).strip()
        for element in ET.fromstring(svg).iter()
        if element.tag.endswith("}text")
    ]
    assert Counter(texts) == expected_texts(genome)
    assert written[1].read_bytes().startswith(b"\x89PNG")
    assert not re.search(r"<dc:date>", svg)
    cell_pictures.save(cell_pictures.draw_cells(genome, WHOSE), tmp_path / "again")
    assert (tmp_path / "again.svg").read_text() == svg
