"""Images that are in memory already, as a person has them in Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxevo.datasets.array_pixels import ArrayPixels
from jaxevo.datasets.axes import axes_of, in_order
from jaxevo.datasets.base import DataError, check_image_array
from jaxevo.datasets.dataset import Dataset, Part
from jaxevo.datasets.labels import (
    LABEL_REMEDY,
    classes_of,
    label_names,
    lacking,
    number_classes,
)
from jaxevo.datasets.npz import check_alike

NAME = "arrays"  # what such data is called in records
_PARTS = {"train": "train", "validation": "val", "test": "test"}
_WITH_TEST = ("x_train", "y_train", "x_test", "y_test")
_KEYS = tuple(f"{kind}_{part}" for part in _PARTS.values() for kind in "xy")


def open_arrays(data: Any) -> Dataset:
    """Opens arrays in memory as a data set.

    Data are a pair (images, labels), two such pairs for training and test as Keras gives them, or a
    mapping of `x_train`, `y_train` and perhaps of `val` and `test`.

    Images are numbers `[M, H, W]`, `[M, H, W, C]` or `[M, C, H, W]`, labels `[M]` numbers or words.
    Without test images there is no test split. Raises `DataError`.
    """
    if not isinstance(data, Mapping):
        if not isinstance(data, tuple | list) or len(data) != 2:
            raise DataError(
                f"data is a {type(data).__name__}: give a name, a folder, an .npz file, a pair of "
                "images and labels, or a dict of x_train, y_train, x_test and y_test"
            )
        if all(_is_pair(each) for each in data):
            (train, labels), (test, test_labels) = data
            data = dict(zip(_WITH_TEST, (train, labels, test, test_labels), strict=True))
        else:
            data = {"x_train": data[0], "y_train": data[1]}
    _check_keys(data)
    # Read the labels of all parts, and number the classes of the training part.
    raw = {
        role: label_names(f"y_{part}", _label_array(f"y_{part}", data[f"y_{part}"]))
        for role, part in _PARTS.items()
        if f"y_{part}" in data
    }
    classes = classes_of("y_train", raw["train"])
    names = tuple(map(str, classes.tolist()))
    # Check the images of each part against its labels, and their channels.
    pixels = {
        role: _pixels(f"x_{_PARTS[role]}", data[f"x_{_PARTS[role]}"], len(labels))
        for role, labels in raw.items()
    }
    for images in pixels.values():
        check_alike(pixels["train"], images)
    parts = {
        role: Part(
            pixels[role],
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


def _is_pair(part: Any) -> bool:
    """True for images with their labels, False for an array or a list of numbers."""
    if not isinstance(part, tuple | list) or len(part) != 2:
        return False
    return isinstance(part, tuple) or all(isinstance(each, np.ndarray) for each in part)


def _check_keys(data: Mapping[str, Any]) -> None:
    if unknown := sorted(set(map(str, data)) - set(_KEYS)):
        raise DataError(f"data has the unknown key {unknown[0]!r}: use {', '.join(_KEYS)}")
    for part in _PARTS.values():
        pair = f"x_{part}", f"y_{part}"
        if len([key for key in pair if key in data]) == 1:
            raise DataError(f"data has only one of {pair[0]} and {pair[1]}: give both")
    if "x_train" not in data:
        raise DataError("data lacks x_train and y_train: give training images and labels")


def _array(what: str, values: Any) -> np.ndarray:
    """Raises `DataError` for images that differ in shape, and for values that are masked."""
    if np.ma.is_masked(values):
        raise DataError(f"{what} has masked values: fill them")
    try:
        return np.asarray(values)
    except ValueError:
        raise DataError(f"{what} has parts of different shapes: make them alike") from None
    except (RuntimeError, TypeError) as error:  # as of a tensor on another device
        raise DataError(f"{what} is no NumPy array ({str(error)[:200]}): make it one") from error


def _label_array(what: str, labels: Any) -> np.ndarray:
    """The labels as an array of numbers or words: tables give words as objects.

    Raises `DataError` for those that a table lacks, which NumPy would call "nan".
    """
    array = _array(what, labels)
    if array.dtype.kind in "OU" and any(map(_is_missing, np.asarray(labels, object).flat)):
        raise DataError(f"{what} has an empty label: {LABEL_REMEDY}")
    return _array(what, array.tolist()) if array.dtype == object else array


def _is_missing(label: Any) -> bool:
    """True for None, NaN and what tables have for these; a word is never missing."""
    return not isinstance(label, str | bytes) and str(label) in ("None", "nan", "NaT", "<NA>")


def _pixels(what: str, images: Any, num_labels: int) -> ArrayPixels:
    array = _array(what, images)
    array = in_order(array, axes_of(what, array.shape))
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} is of type {array.dtype}: use numbers")
    check_image_array(what, array.shape)
    if len(array) != num_labels:
        raise DataError(
            f"{what} has {len(array)} images and {num_labels} labels: give one an image"
        )
    return ArrayPixels.of(what, array)
