"""Images that are in memory already, as a person has them in Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxevo.datasets import npz
from jaxevo.datasets.base import DataError, Images, SearchData
from jaxevo.datasets.splits import split_off

_KEYS = ("x_train", "y_train", "x_test", "y_test")


@dataclasses.dataclass(frozen=True)
class ArrayData:
    """Training and test images with their classes; without test images `test` is None."""

    train: Images
    class_names: tuple[str, ...]
    test: Images | None = None

    def search_data(self, name: str, validation_fraction: float, seed: int) -> SearchData:
        """Divides the training images. Raises `DataError` where that is not possible."""
        labels = self.train.labels
        what = f"the validation part of {name}"
        rest, validation = split_off(labels, validation_fraction, seed, what)
        return SearchData(
            name, self.train.take(rest), self.train.take(validation), self.class_names
        )


def from_arrays(data: Any) -> ArrayData:
    """A pair (images, labels), or a mapping of `x_train`, `y_train` and perhaps `x_test`, `y_test`.

    Images are `[M, H, W]` or `[M, H, W, C]`, labels `[M]` numbers or names. Raises `DataError`.
    """
    if not isinstance(data, Mapping):
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise DataError(
                f"data is a {type(data).__name__}: give a name, a folder, an .npz file, a pair of images "
                "and labels, or a dict of x_train, y_train, x_test and y_test"
            )
        data = dict(zip(_KEYS, data, strict=False))
    if unknown := sorted(set(data) - set(_KEYS)):
        raise DataError(f"data has the unknown key {unknown[0]!r}: use {', '.join(_KEYS)}")
    for pair in (_KEYS[:2], _KEYS[2:]):
        if len([key for key in pair if key in data]) == 1:
            raise DataError(f"data has only one of {pair[0]} and {pair[1]}: give both")
    if "x_train" not in data:
        raise DataError("data lacks x_train and y_train: give training images and labels")
    names = np.unique(np.asarray(data["y_train"]))
    if len(names) < 2:
        raise DataError(
            f"y_train has {len(names)} class: images of at least 2 classes are needed"
        )
    train = _images(data, "train", names)
    test = _images(data, "test", names) if "x_test" in data else None
    return ArrayData(train, tuple(map(str, names.tolist())), test)


def _images(data: Mapping[str, Any], part: str, names: np.ndarray) -> Images:
    """The images of `part` ("train" or "test"), their labels as positions in `names`."""
    pixels = npz.to_pixels(f"x_{part}", np.asarray(data[f"x_{part}"]))
    labels = np.asarray(data[f"y_{part}"])
    if labels.shape != (len(pixels),):
        raise DataError(
            f"y_{part} has the shape {list(labels.shape)}: it must be [{len(pixels)}], one an image"
        )
    unknown = np.setdiff1d(labels, names)
    if unknown.size:
        raise DataError(f"y_{part} has the class {unknown[0]}, which y_train has not: leave it out")
    return Images(pixels, np.searchsorted(names, labels).astype(np.int32))
