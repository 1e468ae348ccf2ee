"""Cells as text."""

from __future__ import annotations

from jaxevo.reports.cell_text import cell_lines
from jaxevo.search_space.genome import Cell, Node, Op


def test_drawing():
    nodes = (
        Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),
        Node((2, 0), (Op.MAX_POOL_3X3, Op.CONV_5X5)),
        Node((1, 1), (Op.CONV_7X7, Op.AVG_POOL_3X3)),
        Node((3, 4), (Op.IDENTITY, Op.IDENTITY)),
        Node((0, 4), (Op.IDENTITY, Op.CONV_3X3)),
        Node((5, 2), (Op.CONV_3X3, Op.CONV_3X3)),
    )
    assert cell_lines(Cell(nodes)) == [
        "depth 1   node 0  = concat( conv_3x3(input),      identity(input) )",
        "          node 2  = concat( conv_7x7(input),      avg_pool_3x3(input) )",
        "depth 2   node 1  = concat( max_pool_3x3(node 0), conv_5x5(input) )",
        "          node 4  = concat( identity(input),      conv_3x3(node 2) )",
        "depth 3   node 3  = concat( identity(node 1),     identity(node 2) )",
        "depth 4   node 5  = concat( conv_3x3(node 3),     conv_3x3(node 0) )",
        "output            = concat( node 4, node 5 )",
    ]
    assert cell_lines(Cell(nodes[:1]))[-1] == "output            = node 0"
