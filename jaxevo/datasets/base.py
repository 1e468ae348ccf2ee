"""Records that hold images, the error of every reader, and bounds on a file's demands."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxevo.errors import InputError

if TYPE_CHECKING:  # they use this module
    from jaxevo.datasets.input_form import InputForm
    from jaxevo.datasets.summary import DataSummary

MAX_SIDE = 4096  # pixels of an input; no network here could take a larger one
MAX_BYTES = 4 << 30  # of pixels in one array
MAX_PUBLISHED_BYTES = 1 << 30  # of one published split: SVHN's train split has 215 MiB
MAX_RATIO = 10  # of what a packed file unpacks to: MNIST's images have 4.7 times their file
MAX_UNPACKED_BYTES = 32 << 20  # below it any ratio is possible, as small or even images pack well


class DataError(InputError):
    """Data that cannot be used; one sentence names the thing, its value and the remedy."""


@dataclasses.dataclass(frozen=True)
class Images:
    """One split: M images of H x W pixels and C channels, with labels.

    Attributes:
        images: uint8 [M, H, W, C].
        labels: int32 [M], from 0 to the number of classes - 1.
    """

    images: np.ndarray
    labels: np.ndarray

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or self.images.dtype != np.uint8:
            raise DataError(
                f"images must be uint8 [M, H, W, C], not {self.images.dtype} "
                f"{list(self.images.shape)}"
            )
        if self.labels.shape != self.images.shape[:1] or self.labels.dtype != np.int32:
            raise DataError(
                f"labels must be int32 [{len(self.images)}], one an image, "
                f"not {self.labels.dtype} {list(self.labels.shape)}"
            )

    def __len__(self) -> int:
        return len(self.images)

    def take(self, indices: np.ndarray) -> Images:
        """The images at `indices` ([K] integers), in that order."""
        return Images(self.images[indices], self.labels[indices])

    def digest(self) -> str:
        """Equal for the same images and labels."""
        return _digest("", self)


@dataclasses.dataclass(frozen=True)
class SearchData:
    """The images that a search may see: the test split is not among them."""

    name: str
    train: Images
    validation: Images
    class_names: tuple[str, ...]
    # Form in which any image becomes an input; `None` only if it was not loaded.
    form: InputForm | None = None
    summary: DataSummary | None = None
    content: str = ""  # `content_key` of the training split, validation images included

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def digest(self) -> str:
        """Equal for the same images, labels and division."""
        return _digest(repr(self.class_names), self.train, self.validation)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of every image."""
        height, width, channels = self.train.images.shape[1:]
        return height, width, channels


def _digest(text: str, *parts: Images) -> str:
    hashed = hashlib.sha256(text.encode())
    for part in parts:
        for array in (part.images, part.labels):
            hashed.update(f"{array.shape}".encode() + np.ascontiguousarray(array).data)
    return hashed.hexdigest()


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
