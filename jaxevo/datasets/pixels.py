"""The images of a split as they are stored: measured for the input form, then read through it.

Two kinds: arrays that come block by block, and image files. Neither is ever in memory as a whole
before it has the input form's size.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from jaxevo.datasets.base import DataError, check_image_array, check_unpacked
from jaxevo.datasets.input_form import BACKGROUNDS, InputForm, composite
from jaxevo.datasets.pictures import REMEDY, Encoded, Header, Picture, decode, read_header
from jaxevo.datasets.values import BYTES, Extent, ValueRange, choose_range

Progress = Callable[[int, int], None]  # images done, of how many
BLOCK = 256  # images
_ALLOWANCE = 1 << 30  # bytes of pixels; drawings of even colours have 100 times their files
_NAMED = 5  # unreadable files in a message
_CONTRAST_IMAGES = 200  # that decide on the background
_SURE = 16  # no 8-bit image with a larger value is stored in a smaller range than 0 to 255


@dataclasses.dataclass(frozen=True)
class Measured:
    """What training images are like."""

    sides: tuple[tuple[int, int], ...]  # the different heights and widths
    channels: int
    values: ValueRange
    background: str


@dataclasses.dataclass(frozen=True)
class Read:
    """Inputs, uint8 [K, H, W, C], the positions of the images they were made of, and the files that
    were skipped.
    """

    images: np.ndarray
    positions: np.ndarray
    skipped: tuple[str, ...] = ()


class Pixels(Protocol):
    """The images of one split."""

    def __len__(self) -> int: ...

    def take(self, indices: np.ndarray) -> Pixels:
        """Those at `indices`, sorted integers [K]."""
        ...

    def measure(self, values: ValueRange | None = None) -> Measured:
        """What they are like; their range is `values`, if a person says so."""
        ...

    def read(self, form: InputForm, skip_unreadable: bool, progress: Progress) -> Read:
        """All of them as inputs."""
        ...


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
        """Of an array [M, H, W, C] in memory."""
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


@dataclasses.dataclass(frozen=True)
class FilePixels:
    """Image files, or encoded images in memory, of any size each."""

    what: str
    pictures: tuple[Picture, ...]

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, indices: np.ndarray) -> FilePixels:
        """See `Pixels`."""
        return dataclasses.replace(self, pictures=tuple(self.pictures[i] for i in indices))

    def measure(self, values: ValueRange | None = None) -> Measured:
        """See `Pixels`. Files that cannot be read are left for `read` to name."""
        headers = [
            (picture, header) for picture in self.pictures if (header := _header_or_none(picture))
        ]
        if not headers:
            raise DataError(
                f"{self.what} has no image that can be read; the first, {_reason(self.pictures[0])}"
            )
        sides = tuple(sorted({(header.height, header.width) for _, header in headers}))
        channels = 1 if all(header.grey for _, header in headers) else 3
        transparent = [picture for picture, header in headers if header.transparent]
        values = values or self._values(headers)
        return Measured(sides, channels, values, _background(transparent, values))

    def _values(self, headers: Sequence[tuple[Picture, Header]]) -> ValueRange:
        """The range of the files' values; decodes as few of them as tell it."""
        depths = {header.deep: picture for picture, header in headers}
        if len(depths) == 2:
            raise DataError(
                f"{depths[False]} has 8 bits a pixel and {depths[True]} 16: save all images with "
                "the same depth"
            )
        extent = None
        for picture, header in headers:
            decoded = _decoded_or_none(picture)
            if decoded is None:
                continue
            found = Extent.of(decoded[0][None], str(picture))
            extent = found if extent is None else extent | found
            if not header.deep and extent.high > _SURE:
                return BYTES
        return choose_range(extent, self.what) if extent else BYTES

    def read(self, form: InputForm, skip_unreadable: bool, progress: Progress) -> Read:
        """See `Pixels`. Names all files that cannot be read."""
        self._check_size(form)
        images = np.empty((len(self), *form.image_shape), np.uint8)
        kept: list[int] = []
        unreadable: list[DataError] = []
        extents: list[Extent] = []
        for position, picture in enumerate(self.pictures):
            try:
                values, alpha = decode(picture, _wanted(form))
            except DataError as error:
                unreadable.append(error)
                continue
            extents.append(Extent.of(values[None], str(picture)))
            images[len(kept)] = form.to_input(
                values[None], str(picture), None if alpha is None else alpha[None]
            )[0]
            kept.append(position)
            progress(position + 1, len(self))
        if unreadable and (not skip_unreadable or not kept):
            raise _refusal(self.what, unreadable)
        form.values.check_scale(functools.reduce(Extent.__or__, extents), self.what)
        skipped = set(range(len(self))) - set(kept)
        return Read(
            images[: len(kept)],
            np.array(kept),
            tuple(str(self.pictures[i]) for i in sorted(skipped)),
        )

    def _check_size(self, form: InputForm) -> None:
        shape = (len(self), *form.image_shape)
        check_image_array(self.what, shape)
        packed = sum(
            len(p.data) if isinstance(p, Encoded) else p.stat().st_size for p in self.pictures
        )
        check_unpacked(self.what, math.prod(shape), packed, "give a smaller image_size", _ALLOWANCE)


def _wanted(form: InputForm) -> tuple[int, int] | None:
    """The size to which an image may be shrunk while it is decoded; a box of ink may be a small
    part of it.
    """
    return (form.height, form.width) if form.resize == "stretch" else None


def _header_or_none(picture: Picture) -> Header | None:
    try:
        return read_header(picture)
    except DataError:
        return None


def _decoded_or_none(picture: Picture) -> tuple[np.ndarray, np.ndarray | None] | None:
    try:
        return decode(picture)
    except DataError:
        return None


def _reason(picture: Picture) -> DataError:
    try:
        decode(picture)
    except DataError as error:
        return error
    return DataError(f"{picture} cannot be read: {REMEDY}")


def _refusal(what: str, unreadable: Sequence[DataError]) -> DataError:
    if len(unreadable) == 1:
        return unreadable[0]
    named = ", ".join(str(error).split(" cannot be read", 1)[0] for error in unreadable[:_NAMED])
    more = f" and {len(unreadable) - _NAMED} more" if len(unreadable) > _NAMED else ""
    return DataError(
        f"{what} has {len(unreadable)} images that cannot be read ({named}{more}): {REMEDY}"
    )


def _background(pictures: Sequence[Picture], values: ValueRange) -> str:
    """White or black, on which transparent images keep more contrast; nothing if none has a
    transparent pixel.
    """
    contrast = dict.fromkeys(BACKGROUNDS, 0.0)
    found = 0
    for i in np.random.default_rng(0).permutation(len(pictures)):
        decoded = _decoded_or_none(pictures[i])
        if decoded is None or decoded[1] is None:
            continue
        for background in BACKGROUNDS:
            shown = composite(values.to_bytes(decoded[0][None]), decoded[1][None], background)
            contrast[background] += float(shown.mean(axis=-1).std())
        found += 1
        if found == _CONTRAST_IMAGES:
            break
    return max(BACKGROUNDS, key=lambda name: contrast[name]) if found else ""
