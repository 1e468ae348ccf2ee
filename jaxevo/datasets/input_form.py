"""The form of a network's inputs: made from the training images, saved with the weights.

By it any image becomes an input. Training, validation, test and prediction all go through
`InputForm.to_input`; nothing else converts images, so the same image gives the same array
everywhere.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxevo.datasets.axes import axes_of, in_order
from jaxevo.datasets.base import MAX_SIDE, DataError
from jaxevo.datasets.resize import METHODS, check_method, resize_images
from jaxevo.datasets.values import BYTES, Extent, ValueRange

BACKGROUNDS = ("white", "black")
_KEYS = {"size", "channels", "resize", "range", "background"}
_MAX_VALUE = 1e9  # of a pixel, in documents read back


@dataclasses.dataclass(frozen=True)
class InputForm:
    """Size, channels, way of resizing, range of stored values, and background.

    Attributes:
        height: Of an input, in pixels.
        width: Of an input, in pixels.
        channels: 1 or 3.
        resize: See `resize.resize_images`; applied to every image.
        values: The stored values of black and of white.
        background: "white" or "black"; empty: the training images have no transparent pixels.
    """

    height: int
    width: int
    channels: int
    resize: str = "stretch"
    values: ValueRange = ValueRange()
    background: str = ""

    def __post_init__(self) -> None:
        if not (1 <= self.height <= MAX_SIDE and 1 <= self.width <= MAX_SIDE):
            raise DataError(
                f"size={self.height}x{self.width} is not possible: use 1 to {MAX_SIDE} pixels a "
                "side"
            )
        if self.channels not in (1, 3):
            raise DataError(
                f"channels={self.channels} is not possible: use 1 (grey) or 3 (colours)"
            )
        check_method(self.resize)
        if self.background not in ("", *BACKGROUNDS):
            raise DataError(
                f"background={self.background} is not possible: use {' or '.join(BACKGROUNDS)}"
            )

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of an input."""
        return self.height, self.width, self.channels

    def to_input(
        self, values: np.ndarray, what: str, alpha: np.ndarray | None = None
    ) -> np.ndarray:
        """Images as they are stored to inputs.

        Args:
            values: Real numbers [M, H, W, C], C 1 or 3.
            what: Names the images in error messages.
            alpha: Opacity from 0 to 1, [M, H, W]; `None` if every pixel is opaque.

        Returns:
            uint8 [M, height, width, channels].

        Raises:
            DataError: The values lie outside the range, or pixels are transparent and there is no
            background.
        """
        if values.dtype == bool:
            values = values.astype(np.uint8)
        if values.dtype == np.uint8 and self.values.high > 255:
            raise DataError(
                f"{what} has 8 bits a pixel, where the training images' range is {self.values}: "
                "store all in one range"
            )
        if values.dtype != np.uint8 or self.values != BYTES:  # which uint8 always lies within
            self.values.check_bounds(Extent.of(values, what), what)
        pixels = self.values.to_bytes(values)
        if alpha is not None and alpha.min() < 1:
            pixels = self._composited(pixels, alpha, what)
        return resize_images(pixels, self.image_shape, self.resize)

    def from_array(self, images: ArrayLike, what: str = "the images") -> np.ndarray:
        """Inputs of images as `axes` understands them, for predictions.

        They are in the training images' range. Raises `DataError`.
        """
        array = np.asarray(images)
        if array.ndim == 3 and array.shape[2] in (1, 3):
            raise DataError(
                f"{what} of shape {list(array.shape)} are one image: give it as image[None]"
            )
        if array.dtype.kind not in "biuf" or not array.size:
            raise DataError(f"{what} are {array.dtype} {list(array.shape)}: give numbers")
        values = in_order(array, axes_of(what, array.shape))
        # Bytes that have another type than theirs are rather of another range than dark.
        dark = self.values != BYTES or values.dtype == np.uint8
        self.values.check_scale(Extent.of(values, what), what, dark=dark)
        return self.to_input(values, what)

    def _composited(self, pixels: np.ndarray, alpha: np.ndarray, what: str) -> np.ndarray:
        if not self.background:
            raise DataError(
                f"{what} has transparent pixels, which the training images have not: save it "
                f"without transparency, or train with a background ({' or '.join(BACKGROUNDS)})"
            )
        return composite(pixels, alpha, self.background)

    def describe(self) -> str:
        """The form in words, for the line before a run."""
        channels = "grey" if self.channels == 1 else "colours"
        behind = f", transparent pixels on {self.background}" if self.background else ""
        way = "" if self.resize == "stretch" else f" by {self.resize}"
        return f"{self.height}x{self.width} pixels{way}, {channels}, values {self.values}{behind}"

    def to_json(self) -> dict[str, Any]:
        """A document of numbers and strings, read back by `from_json`."""
        return {
            "size": [self.height, self.width],
            "channels": self.channels,
            "resize": self.resize,
            "range": [self.values.low, self.values.high],
            "background": self.background,
        }

    @classmethod
    def from_json(cls, document: Any) -> InputForm:
        """Reads a document of `to_json`, which may come from a stranger.

        Raises `DataError` for anything else.
        """
        if not isinstance(document, Mapping) or set(document) != _KEYS:
            raise DataError(f"the input form must have {', '.join(sorted(_KEYS))} and nothing else")
        height, width = _numbers(document, "size", int)
        low, high = _numbers(document, "range", float)
        channels, resize, background = (
            document[key] for key in ("channels", "resize", "background")
        )
        if (
            type(channels) is not int
            or resize not in METHODS
            or background not in ("", *BACKGROUNDS)
        ):
            raise DataError("the input form's channels, resize or background is none that exists")
        return cls(height, width, channels, resize, ValueRange(low, high), background)

    @classmethod
    def assumed(cls, image_shape: tuple[int, int, int], resize: str = "stretch") -> InputForm:
        """The form that weights saved before version 0.3 mean.

        Values are from 0 to 255, and no pixel is transparent.
        """
        return cls(*image_shape, resize)


def _numbers(document: Mapping[str, Any], key: str, kind: type) -> tuple[Any, Any]:
    found = document[key]
    allowed = (int,) if kind is int else (int, float)
    if (
        not isinstance(found, list)
        or len(found) != 2
        or any(type(value) not in allowed for value in found)
    ):
        raise DataError(f"the input form's {key} must be two numbers")
    if any(not -_MAX_VALUE <= value <= _MAX_VALUE for value in found):
        raise DataError(f"the input form's {key} has a number beyond {_MAX_VALUE:g}")
    return kind(found[0]), kind(found[1])


def composite(pixels: np.ndarray, alpha: np.ndarray, background: str) -> np.ndarray:
    """Bytes [M, H, W, C] laid on white or black by their opacity [M, H, W]."""
    opacity = alpha[..., None].astype(np.float32)
    behind = 255.0 if background == "white" else 0.0
    return np.round(pixels * opacity + behind * (1 - opacity)).astype(np.uint8)
