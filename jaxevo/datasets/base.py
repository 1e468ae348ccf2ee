"""The error of every reader, and bounds on what a file may demand."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jaxevo.errors import InputError

MAX_SIDE = 4096  # pixels of an input; no network here could take a larger one
MAX_BYTES = 4 << 30  # of pixels in one array
MAX_PUBLISHED_BYTES = 1 << 30  # of one published split: SVHN's train split has 215 MiB
MAX_RATIO = 10  # of what a packed file unpacks to: MNIST's images have 4.7 times their file
MAX_UNPACKED_BYTES = 32 << 20  # below it any ratio is possible, as small or even images pack well


class DataError(InputError):
    """Data that cannot be used; one sentence names the thing, its value and the remedy."""


def check_image_array(path: object, shape: Sequence[int], limit: int = MAX_BYTES) -> None:
    """Raises `DataError` unless an array of that shape may be allocated.

    Shapes are [M, H, W, C], [M, H, W] or [M].
    """
    sizes = " x ".join(map(str, shape))
    if min(shape) < 1:
        raise DataError(f"{path} holds no images ({sizes}): use a file with at least one")
    if any(side > MAX_SIDE for side in shape[1:3]):
        raise DataError(
            f"{path} has images of {shape[1]} x {shape[2]} pixels: make them at most {MAX_SIDE} a "
            "side"
        )
    if math.prod(shape) > limit:
        raise DataError(
            f"{path} claims {sizes} values, more than {limit >> 20} MiB: use fewer or smaller "
            "images"
        )


def check_unpacked(
    path: object, size: int, packed_size: int, *, remedy: str, allowance: int = MAX_UNPACKED_BYTES
) -> None:
    """Raises `DataError` if `packed_size` bytes unpack to suspiciously many.

    A file so packed seems made to fill the memory.
    """
    if size > max(allowance, MAX_RATIO * packed_size):
        raise DataError(
            f"{path} unpacks to {size >> 20} MiB, more than {MAX_RATIO} times its own size: "
            f"{remedy}"
        )
