"""Layouts as genes: how wide a genome's network is, and how many and which cells it has.

The paper fixes all of them. Where they are genes, one search may answer how small a network may be.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxevo.search_space.genome import LAYOUT_FIELDS, Layout


@dataclasses.dataclass(frozen=True)
class LayoutSpace:
    """The layouts that genomes may have: each combination of these options.

    Numbers are sorted, so that a mutation is a step to a neighbour. What has no options is no gene.
    """

    channels: tuple[int, ...]
    num_normal_cells: tuple[int, ...]
    conv_kind: tuple[str, ...] = ()
    channel_multiplier: tuple[int, ...] = ()

    @classmethod
    def between(
        cls,
        channels: tuple[int, int],
        num_normal_cells: tuple[int, int],
        conv_kind: tuple[str, ...] = (),
        *,
        channel_multiplier: tuple[int, ...] = (),
    ) -> LayoutSpace:
        """All numbers of cells, and widths about a third apart, between bounds (both included).

        The other two are given as they are.
        """
        low, high = channels
        ladder = sorted({base * 2**k for base in (1, 3) for k in range(10)})
        widths = sorted({low, high, *(width for width in ladder if low < width < high)})
        cells = tuple(range(num_normal_cells[0], num_normal_cells[1] + 1))
        return cls(tuple(widths), cells, conv_kind, channel_multiplier)

    def __contains__(self, layout: Layout | None) -> bool:
        return layout is not None and all(
            getattr(layout, name) in (getattr(self, name) or (None,)) for name in LAYOUT_FIELDS
        )

    @property
    def _genes(self) -> tuple[str, ...]:
        return tuple(name for name in LAYOUT_FIELDS if getattr(self, name))

    def random(self, rng: np.random.Generator) -> Layout:
        """A layout, each as likely as any other."""
        drawn = {name: rng.choice(getattr(self, name)).item() for name in self._genes}
        return Layout(**drawn)

    def mutate(self, rng: np.random.Generator, layout: Layout, prob: float) -> Layout:
        """With probability `prob` one of the genes changes.

        A number goes a step up or down; a step beyond the last changes nothing. The kind of
        convolutions becomes the other one.
        """
        if rng.random() >= prob:
            return layout
        name = self._genes[int(rng.integers(len(self._genes)))]
        options = getattr(self, name)
        place = options.index(getattr(layout, name))
        place = 1 - place if name == "conv_kind" else place + int(rng.choice((-1, 1)))
        if not 0 <= place < len(options):
            return layout
        return dataclasses.replace(layout, **{name: options[place]})


def cross_layouts(
    rng: np.random.Generator, layout_1: Layout, layout_2: Layout, *, bias: float
) -> Layout:
    """Each gene is the first parent's with probability `bias`, else the second's."""
    genes = {
        name: getattr(layout_1 if rng.random() <= bias else layout_2, name)
        for name in layout_1.genes()
    }
    return Layout(**genes)
