"""Pictures of a genome's two cells, each as SVG and PNG.

Charts of runs are in `charts.py`. Neither module imports JAX.

Shapes and words tell things apart, colour only helps: all can be read in grey.
"""

from __future__ import annotations

import io
import pathlib
import textwrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from jaxevo.files import write_bytes
from jaxevo.reports import cell_layout as layout
from jaxevo.reports.cell_layout import OP_HEIGHT, OP_WIDTH, CellDrawing, Item
from jaxevo.reports.style import plain
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Op

INK, EDGE, BLOCK = "#1a1a1a", "#444444", "#d9eef2"
FILL = {
    **{Op.IDENTITY: "#ffffff", Op.MAX_POOL_3X3: "#f3d7b5", Op.AVG_POOL_3X3: "#f8ead5"},
    **{Op.CONV_3X3: "#c9dcf0", Op.CONV_5X5: "#a9c6e6", Op.CONV_7X7: "#86afd9"},
}
LEAST_WIDTH, MARGIN, TITLE, LINE = 2.4, 0.25, 0.5, 0.2
PAD = 0.08  # from a block to what is in it
_LETTERS = 11  # of a title that an inch has room for


def paths(path: pathlib.Path) -> list[pathlib.Path]:
    """The files of the picture `path`."""
    return [path.with_name(path.name + suffix) for suffix in (".svg", ".png")]


def save(figure: Figure, path: pathlib.Path) -> list[pathlib.Path]:
    """Writes `path`.svg and `path`.png, each whole or not at all.

    The same figure gives the same files.
    """
    for target in paths(path):
        write_bytes(target, rendered(figure, target.suffix[1:]))
    return paths(path)


def rendered(figure: Figure, kind: str, dpi: int = 150) -> bytes:
    """A figure as a file of this kind, `svg` or `png`, that is always the same."""
    content = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {}
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxevo"}):
        figure.savefig(content, format=kind, facecolor="white", dpi=dpi, metadata=metadata)
    return content.getvalue()


def draw_cells(genome: Genome, whose: str) -> Figure:
    """Draws both cells side by side, as in the paper's figures 2 and 6.

    The input is above, the output FINAL below; `whose` cells they are is the title, with the layout
    of a genome that has one.
    """
    title = whose if genome.layout is None else f"{whose}: {genome.layout.describe()}"
    cells = {"Normal cell": genome.normal, "Reduction cell": genome.reduction}
    layouts = [layout.arrange(cell) for cell in cells.values()]
    widths = [max(LEAST_WIDTH, arranged.size[0]) + 2 * MARGIN for arranged in layouts]
    # The title, in as many lines as the width asks for, and below it the cells.
    lines = textwrap.wrap(title, int(_LETTERS * sum(widths)))
    top = MARGIN + LINE * len(lines)
    height = max(arranged.size[1] for arranged in layouts) + top + TITLE + MARGIN
    figure = Figure(figsize=(sum(widths), height))
    text = plain("\n".join(lines))
    figure.text(0.5, 1 - 0.6 * MARGIN / height, text, ha="center", va="top", fontsize=11)
    left = 0.0
    for (name, cell), arranged, width in zip(cells.items(), layouts, widths, strict=True):
        axes = figure.add_axes((left / sum(widths), 0, width / sum(widths), 1))
        middle = arranged.size[0] / 2
        axes.set(xlim=(middle - width / 2, middle + width / 2), ylim=(height, 0))
        axes.set_axis_off()
        nodes = f"{cell.num_nodes} node{'s' if cell.num_nodes > 1 else ''}"
        title = f"{name}: {nodes} (B = {cell.num_nodes})"
        place = top + 0.15
        axes.text(middle, place, title, ha="center", va="center", fontsize=11, weight="bold")
        _draw_cell(axes, cell, arranged, top=top + TITLE)
        left += width
    return figure


def _draw_cell(axes: Axes, cell: Cell, arranged: CellDrawing, *, top: float) -> None:
    depth = {
        id(link.source): 3 + k / len(arranged.links) / 2 for k, link in enumerate(arranged.links)
    }
    for link in arranged.links:
        begin, end = arranged.y[link.source.layer][1] + top, arranged.y[link.target.layer][0] + top
        is_node = link.target.state is not None and not link.target.is_lane
        arrive = end if is_node or link.target.is_lane else end - PAD
        shared = depth[id(link.source)]
        _edge(
            axes,
            link.source.x,
            begin,
            end=arranged.end(link),
            arrive=arrive,
            depth=shared,
            arrow=not link.target.is_lane,
        )
    for item in (item for layer in arranged.layers for item in layer):
        upper, lower = (y + top for y in arranged.y[item.layer])
        if item.is_lane:
            _line(axes, item.x, upper - 0.01, end=lower + 0.01)
        elif item.state is None or item.state < NUM_INPUTS:
            text = "FINAL: concat" if item.state is None else "input"
            _box(axes, item.x, upper, width=item.width, height=OP_HEIGHT, fill="#e4e4e4", text=text)
        else:
            _draw_node(axes, cell, item, arranged=arranged, upper=upper, lower=lower)


def _draw_node(
    axes: Axes, cell: Cell, item: Item, *, arranged: CellDrawing, upper: float, lower: float
) -> None:
    """A block with the two operations and their concatenation."""
    assert item.state is not None
    node = cell.nodes[item.state - NUM_INPUTS]
    _box(axes, item.x, upper, width=item.width, height=lower - upper, fill=BLOCK, text="")
    ops = node.ops[::-1] if item.state in arranged.swapped else node.ops
    for side, op in zip((-0.5, 0.5), ops, strict=True):
        x = item.x + side * (OP_WIDTH + 0.1)
        _line(axes, x, upper + PAD + OP_HEIGHT, end=lower - PAD - OP_HEIGHT)
        _box(axes, x, upper + PAD, width=OP_WIDTH, height=OP_HEIGHT, fill=FILL[op], text=str(op))
    name = f"node {item.state - NUM_INPUTS}: concat"
    _box(
        axes,
        item.x,
        lower - PAD - OP_HEIGHT,
        width=item.width - 0.18,
        height=OP_HEIGHT,
        fill="#ffffff",
        text=name,
    )


def _box(
    axes: Axes, x: float, top: float, *, width: float, height: float, fill: str, text: str
) -> None:
    """A rounded box with its centre at `x`; blocks lie below arrows, and other boxes above."""
    shape = FancyBboxPatch(
        (x - width / 2, top),
        width,
        height,
        boxstyle="round,pad=0,rounding_size=0.07",
        facecolor=fill,
        edgecolor=EDGE,
        linewidth=0.9,
        zorder=4 if text else 2,
    )
    axes.add_artist(shape)
    if text:
        axes.text(
            x, top + height / 2, text, ha="center", va="center", fontsize=8.5, color=INK, zorder=5
        )


def _line(axes: Axes, x: float, begin: float, *, end: float) -> None:
    axes.add_artist(
        Line2D([x, x], [begin, end], color=EDGE, linewidth=1.2, zorder=3.9, solid_capstyle="butt")
    )


def _edge(
    axes: Axes, x: float, y: float, *, end: float, arrive: float, depth: float, arrow: bool
) -> None:
    """Draws an edge from (x, y) to (end, arrive), leaving and arriving upright.

    It is white where it passes edges of a lower `depth`.

    Edges that leave the same place have the same depth, so that none is cut where they part.
    """
    middle = (y + arrive) / 2
    vertices = [(x, y), (x, middle), (end, middle), (end, arrive)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3]
    style = "-"
    if arrow:  # straight on to the box
        vertices, codes = [*vertices, (end, arrive + PAD)], [*codes, Path.LINETO]
        style = "-|>,head_width=2.2,head_length=4"
    for zorder, color, width in ((depth, "white", 3.2), (depth + 1e-6, EDGE, 1.2)):
        patch = FancyArrowPatch(
            path=Path(vertices, codes), arrowstyle=style, mutation_scale=1, color=color
        )
        patch.set(linewidth=width, zorder=zorder)
        axes.add_artist(patch)
