"""Predictions of image files by a trained network: a row for each, as text, CSV or JSON."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxevo.datasets import DataError, InputForm
from jaxevo.datasets.image_files import find_images, read_image
from jaxevo.errors import InputError, printable
from jaxevo.files import home_expanded

if TYPE_CHECKING:  # it brings JAX
    from jaxevo.training.classifier import Classifier

FORMS = ("text", "csv", "json")
_BATCH = 256  # files that are read before they are predicted
_DIGITS = 6  # of probabilities, behind the point


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A network's prediction of one image."""

    path: pathlib.Path
    class_name: str  # the most likely one
    probability: float  # of that class, from 0 to 1
    probabilities: tuple[float, ...]  # of all classes, in the order of the network's `class_names`


def predict_lines(
    classifier: Classifier, paths: Sequence[str | os.PathLike[str]], form: str = "text"
) -> Iterator[str]:
    """Classifies image files and tells of them line by line; all that a command has to call.

    Args:
        classifier: The trained network.
        paths: Image files, and folders of them.
        form: One of `FORMS`; see `format_predictions`.

    Raises:
        InputError: A file cannot be read, a folder has no images, or the form is not known.
    """
    if form not in FORMS:
        raise InputError(f"format={form} is not known: choose one of {', '.join(FORMS)}")
    predictions = predict_files(classifier, list_files(paths))
    return format_predictions(predictions, classifier.class_names, form)


def list_files(paths: Sequence[str | os.PathLike[str]]) -> list[pathlib.Path]:
    """The files that are named, and in place of a folder the images within it, sorted.

    Raises:
        InputError: There is nothing of that name, or a folder has no images.
    """
    if not paths:
        raise InputError("no image is named: give image files or folders of them")
    found: list[pathlib.Path] = []
    for path in (pathlib.Path(home_expanded(each)) for each in paths):
        if not os.path.lexists(path):
            raise InputError(f"{path} does not exist: give image files or folders of them")
        found += find_images(path) if path.is_dir() else [path]
    return found


def predict_files(
    classifier: Classifier, paths: Sequence[str | os.PathLike[str]]
) -> Iterator[Prediction]:
    """Classifies image files of any size, resized as the training images were.

    Args:
        classifier: The trained network.
        paths: Image files.

    Yields:
        A prediction for each file, in their order.

    Raises:
        DataError: A file cannot be read; the predictions of those before it have been yielded.
    """
    files = [pathlib.Path(path) for path in paths]
    for start in range(0, len(files), _BATCH):
        part = files[start : start + _BATCH]
        inputs, failure = _read(part, classifier.form)
        rows = classifier.predict_inputs(inputs) if len(inputs) else inputs
        for path, row in zip(part, rows, strict=failure is None):
            probabilities = tuple(float(probability) for probability in row)
            best = int(row.argmax())
            name = classifier.class_names[best]
            yield Prediction(path, name, probabilities[best], probabilities)
        if failure is not None:
            raise failure


def _read(paths: Sequence[pathlib.Path], form: InputForm) -> tuple[np.ndarray, DataError | None]:
    """Inputs of the files before the first that cannot be read, [M, H, W, C], and its error."""
    inputs = np.empty((len(paths), *form.image_shape), np.uint8)
    for k, path in enumerate(paths):
        try:
            inputs[k] = read_image(path, form)
        except DataError as error:
            return inputs[:k], error
    return inputs, None


def format_predictions(
    predictions: Iterable[Prediction], class_names: Sequence[str], form: str
) -> Iterator[str]:
    """Predictions as lines without their ends.

    Args:
        predictions: What to tell.
        class_names: The network's classes.
        form: `text` (path, class and probability), `csv` (with a header, and a column `p_<class>`
            for each class) or `json` (a list of objects). Characters of paths and classes that a
            terminal would obey are escaped in all of them.
    """
    if form == "json":
        return _json_lines(predictions, class_names)
    if form == "csv":
        return _csv_lines(predictions, class_names)
    return (
        printable(f"{each.path}  {each.class_name}  {each.probability:.2%}") for each in predictions
    )


def _csv_lines(predictions: Iterable[Prediction], class_names: Sequence[str]) -> Iterator[str]:
    yield _csv_line(["path", "class", "probability", *(f"p_{name}" for name in class_names)])
    for each in predictions:
        numbers = (each.probability, *each.probabilities)
        cells = (f"{number:.{_DIGITS}f}" for number in numbers)
        yield _csv_line([str(each.path), each.class_name, *cells])


def _csv_line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([printable(cell) for cell in cells])
    return line.getvalue()


def _json_lines(predictions: Iterable[Prediction], class_names: Sequence[str]) -> Iterator[str]:
    start, failure = "[", None
    try:
        for each in predictions:
            numbers = [round(number, _DIGITS) for number in each.probabilities]
            row = {
                "path": str(each.path),
                "class": each.class_name,
                "probability": round(each.probability, _DIGITS),
                "probabilities": dict(zip(class_names, numbers, strict=True)),
            }
            yield start + json.dumps(row)
            start = ","
    except DataError as error:  # the list of those before it ends rightly
        failure = error
    yield "]" if start == "," else "[]"
    if failure is not None:
        raise failure
