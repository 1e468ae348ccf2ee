"""Where the parts of a cell's picture go: no edge passes a box, and every edge is there."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from conftest import random_genomes

from jaxevo.reports import cell_layout
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome

GENOMES = [*random_genomes(40, 1, 6), *random_genomes(10, 7, 12, seed=1)]


@pytest.mark.parametrize("genome", GENOMES)
def test_no_edge_passes_a_box(genome: Genome):
    for cell in genome.cells:
        arranged = cell_layout.arrange(cell)
        # An edge is straight within a layer and bends only between two, where no box is.
        for (_, lower), (upper, _) in itertools.pairwise(arranged.y):
            assert upper - lower >= cell_layout.GAP
        for layer in arranged.layers:
            for one, other in itertools.pairwise(layer):
                assert other.x - one.x >= (one.width + other.width) / 2 + cell_layout.SPACE - 1e-6
        assert all(link.target.layer == link.source.layer + 1 for link in arranged.links)
        assert edges(arranged) == wanted_edges(cell)
        into: dict[int | None, list[cell_layout.Link]] = {}
        for link in arranged.links:
            if not link.target.is_lane:
                into.setdefault(link.target.state, []).append(link)
        for links in into.values():  # edges into one box do not cross
            ends = [(link.source.x, arranged.end(link)) for link in links]
            assert sorted(ends) == sorted(ends, key=lambda pair: (pair[1], pair[0]))


def edges(arranged: cell_layout.CellDrawing) -> Counter[tuple]:
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
    # Both inputs are one tensor, and drawn as one.
    inner = [
        (i if i >= NUM_INPUTS else 0, s, slot)
        for s, node in enumerate(cell.nodes, NUM_INPUTS)
        for slot, i in enumerate(node.inputs)
    ]
    return Counter(
        [*inner, *((state, None, slot) for slot, state in enumerate(cell.unused_states()))]
    )
