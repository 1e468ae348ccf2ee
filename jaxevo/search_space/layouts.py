"""Layouts as genes: how wide a genome's network is and how many cells it has.

The paper fixes both. Where they are genes, one search may answer how small a network may be.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxevo.search_space.genome import LAYOUT_FIELDS, Layout


@dataclasses.dataclass(frozen=True)
class LayoutSpace:
    """The layouts that genomes may have: any of these widths with any of these numbers of cells.

    Both are sorted, so that a mutation is a step to a neighbour.
    """

    channels: tuple[int, ...]
    num_normal_cells: tuple[int, ...]

    @classmethod
    def between(cls, channels: tuple[int, int], num_normal_cells: tuple[int, int]) -> LayoutSpace:
        """All numbers of cells, and widths about a third apart, between bounds (both included)."""
        low, high = channels
        ladder = sorted({base * 2**k for base in (1, 3) for k in range(10)})
        widths = sorted({low, high, *(width for width in ladder if low < width < high)})
        return cls(tuple(widths), tuple(range(num_normal_cells[0], num_normal_cells[1] + 1)))

    def __contains__(self, layout: Layout | None) -> bool:
        return layout is not None and all(
            getattr(layout, name) in getattr(self, name) for name in LAYOUT_FIELDS
        )

    def random(self, rng: np.random.Generator) -> Layout:
        """A layout, each as likely as any other."""
        return Layout(**{name: int(rng.choice(getattr(self, name))) for name in LAYOUT_FIELDS})

    def mutate(self, rng: np.random.Generator, layout: Layout, prob: float) -> Layout:
        """With probability `prob` one of the genes goes a step up or down.

        A step beyond the last changes nothing.
        """
        if rng.random() >= prob:
            return layout
        name = LAYOUT_FIELDS[int(rng.integers(len(LAYOUT_FIELDS)))]
        options = getattr(self, name)
        place = options.index(getattr(layout, name)) + int(rng.choice((-1, 1)))
        if not 0 <= place < len(options):
            return layout
        return dataclasses.replace(layout, **{name: options[place]})


def cross_layouts(
    rng: np.random.Generator, layout_1: Layout, layout_2: Layout, *, bias: float
) -> Layout:
    """Each gene is the first parent's with probability `bias`, else the second's."""
    genes = {
        name: getattr(layout_1 if rng.random() <= bias else layout_2, name)
        for name in LAYOUT_FIELDS
    }
    return Layout(**genes)
