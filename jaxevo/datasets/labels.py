"""Labels as people store them to classes with names: numbers, words, columns, one-hot rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxevo.datasets.base import DataError

LABEL_REMEDY = "fill it or leave the image out"  # of a label that is missing


def label_names(what: str, labels: np.ndarray) -> np.ndarray:
    """Labels [M], [M, 1] or [1, M] of any kind, or one-hot [M, K], as strings and sortable values.

    Returns:
        int64 [M] or strings [M].
    """
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.reshape(-1)
    if labels.ndim == 2:
        labels = _from_one_hot(what, labels)
    if labels.dtype.kind == "b":
        labels = labels.astype(str)
    if labels.ndim != 1 or not labels.size:
        raise DataError(
            f"{what} has the shape {list(labels.shape)}: it must be one label an image, [M]"
        )
    if labels.dtype.kind == "S":
        try:
            labels = np.char.decode(labels, "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{what} has labels that are no text in UTF-8: save them so") from None
    if labels.dtype.kind == "f":
        if not np.all(np.isfinite(labels)) or np.any(labels != np.round(labels)):
            raise DataError(f"{what} has labels that are no whole numbers: use integers or words")
    if labels.dtype.kind in "iuf":
        if labels.min() < -(2**62) or labels.max() > 2**62:
            raise DataError(f"{what} has labels beyond 2**62: use integers or words")
        return labels.astype(np.int64)
    if labels.dtype.kind != "U":
        raise DataError(f"{what} is of type {labels.dtype}: use integers or words")
    if np.any(labels == ""):
        raise DataError(f"{what} has an empty label: {LABEL_REMEDY}")
    return labels


def _from_one_hot(what: str, labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind not in "biuf" or not np.all((labels == 0) | (labels == 1)):
        raise DataError(
            f"{what} has the shape {list(labels.shape)}: it must be one label an image, [M], or "
            "one-hot"
        )
    if np.any(labels.sum(axis=1) != 1):
        raise DataError(
            f"{what} gives an image several labels or none: choose one class for each image"
        )
    return labels.argmax(axis=1)


def classes_of(what: str, labels: np.ndarray, notes: Sequence[str] = ()) -> np.ndarray:
    """The different labels, sorted.

    Raises `DataError` for fewer than two, with the notes on how the labels were found.
    """
    classes = np.unique(labels)
    if len(classes) < 2:
        raise DataError(
            f"{what} has 1 class ({classes[0]}): "
            + "; ".join(["images of at least 2 are needed", *notes])
        )
    return classes


def number_classes(
    what: str, labels: np.ndarray, classes: np.ndarray, *, trained: str
) -> np.ndarray:
    """Labels as positions in `classes`, the sorted labels of the training images, int32 [M]."""
    if differ := labels.dtype.kind != classes.dtype.kind:
        labels, classes = labels.astype(str), classes.astype(str)
    unknown = np.setdiff1d(labels, classes)
    if differ and (unknown.size or np.any(classes[1:] <= classes[:-1])):
        raise DataError(
            f"of {what} and {trained} one has numbers for labels, the other words: use one kind"
        )
    if unknown.size:
        raise DataError(
            f"{what} has label {unknown[0]}, which {trained} has not: leave those images out"
        )
    return np.searchsorted(classes, labels).astype(np.int32)


def lacking(labels: np.ndarray, class_names: Sequence[str], split: str) -> tuple[str, ...]:
    """A phrase on the classes of which a split has no images."""
    present = set(np.unique(labels).tolist())
    absent = [name for i, name in enumerate(class_names) if i not in present]
    return (f"no {split} images of class {', '.join(absent[:8])}",) if absent else ()
