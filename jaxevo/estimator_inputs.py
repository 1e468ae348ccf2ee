"""Inputs of an estimator of scikit-learn, made the images of a network: shape, scale of pixels.

A row holds the `H * W * C` values of an image in NumPy's order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxevo.errors import InputError

_WHITES = (1.0, 16.0, 255.0)  # of floats, of scikit-learn's digits, of bytes
_BLOCK = 1024  # rows that are converted at once, as their floats take eight times the bytes' memory


def as_rows(X: Any) -> tuple[Any, tuple[int, ...] | None]:
    """Images as rows, and their own shape, which is None if they came as rows or are no array.

    Args:
        X: `[N, H, W]`, `[N, H, W, C]`, or anything that `sklearn` is to check as rows.

    Raises:
        InputError: X has more dimensions.
    """
    array = X if hasattr(X, "shape") else np.asarray(X)
    if len(array.shape) <= 2:
        return array, None
    if len(array.shape) > 4:
        raise InputError(f"X has the shape {list(array.shape)}: give [N, H, W] or [N, H, W, C]")
    image_shape = tuple(array.shape[1:])
    rows = np.asarray(array).reshape(len(array), math.prod(image_shape))
    return rows, image_shape


def image_shape_of(
    shape: tuple[int, ...] | None, values: int, wanted: Sequence[int] | None
) -> tuple[int, int, int]:
    """Height, width and channels of images.

    Args:
        shape: Their own, `(H, W)` or `(H, W, C)`; None if they came as rows.
        values: Of an image.
        wanted: What the caller named, one side may be -1; None: rows are square images.

    Raises:
        InputError: They are not as wanted, or rows are not square.
    """
    if wanted is None:
        side = math.isqrt(values)
        if shape is None and side * side != values:
            raise InputError(
                f"rows of {values} values are no square images: give image_shape=(height, width) "
                "or (height, width, channels)"
            )
        shape = shape or (side, side)
        return shape[0], shape[1], shape[2] if len(shape) > 2 else 1
    try:
        found = np.empty(values, np.bool_).reshape(tuple(wanted)).shape
    except (TypeError, ValueError):
        found = ()
    found = (*found, 1) if len(found) == 2 else found
    if len(found) != 3 or (shape is not None and (*shape, 1)[:3] != found):
        given = f"images of {list(shape)}" if shape else f"rows of {values} values"
        raise InputError(f"{given} do not have the image_shape {tuple(wanted)}: give one that fits")
    return found[0], found[1], found[2]


def choose_range(rows: np.ndarray) -> tuple[float, float]:
    """The values of black and of white in training images: a known scale, or their own extremes.

    Raises:
        InputError: They are too far apart for 64 bits.
    """
    low = float(rows.min())
    high = float(rows.max())
    for white in _WHITES:
        if low >= 0 and high <= white:
            return 0.0, white
    if not math.isfinite(high - low):
        raise InputError(f"X has values from {low:g} to {high:g}: give pixels from 0 to 255")
    return low, high


def check_range(rows: np.ndarray, pixel_range: tuple[float, float]) -> None:
    """Raises `InputError` if images are on another scale than the known one of the training images.

    Single values may lie outside, as a scaler in front of the estimator leaves some there.
    """
    black, white = pixel_range
    if black != 0 or white not in _WHITES:
        return
    coloured = rows[rows != 0]
    if coloured.size == 0:
        return
    outside = np.mean((coloured < 0) | (coloured > white)) > 0.5
    fractions = white > 1 and coloured.min() > 0 and coloured.max() <= 1
    if outside or (fractions and np.any(coloured % 1)):
        raise InputError(
            f"X has values from {rows.min():g} to {rows.max():g} and the images of fit had "
            f"{black:g} to {white:g}: give both on one scale"
        )


def to_pixels(rows: np.ndarray, pixel_range: tuple[float, float]) -> np.ndarray:
    """Rows as uint8 of the same shape, black at 0 and white at 255; values outside are cut off."""
    black, white = pixel_range
    if rows.dtype == np.uint8 and pixel_range == (0, 255):
        return rows
    width = (white - black) or 1.0  # all training images are even
    pixels = np.empty(rows.shape, np.uint8)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        shares = (rows[block].astype(np.float64) - black) / width
        pixels[block] = np.round(np.clip(shares, 0, 1) * 255)
    return pixels
