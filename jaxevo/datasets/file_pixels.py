"""Image files, or encoded images in memory, of any size each."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import numpy as np

from jaxevo.datasets.base import DataError, check_image_array, check_unpacked
from jaxevo.datasets.input_form import BACKGROUNDS, InputForm, composite
from jaxevo.datasets.pictures import REMEDY, Encoded, Header, Picture, decode, read_header
from jaxevo.datasets.pixels import Measured, Progress, Read
from jaxevo.datasets.values import BYTES, SURE, Extent, ValueRange, choose_range

_ALLOWANCE = 1 << 30  # bytes of pixels; drawings of even colours have 100 times their files
_NAMED = 5  # unreadable files in a message
_CONTRAST_IMAGES = 200  # that decide on the background
_HALF = 127  # no image of 16 bits, of which 8 are read, uses fewer bits


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
        background = _background(transparent, values)
        return Measured(sides, channels, values, background, _pages_note(headers))

    def _values(self, headers: Sequence[tuple[Picture, Header]]) -> ValueRange:
        """The range of the files' values; decodes as few of them as tell it."""
        depths = {header.deep: picture for picture, header in headers}
        if len(depths) == 2:
            raise DataError(
                f"{depths[False]} has 8 bits a pixel and {depths[True]} 16: save all images with "
                "the same depth"
            )
        halved = next((picture for picture, header in headers if header.halved), None)
        sure = SURE if halved is None else _HALF
        extent = None
        for picture, header in headers:
            decoded = _decoded_or_none(picture)
            if decoded is None:
                continue
            found = Extent.of(decoded[0][None], str(picture))
            extent = found if extent is None else extent | found
            if not header.deep and extent.high > sure:
                return BYTES
        if halved is not None and extent and extent.high > 0:
            raise DataError(
                f"{halved} has 16 bits a channel, of which 8 are read, and no value in the upper "
                "half of their range: save all images with 8 bits a channel, or give "
                "pixel_range=0,255 if they are that dark"
            )
        return choose_range(extent, self.what) if extent else BYTES

    def read(self, form: InputForm, skip_unreadable: bool, progress: Progress) -> Read:
        """See `Pixels`. Names all files that cannot be read."""
        self._check_size(form)
        images = np.empty((len(self), *form.image_shape), np.uint8)
        kept: list[int] = []
        unreadable: list[DataError] = []
        extents: list[Extent] = []
        # Convert image after image; those that cannot be read are collected.
        for position, picture in enumerate(self.pictures):
            try:
                decoded = decode(picture, _wanted(form))
            except DataError as error:
                unreadable.append(error)
                continue
            images[len(kept)], extent = _to_input(picture, decoded, form)
            extents.append(extent)
            kept.append(position)
            progress(position + 1, len(self))
        if unreadable and (not skip_unreadable or not kept):
            raise _refusal(self.what, unreadable)
        # Values of all images together must lie in the training images' range.
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
        check_unpacked(
            self.what,
            math.prod(shape),
            packed,
            remedy="give a smaller image_size",
            allowance=_ALLOWANCE,
        )


def read_input(picture: Picture, form: InputForm) -> tuple[np.ndarray, Extent]:
    """Reads a picture as an input, uint8 [H, W, C], with the extent of its values."""
    return _to_input(picture, decode(picture, _wanted(form)), form)


def _to_input(
    picture: Picture, decoded: tuple[np.ndarray, np.ndarray | None], form: InputForm
) -> tuple[np.ndarray, Extent]:
    values, alpha = decoded
    alphas = None if alpha is None else alpha[None]
    made = form.to_input(values[None], str(picture), alphas)[0]
    return made, Extent.of(values[None], str(picture))


def _wanted(form: InputForm) -> tuple[int, int] | None:
    """The size to which an image may be shrunk while it is decoded.

    A box of ink may be a small part of the image, so such images are not shrunk.
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
        return DataError(f"{unreadable[0]}, or give skip_unreadable")
    named = ", ".join(str(error).split(" cannot be read", 1)[0] for error in unreadable[:_NAMED])
    more = f" and {len(unreadable) - _NAMED} more" if len(unreadable) > _NAMED else ""
    return DataError(
        f"{what} has {len(unreadable)} images that cannot be read ({named}{more}): {REMEDY}, "
        "or give skip_unreadable"
    )


def _pages_note(headers: Sequence[tuple[Picture, Header]]) -> tuple[str, ...]:
    several = [picture for picture, header in headers if header.pages]
    if not several:
        return ()
    more = ", ..." if len(several) > 1 else ""
    found = f"{len(several)} ({several[0]}{more})"
    return (f"files with several images, of which the first is read: {found}",)


def _background(pictures: Sequence[Picture], values: ValueRange) -> str:
    """The background, white or black, on which transparent images keep more contrast.

    It is empty if no image has a transparent pixel.
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
