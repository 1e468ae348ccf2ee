"""The order of the axes of images in an array, told by its shape.

Letters: `M` images of `H` x `W` pixels and `C` channels. `[M, H, W]`, `[M, H, W, C]` and
`[M, C, H, W]` are understood.
"""

from __future__ import annotations

import math

import numpy as np

from jaxevo.datasets.base import DataError


def axes_of(what: str, shape: tuple[int, ...]) -> tuple[int | None, ...]:
    """The axes of images, rows, columns and channels; `None`: there is no such axis.

    Raises `DataError` for another shape than the module names.
    """
    if len(shape) == 3:
        return 0, 1, 2, None
    if len(shape) == 4 and shape[3] in (1, 3):
        return 0, 1, 2, 3
    if len(shape) == 4 and shape[1] in (1, 3):
        return 0, 2, 3, 1
    remedy = "give [M, H, W] or [M, H, W, C], C 1 or 3"
    if len(shape) == 2 and (side := math.isqrt(shape[1])) ** 2 == shape[1]:
        remedy += f"; .reshape(-1, {side}, {side}) makes that of rows of square images"
    if len(shape) == 4 and shape[2] in (1, 3):
        remedy += "; .transpose(3, 0, 1, 2) makes that of images that come last"
    raise DataError(f"{what} of the shape {list(shape)} cannot be read: {remedy}")


def in_order(block: np.ndarray, order: tuple[int | None, ...]) -> np.ndarray:
    """Images as [m, H, W, C], whose axes lie in the order that `axes_of` gives."""
    axes = [axis for axis in order if axis is not None]
    return block[..., None] if len(axes) == 3 else block.transpose(axes)
