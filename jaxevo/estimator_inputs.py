"""Inputs of an estimator of scikit-learn, made the inputs of a network: shape, range of pixels.

A row holds the `H * W * C` values of an image in NumPy's order.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxevo.datasets import DataError, InputForm, ValueRange
from jaxevo.datasets.class_names import map_classes
from jaxevo.datasets.values import Extent, choose_range
from jaxevo.errors import InputError

_LARGEST = 1e9  # value of a pixel
# Parts of the values that are not 0, from which on images are of another range.
_BELOW, _OUTSIDE = 0.25, 0.5
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
        found = (*(shape or (side, side)), 1)[:3]
    else:
        found = _wanted_shape(shape, values, wanted)
    height, width, channels = found
    if channels not in (1, 3):
        raise InputError(
            f"images of {list(found)} would have {channels} channels: give 1 or 3, as the last "
            "side [N, H, W, C]"
        )
    return height, width, channels


def _wanted_shape(
    shape: tuple[int, ...] | None, values: int, wanted: Sequence[int]
) -> tuple[int, ...]:
    """The shape that the caller named. Raises `InputError` if the images do not have it."""
    try:
        found = np.empty(values, np.bool_).reshape(tuple(wanted)).shape
    except (TypeError, ValueError):
        found = ()
    found = (*found, 1) if len(found) == 2 else found
    if len(found) != 3 or (shape is not None and (*shape, 1)[:3] != found):
        given = f"images of {list(shape)}" if shape else f"rows of {values} values"
        raise InputError(f"{given} do not have the image_shape {tuple(wanted)}: give one that fits")
    return found


def own_range(rows: np.ndarray) -> ValueRange | None:
    """The extremes of training images whose values lie in none of the usual ranges.

    None: they lie in one, which a search finds by itself.

    Raises:
        InputError: The values are all the same, or too large.
    """
    extent = Extent.of(rows, "X")
    with contextlib.suppress(DataError):
        choose_range(extent, "X")
        return None
    low, high = extent.low, extent.high
    if max(-low, high) > _LARGEST:
        raise InputError(f"X has values from {low:g} to {high:g}: give pixels from 0 to 255")
    if low == high:
        raise InputError(f"X has the value {low:g} everywhere: give images that differ")
    return ValueRange(low, high)


def check_range(rows: np.ndarray, values: ValueRange) -> None:
    """Raises `InputError` if images are in another range than the usual one of the training images.

    Single values may lie outside, as a scaler in front of the estimator leaves some there.
    """
    coloured = rows[rows != 0]
    if coloured.size == 0:
        return
    below = np.mean(coloured < values.low - values.tolerance)
    above = np.mean(coloured > values.high + values.tolerance)
    wrong = below > _BELOW or above + below > _OUTSIDE
    if not wrong and values.usual:
        try:
            values.check_scale(Extent.of(rows.clip(values.low, values.high), "X"), "X")
        except DataError:
            wrong = True
    if wrong:
        raise InputError(
            f"X has values from {rows.min():g} to {rows.max():g} and the images of fit had "
            f"{values}: give both on one scale"
        )


def class_columns(names: Sequence[str], class_names: Sequence[str]) -> np.ndarray:
    """Where the classes of these names are among a network's, int32 `[len(names)]`."""
    return map_classes(names, class_names, "y")


def to_inputs(rows: np.ndarray, image_shape: tuple[int, int, int], form: InputForm) -> np.ndarray:
    """Rows as a network's inputs, uint8 `[N, *form.image_shape]`.

    Values outside of the form's range are cut off.

    Args:
        rows: `[N, H * W * C]`.
        image_shape: `(H, W, C)`.
        form: The network's.
    """
    inputs = np.empty((len(rows), *form.image_shape), np.uint8)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        images = rows[block].reshape(-1, *image_shape)
        inputs[block] = form.to_input(np.clip(images, form.values.low, form.values.high), "X")
    return inputs
