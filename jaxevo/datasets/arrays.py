"""Images that are in memory already, as a person has them in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxevo.datasets.array_pixels import ArrayPixels
from jaxevo.datasets.base import DataError, check_image_array
from jaxevo.datasets.dataset import Dataset, Part
from jaxevo.datasets.labels import classes_of, label_names, lacking, number_classes

NAME = "arrays"  # what such data is called in records
_PARTS = {"train": "train", "validation": "val", "test": "test"}
_KEYS = tuple(f"{kind}_{part}" for part in _PARTS.values() for kind in "xy")


def open_arrays(data: Any) -> Dataset:
    """Opens arrays in memory as a data set.

    Data are a pair (images, labels), or a mapping of `x_train`, `y_train` and perhaps of `val` and
    `test`.

    Images are numbers `[M, H, W]` or `[M, H, W, C]`, labels `[M]` numbers or words. Without test
    images there is no test split. Raises `DataError`.
    """
    if not isinstance(data, Mapping):
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise DataError(
                f"data is a {type(data).__name__}: give a name, a folder, an .npz file, a pair of "
                "images and labels, or a dict of x_train, y_train, x_test and y_test"
            )
        data = dict(zip(_KEYS, data, strict=False))
    _check_keys(data)
    # Read the labels of all parts, and number the classes of the training part.
    raw = {
        role: label_names(f"y_{part}", _label_array(data[f"y_{part}"]))
        for role, part in _PARTS.items()
        if f"y_{part}" in data
    }
    classes = classes_of("y_train", raw["train"])
    names = tuple(map(str, classes.tolist()))
    # Check the images of each part against its labels.
    parts = {
        role: Part(
            _pixels(f"x_{_PARTS[role]}", np.asarray(data[f"x_{_PARTS[role]}"]), len(labels)),
            number_classes(f"y_{_PARTS[role]}", labels, classes, trained="y_train"),
        )
        for role, labels in raw.items()
    }
    test = parts.get("test")
    notes = [note for role in parts for note in lacking(parts[role].labels, names, role)]
    return Dataset(
        NAME,
        names,
        parts["train"],
        validation=parts.get("validation"),
        test=None if test is None else lambda: test,
        num_test=0 if test is None else len(test),
        notes=tuple(notes),
        splits_test=False,
    )


def _check_keys(data: Mapping[str, Any]) -> None:
    if unknown := sorted(set(map(str, data)) - set(_KEYS)):
        raise DataError(f"data has the unknown key {unknown[0]!r}: use {', '.join(_KEYS)}")
    for part in _PARTS.values():
        pair = f"x_{part}", f"y_{part}"
        if len([key for key in pair if key in data]) == 1:
            raise DataError(f"data has only one of {pair[0]} and {pair[1]}: give both")
    if "x_train" not in data:
        raise DataError("data lacks x_train and y_train: give training images and labels")


def _label_array(labels: Any) -> np.ndarray:
    """The labels as an array of numbers or words: tables give words as objects."""
    array = np.asarray(labels)
    return np.asarray(array.tolist()) if array.dtype == object else array


def _pixels(what: str, array: np.ndarray, num_labels: int) -> ArrayPixels:
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[3] not in (1, 3):
        raise DataError(
            f"{what} has the shape {list(array.shape)}: it must be [M, H, W] or [M, H, W, C], C 1 "
            "or 3"
        )
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} is of type {array.dtype}: use numbers")
    check_image_array(what, array.shape)
    if len(array) != num_labels:
        raise DataError(
            f"{what} has {len(array)} images and {num_labels} labels: give one an image"
        )
    return ArrayPixels.of(what, array)
