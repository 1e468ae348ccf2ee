"""Images of one shape that come block by block."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from jaxevo.datasets.base import check_image_array
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.pixels import Measured, Progress, Read
from jaxevo.datasets.values import BYTES, Extent, ValueRange, choose_range

BLOCK = 256  # images


@dataclasses.dataclass(frozen=True)
class ArrayPixels:
    """Images of one shape.

    Attributes:
        what: Names them in error messages.
        shape: [M, H, W, C] of the whole array.
        blocks: Begins anew at each call; gives arrays [m, H, W, C], M images in all.
        published: The values are bytes in their full range, whatever the darkest of them.
        indices: Those of the array that belong to the split, sorted; `None`: all.
    """

    what: str
    shape: tuple[int, int, int, int]
    blocks: Callable[[], Iterable[np.ndarray]]
    published: bool = False
    indices: np.ndarray | None = None

    @classmethod
    def of(cls, what: str, array: np.ndarray, published: bool = False) -> ArrayPixels:
        """Pixels of an array [M, H, W, C] in memory."""
        shape = (len(array), *array.shape[1:])
        blocks = functools.partial(_cut, array)
        return cls(what, shape, blocks, published)

    def __len__(self) -> int:
        return self.shape[0] if self.indices is None else len(self.indices)

    def take(self, indices: np.ndarray) -> ArrayPixels:
        """See `Pixels`."""
        return dataclasses.replace(
            self, indices=indices if self.indices is None else self.indices[indices]
        )

    def measure(self, values: ValueRange | None = None) -> Measured:
        """See `Pixels`."""
        _, height, width, channels = self.shape
        if self.published:
            values = BYTES
        elif values is None:
            extents = [Extent.of(block, self.what) for _, block in self._own_blocks()]
            values = choose_range(functools.reduce(Extent.__or__, extents), self.what)
        return Measured(((height, width),), channels, values, "")

    def read(self, form: InputForm, skip_unreadable: bool, progress: Progress) -> Read:
        """See `Pixels`; an array is readable or not as a whole."""
        check_image_array(self.what, (len(self), *form.image_shape))
        if self.published:  # whose range is known whatever the network was trained on
            form = dataclasses.replace(form, values=BYTES)
        images = np.empty((len(self), *form.image_shape), np.uint8)
        extents = []
        for start, block in self._own_blocks():
            if not self.published:
                extents.append(Extent.of(block, self.what))
            images[start : start + len(block)] = form.to_input(block, self.what)
            progress(start + len(block), len(self))
        if extents:
            form.values.check_scale(functools.reduce(Extent.__or__, extents), self.what)
        return Read(images, np.arange(len(self)))

    def _own_blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """The split's images in blocks, each with the number of images before it."""
        seen = done = 0
        for block in self.blocks():
            own = block
            if self.indices is not None:
                first, last = np.searchsorted(self.indices, [seen, seen + len(block)])
                own = block[self.indices[first:last] - seen]
            seen += len(block)
            if len(own):
                yield done, own
                done += len(own)


def _cut(array: np.ndarray) -> Iterator[np.ndarray]:
    return (array[start : start + BLOCK] for start in range(0, len(array), BLOCK))
