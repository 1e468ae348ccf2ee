"""Layout of a cell's picture: nodes in layers by depth, and edges in lanes without nodes.

Both inputs of a cell are the same tensor and so one item, state 0.

Lengths are inches; y points down. An edge that passes a layer gets a lane of its own there, which
all edges from the same state share until they part. So an edge is a straight line within a layer
and a curve between two.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from scipy.optimize import isotonic_regression

from jaxevo.search_space.genome import NUM_INPUTS, Cell

OP_WIDTH = 1.0
OP_HEIGHT = 0.27
NODE_WIDTH = 2 * OP_WIDTH + 0.28
NODE_HEIGHT = 0.86
# PORT is the distance between two edges that end at the output.
INPUT_WIDTH, OUTPUT_WIDTH, LANE_WIDTH, PORT = (0.8, 1.1, 0.1, 0.3)
SPACE, GAP = 0.24, 0.45  # between neighbours of a layer, and the least between two layers
_STARTS = 10
_SWEEPS = 8


@dataclasses.dataclass
class Item:
    """An occupant of a layer.

    It is a state itself (inputs and nodes), a lane of a state, or the output (state None).
    """

    state: int | None
    layer: int
    width: float
    is_lane: bool = False
    x: float = 0.0  # of its centre


@dataclasses.dataclass(frozen=True)
class Link:
    """A piece of an edge, from an item to one of the next layer.

    It ends in the item's operand or port, or goes on as a lane.
    """

    source: Item
    target: Item
    slot: int = 0


@dataclasses.dataclass(frozen=True)
class CellDrawing:
    """The parts of the picture; `y` holds each layer's upper and lower side."""

    layers: list[list[Item]]
    links: list[Link]
    y: list[tuple[float, float]]
    # Nodes whose second operand is drawn on the left, so that edges cross less.
    swapped: frozenset[int]

    @property
    def size(self) -> tuple[float, float]:
        """Width and height; x begins at 0."""
        return max(item.x + item.width / 2 for layer in self.layers for item in layer), self.y[-1][
            1
        ]

    def end(self, link: Link) -> float:
        """The x at which a link ends."""
        return link.target.x + _offset(link, self.swapped, self.links)


def arrange(cell: Cell) -> CellDrawing:
    """The layout of a cell's picture."""
    layers, links = _graph(cell)
    _order(layers, links)
    _place(layers, links)
    left = min(item.x - item.width / 2 for layer in layers for item in layer)
    for item in itertools.chain(*layers):
        item.x -= left
    y = []
    top = 0.0
    for number, layer in enumerate(layers):
        height = NODE_HEIGHT if 0 < number < len(layers) - 1 else OP_HEIGHT
        y.append((top, top + height))
        leaving = [link for link in links if link.source in layer]
        top += height + GAP + 0.06 * len(leaving)
    return CellDrawing(layers, links, y, _swapped(links))


def _graph(cell: Cell) -> tuple[list[list[Item]], list[Link]]:
    """Items by layer in the order of their states, and all links."""
    # A state lies in the layer of its depth, the output behind all; the inputs are one item.
    depth = {state: d for state, d in enumerate(cell.depths()) if state not in range(1, NUM_INPUTS)}
    unused = cell.unused_states()
    last = 1 + max(depth.values())
    widths = {state: INPUT_WIDTH if state < NUM_INPUTS else NODE_WIDTH for state in depth}
    items = {(state, depth[state]): Item(state, depth[state], widths[state]) for state in depth}
    output = Item(None, last, max(OUTPUT_WIDTH, PORT * (len(unused) + 1)))
    # Each use of a state is a link, from the nodes and from the output.
    reads = [
        (i if i >= NUM_INPUTS else 0, items[state, depth[state]], slot)
        for state, node in enumerate(cell.nodes, NUM_INPUTS)
        for slot, i in enumerate(node.inputs)
    ]
    reads += [(state, output, slot) for slot, state in enumerate(unused)]
    # A link that crosses layers gets a lane in each, which all links from that state share.
    links: dict[tuple, Link] = {}
    for state, target, slot in reads:
        source = items[state, depth[state]]
        for layer in range(depth[state] + 1, target.layer):
            lane = items.setdefault((state, layer), Item(state, layer, LANE_WIDTH, is_lane=True))
            links.setdefault((state, layer), Link(source, lane))
            source = lane
        links[state, target.state, slot] = Link(source, target, slot)
    # Divide the items by layer.
    layers: list[list[Item]] = [[] for _ in range(last + 1)]
    for item in [*items.values(), output]:
        layers[item.layer].append(item)
    return layers, list(links.values())


def _order(layers: list[list[Item]], links: Sequence[Link]) -> None:
    """Orders each layer so that few links cross.

    Layers are ordered from several starts, by the means of neighbours, down and up again.
    """
    best = [list(layer) for layer in layers]
    fewest = _crossings(layers, links)
    rng = np.random.default_rng(0)
    for start, sweep in itertools.product(range(_STARTS), range(_SWEEPS)):
        if not fewest:
            break
        if start and not sweep:
            for layer in layers:
                layer[:] = [layer[k] for k in rng.permutation(len(layer))]
        _sweep(layers, links, down=sweep % 2 == 0)
        if (crossings := _crossings(layers, links)) < fewest:
            best = [list(layer) for layer in layers]
            fewest = crossings
    for layer, ordered in zip(layers, best, strict=True):
        layer[:] = ordered


def _sweep(layers: list[list[Item]], links: Sequence[Link], down: bool) -> None:
    """Sorts each layer by the mean place of its items' neighbours in the layer before."""
    place = {id(item): float(k) for layer in layers for k, item in enumerate(layer)}
    near: dict[int, list[Item]] = {}
    for link in links:
        item, other = (link.target, link.source) if down else (link.source, link.target)
        near.setdefault(id(item), []).append(other)
    for layer in layers if down else layers[::-1]:
        means = place | {
            id(i): float(np.mean([place[id(n)] for n in near[id(i)]]))
            for i in layer
            if id(i) in near
        }
        layer.sort(key=lambda item: means[id(item)])
        place |= {id(item): float(k) for k, item in enumerate(layer)}


def _crossings(layers: Iterable[Sequence[Item]], links: Sequence[Link]) -> int:
    rank = {id(item): k for layer in layers for k, item in enumerate(layer)}
    ends = [(link.source.layer, rank[id(link.source)], rank[id(link.target)]) for link in links]
    pairs = itertools.combinations(ends, 2)
    return sum(a[0] == b[0] and (a[1] - b[1]) * (a[2] - b[2]) < 0 for a, b in pairs)


def _place(layers: Sequence[Sequence[Item]], links: Sequence[Link]) -> None:
    """Moves items towards the means of their neighbours, as far as order and widths allow."""
    for sweep in range(4 * _SWEEPS + 1):
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            pairs = itertools.pairwise(layer)
            steps = [0.0, *((a.width + b.width) / 2 + SPACE for a, b in pairs)]
            least = np.cumsum(steps)
            wanted = []
            for item in layer:
                near = [
                    link.source.x - _offset(link, frozenset(), links)
                    for link in links
                    if link.target is item
                ]
                near += [
                    link.target.x + _offset(link, frozenset(), links)
                    for link in links
                    if link.source is item
                ]
                wanted.append(float(np.mean(near)) if near else item.x)
            for item, x in zip(
                layer, isotonic_regression(np.array(wanted) - least).x + least, strict=True
            ):
                item.x = float(x)


def _offset(link: Link, swapped: frozenset[int], links: Sequence[Link]) -> float:
    """Offset of a link's end from its target's centre."""
    target = link.target
    if target.is_lane:
        return 0.0
    if target.state is not None:
        right = (link.slot == 1) != (target.state in swapped)
        return (0.5 if right else -0.5) * (OP_WIDTH + 0.1)
    others = sorted(
        (other for other in links if other.target is target), key=lambda other: other.source.x
    )
    place = next(k for k, other in enumerate(others) if other is link)
    return (place - (len(others) - 1) / 2) * PORT


def _swapped(links: Sequence[Link]) -> frozenset[int]:
    """Nodes whose first operand comes from further right than the second."""
    x = {(link.target.state, link.slot): link.source.x for link in links if not link.target.is_lane}
    nodes = {state for state, _ in x if state is not None}
    return frozenset(state for state in nodes if x[state, 0] > x[state, 1])
