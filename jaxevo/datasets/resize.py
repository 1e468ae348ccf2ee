"""Bringing images to a network's size: stretched, or placed as MNIST's digits are."""

from __future__ import annotations

import numpy as np
from PIL import Image

from jaxevo.datasets.base import DataError, check_image_array

METHODS = ("stretch", "mnist_box")
_BOX = 20 / 28  # MNIST: the digit fills a 20x20 box in 28x28 pixels
_INK = 0.1  # of an image's brightest pixel; below it is background


def resize_images(
    images: np.ndarray, image_shape: tuple[int, int, int], method: str = "stretch"
) -> np.ndarray:
    """Resizes images and gives them the number of channels.

    Args:
        images: uint8 [M, H, W, C], C 1 or 3.
        image_shape: The height, width and channels (1 or 3) they get.
        method: "stretch" is bilinear with antialiasing; "mnist_box" scales the bounding box of the
            ink (bright on dark) into 20/28 of the size and puts its centre of mass into the middle,
            as MNIST was made.

    Returns:
        uint8 [M, *image_shape].
    """
    check_method(method)
    if images.dtype != np.uint8:
        raise DataError(
            f"images of type {images.dtype} cannot be resized: give uint8, or let "
            "InputForm.from_array convert them"
        )
    height, width, channels = image_shape
    if images.shape[3] not in (1, 3) or channels not in (1, 3):
        raise DataError(
            f"images of {images.shape[3]} channels cannot be given {channels}: only 1 and 3 are "
            "possible"
        )
    check_image_array("resized data", (max(1, len(images)), *image_shape))
    # Colours become grey where the result has one channel, or the ink is sought.
    if images.shape[3] == 3 and (channels == 1 or method == "mnist_box"):
        images = _to_grey(images)
    # Boxing is done even to images that have the size already.
    if method == "mnist_box" or images.shape[1:3] != (height, width):
        resize_one = _boxed if method == "mnist_box" else _stretched
        resized = np.empty((len(images), height, width, images.shape[3]), np.uint8)
        for i, image in enumerate(images):
            resized[i] = resize_one(image, height, width)
        images = resized
    return np.repeat(images, channels, axis=3) if images.shape[3] < channels else images


def check_method(method: str) -> None:
    """Raises `DataError` unless `method` is one of `METHODS`."""
    if method not in METHODS:
        raise DataError(f"resize={method} is not possible: choose {' or '.join(METHODS)}")


def _to_grey(images: np.ndarray) -> np.ndarray:
    """Luminance (ITU-R 601) of [M, H, W, 3] as [M, H, W, 1].

    Images are converted one at a time, to keep the float copies small.
    """
    grey = np.empty((*images.shape[:3], 1), np.uint8)
    for i, image in enumerate(images):
        grey[i, ..., 0] = np.round(image @ np.array([0.299, 0.587, 0.114]))
    return grey


def _stretched(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resizes [H, W, C] to [height, width, C].

    Pillow widens the bilinear filter when it shrinks, which is the antialiasing.
    """
    pixels = Image.fromarray(image[..., 0] if image.shape[2] == 1 else image)
    return np.asarray(pixels.resize((width, height), Image.Resampling.BILINEAR)).reshape(
        height, width, -1
    )


def _boxed(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resizes [H, W, 1] to [height, width, 1], with the ink placed as in MNIST.

    An image without ink is black.
    """
    canvas = np.zeros((height, width, 1), np.uint8)
    ink = image[..., 0] > _INK * max(1, int(image.max()))
    if not ink.any():
        return canvas
    rows, cols = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    crop = image[rows[0] : rows[-1] + 1, cols[0] : cols[-1] + 1]
    box_height, box_width = round(height * _BOX), round(width * _BOX)
    scale = min(box_height / crop.shape[0], box_width / crop.shape[1])
    size = [max(1, round(side * scale)) for side in crop.shape[:2]]
    digit = _stretched(crop, size[0], size[1])
    if not digit.any():
        return canvas
    top = _offset(digit.sum(axis=(1, 2), dtype=np.float64), height)
    left = _offset(digit.sum(axis=(0, 2), dtype=np.float64), width)
    # A digit whose mass lies far from its middle may reach over the edge: that part is lost, as it
    # was in MNIST.
    y0, y1 = max(top, 0), min(top + size[0], height)
    x0, x1 = max(left, 0), min(left + size[1], width)
    canvas[y0:y1, x0:x1] = digit[y0 - top : y1 - top, x0 - left : x1 - left]
    return canvas


def _offset(mass: np.ndarray, side: int) -> int:
    """Position of a digit that puts its mass's centre on pixel `side / 2`.

    `mass` are the digit's sums over rows (or columns). Pixel `side / 2` is where the real MNIST has
    it: its mean centre is at row and column 14.0, counted from 0.
    """
    centre = float(mass @ np.arange(len(mass)) / mass.sum())
    return round(side / 2 - centre)
