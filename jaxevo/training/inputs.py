"""Inputs of a trained network, checked: images as its pixels, labels as its classes.

Letters: `M` images of `H` x `W` pixels and `C` channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from jaxevo.datasets import InputForm
from jaxevo.datasets.axes import axes_of, in_order
from jaxevo.datasets.values import BYTES
from jaxevo.errors import InputError

_SHOWN = 5  # class names in a message


def check_images(
    images: ArrayLike, image_shape: tuple[int, int, int], form: InputForm | None = None
) -> np.ndarray:
    """The images as a network takes them.

    Args:
        images: Numbers in the training images' range, `[M, H, W, C]` or `[M, C, H, W]`; `[M, H, W]`
            is enough for one channel. A single image is `[H, W, C]`, or `[H, W]` for one channel.
        image_shape: The network's height, width and channels.
        form: How stored images become inputs: images are boxed if the training images were. None:
            they are inputs already, uint8 from 0 to 255.

    Returns:
        uint8 `[M, H, W, C]`, M = 1 for a single image.

    Raises:
        InputError: The images have another size or another scale of pixels.
    """
    try:
        array = np.asarray(images)
    except ValueError:
        raise InputError(
            f"images differ in shape: give one array [M, {_sides(image_shape)}]"
        ) from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"images are {array.dtype}, not numbers: give pixels, uint8 from 0 to 255")
    # Add the axes of channels and of images where they are missing.
    height, width, channels = image_shape
    if channels == 1 and array.ndim < 4 and array.shape[-2:] == (height, width):
        array = array[..., None]
    if array.ndim == 3:
        array = array[None]
    if array.ndim == 4 and array.shape[1:] == (channels, height, width) != image_shape:
        array = in_order(array, axes_of("images", array.shape))
    if array.ndim != 4 or array.shape[1:] != image_shape:
        if array.ndim == 2 and array.shape[1] == math.prod(image_shape):
            remedy = f"use images.reshape(-1, {_sides(image_shape)})"
        elif form is None:
            remedy = "resize them by jaxevo.datasets.resize_images"
        else:
            remedy = "convert them by the classifier's form.from_array, for its predict_inputs"
        raise InputError(
            f"images of shape {list(np.shape(images))} cannot be classified, as the network takes "
            f"[M, {_sides(image_shape)}]: {remedy}"
        )
    # Convert stored values as the training images were converted.
    if form is None:
        if array.dtype != np.uint8:
            raise InputError(f"images are {_scale(array)}")
        return array
    if len(array) == 0:
        return np.empty((0, *image_shape), np.uint8)
    # Bytes of 0 and 1 may be a dark image; of another type they are black and white.
    if form.values == BYTES and array.dtype != np.uint8 and array.max() == 1:
        raise InputError(f"images are {_scale(array)}")
    return form.from_array(array)


def _sides(image_shape: tuple[int, int, int]) -> str:
    return ", ".join(map(str, image_shape))


def _scale(array: np.ndarray) -> str:
    """A phrase on a wrong scale of an array's pixels, and the remedy."""
    expected = "the network takes uint8 from 0 to 255"
    if array.dtype == np.bool_:
        return f"bool and {expected}: use images * np.uint8(255)"
    low, high = (array.min(), array.max()) if array.size else (0, 0)
    found = f"{array.dtype} from {low:g} to {high:g} and {expected}"
    if 0 <= low and high <= 1:
        return f"{found}: use np.round(255 * images).astype(np.uint8)"
    if 0 <= low and high <= 255:
        return f"{found}: use np.round(images).astype(np.uint8) if 255 is white"
    return f"{found}: scale them as the training images were scaled"


def class_numbers(labels: ArrayLike, class_names: Sequence[str]) -> np.ndarray:
    """Labels as positions in `class_names`.

    Args:
        labels: `[M]` or `[M, 1]`, names of classes or numbers. A number is the class of that name
            where all names are numbers, and a position in `class_names` otherwise.
        class_names: The network's classes.

    Returns:
        int32 `[M]`.

    Raises:
        InputError: A label is no class of the network.
    """
    array = np.asarray(labels)
    # Bring labels to one axis, and whole numbers to integers.
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"labels have the shape {list(array.shape)}: give one an image, [M]")
    if array.dtype == np.bool_:
        array = array.astype(np.int64)
    if array.dtype.kind == "f" and np.all(np.isfinite(array)) and np.all(array == np.round(array)):
        array = array.astype(np.int64)
    # Numbers are positions unless all class names are numbers themselves.
    positions = {name: position for position, name in enumerate(class_names)}
    if array.dtype.kind in "iu" and not all(name.lstrip("-").isdecimal() for name in class_names):
        positions = {str(position): position for position in range(len(class_names))}
    # Look each distinct label up once.
    distinct, inverse = np.unique(array.astype(str), return_inverse=True)
    unknown = [label for label in distinct.tolist() if label not in positions]
    if unknown:
        known = ", ".join(list(positions)[:_SHOWN]) + (", ..." if len(positions) > _SHOWN else "")
        raise InputError(f"label {unknown[0]} is no class of the network: use {known}")
    found = [positions[label] for label in distinct.tolist()]
    return np.array(found, np.int32)[inverse]
