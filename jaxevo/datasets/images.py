"""Records that hold images: a split, and all that a search may see."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.datasets.contents import Content
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.summary import DataSummary


@dataclasses.dataclass(frozen=True)
class Images:
    """One split: M images of H x W pixels and C channels, with labels.

    Attributes:
        images: uint8 [M, H, W, C].
        labels: int32 [M], from 0 to the number of classes - 1.
        class_names: Of the labels, where they are known.
        form: In which they became bytes, where it is known.
    """

    images: np.ndarray
    labels: np.ndarray
    class_names: tuple[str, ...] = ()
    form: InputForm | None = None

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
        return dataclasses.replace(self, images=self.images[indices], labels=self.labels[indices])

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
    content: Content = Content()  # of the training split, validation images included

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
