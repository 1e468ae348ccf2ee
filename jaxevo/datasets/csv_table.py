"""Tables of images as CSV: a label column and a column for each pixel of a square image."""

from __future__ import annotations

import contextlib
import math
import pathlib
import re
from collections.abc import Sequence
from csv import reader
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxevo.datasets.array_pixels import ArrayPixels
from jaxevo.datasets.base import MAX_BYTES, DataError, check_image_array
from jaxevo.datasets.labels import label_names
from jaxevo.datasets.pixels import Pixels

if TYPE_CHECKING:  # imported late, as it takes a while
    import pyarrow

LABEL_COLUMNS = ("label", "labels", "class", "target", "y", "fine_label", "digit")
REMEDY = "save it anew"
_EMPTY = ("", "nan")  # values that lack
_WHOLE = r"[+-]?(0|[1-9]\d*)"  # 01 is no number, but a name
_NUMBER = _WHOLE + r"(\.\d*)?([eE][+-]?\d+)?"
_MAX_COLUMNS = 20_000
_MAX_LABEL = 200  # bytes
_MAX_LINE = 1 << 20  # bytes of the first line


class ImageTable(NamedTuple):
    """A table's images and labels, the class names that the file has, and what to say of it."""

    pixels: Pixels
    labels: np.ndarray | None  # None: no column has them
    class_names: tuple[str, ...] = ()
    note: str = ""
    columns: tuple[str, ...] = ()  # of the pixels in a CSV file


class _Columns(NamedTuple):
    """Names of a file's columns, made up where it has none.

    The first `lines` lines hold no image. The label is empty where no column is one, and the note
    is on a label that no name tells.
    """

    names: list[str]
    label: str
    lines: int
    note: str = ""


def read_csv(path: pathlib.Path) -> ImageTable:
    """The images and labels of a CSV file. Raises `DataError`."""
    import pyarrow as pa
    from pyarrow import csv

    # Tell label and pixels apart.
    columns, label, lines, note = _csv_columns(path)
    pixels = [name for name in columns if name != label]
    side = _check_pixel_columns(path, pixels, labelled=bool(label))
    # Read in blocks, so that the size is checked before all of it is held.
    stream = csv.open_csv(
        path,
        read_options=csv.ReadOptions(column_names=columns, skip_rows=lines),
        # Labels are read as words: a type that the first rows suggest may not fit later ones.
        convert_options=csv.ConvertOptions(
            column_types={name: pa.binary() if name == label else pa.float32() for name in columns}
        ),
    )
    blocks: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    rows = 0
    for batch in stream:
        rows += batch.num_rows
        check_image_array(path, (max(1, rows), side, side, 1), MAX_BYTES // 4)
        block = np.stack([no_nulls(path, batch.column(name), name) for name in pixels], axis=1)
        blocks.append(block.reshape(-1, side, side, 1))
        if label:
            labels.append(batch.column(label).to_numpy(zero_copy_only=False))
    if not rows:
        raise DataError(f"{path} has no rows: use a file with at least one image")
    images = ArrayPixels.of(str(path), np.concatenate(blocks))
    if not labels:
        return ImageTable(images, None, columns=tuple(pixels))
    found = _labels(path, np.concatenate(labels), label)
    if found.dtype.kind == "U" and label in found and all(map(_is_number, pixels)):
        raise DataError(f"{path} has its first line twice: leave the second one out")
    return ImageTable(images, label_names(str(path), found), (), note, tuple(pixels))


def _labels(path: pathlib.Path, texts: np.ndarray, name: str) -> np.ndarray:
    """Labels [M] as numbers if all are, as a spreadsheet or NumPy writes them; else as words."""
    if (longest := max(map(len, texts))) > _MAX_LABEL:
        raise DataError(f"{path} has a label of {longest:,} bytes: use at most {_MAX_LABEL:,}")
    try:
        words = np.char.decode(texts.astype(bytes), "utf-8")
    except UnicodeDecodeError:
        raise DataError(_no_text(path, name)) from None
    stripped = np.char.strip(words)
    different = np.unique(stripped).tolist()
    if any(word.casefold() in _EMPTY for word in different):
        raise DataError(_lacks(path, name))
    if all(re.fullmatch(_WHOLE, word) for word in different):
        with contextlib.suppress(OverflowError):
            return stripped.astype(np.int64)
    if all(re.fullmatch(_NUMBER, word) for word in different):
        return stripped.astype(np.float64)
    return words


def _check_pixel_columns(path: pathlib.Path, names: Sequence[str], *, labelled: bool) -> int:
    """The side of the square images whose pixels have these columns.

    Raises `DataError` unless their number is a square, or where they were sorted by their letters.
    """
    side = math.isqrt(len(names))
    if not labelled and len(names) > 4 and math.isqrt(len(names) - 1) ** 2 == len(names) - 1:
        raise DataError(
            f"{path} has {len(names)} columns, of which none is called "
            f"{', '.join(LABEL_COLUMNS[:4])}: call that of the labels so"
        )
    if side**2 != len(names) or side < 2:
        raise DataError(
            f"{path} has {len(names)} columns beside the label, which is no square number of "
            "pixels: put commas between the columns, leave out those that are no pixels, or save "
            "the images as .npz"
        )
    if second := {"label", "labels", "class", "target"} & {name.casefold() for name in names}:
        raise DataError(
            f"{path} has two columns for labels, one is {min(second)}: leave one of them"
        )
    # Names in the order of their letters have p10 before p2.
    matches = [re.fullmatch(r"(\D*)(\d+)(\D*)", name) for name in names]
    parts = [match.groups() for match in matches if match]
    numbers = [int(number) for _, number, _ in parts]
    alike = len(parts) == len(names) and len({(begin, end) for begin, _, end in parts}) == 1
    if alike and list(names) == sorted(names) and numbers != sorted(numbers):
        raise DataError(
            f"{path} has its columns in the order of their names' letters (p10 before p2): sort "
            "them by the names' numbers"
        )
    return side


def _csv_columns(path: pathlib.Path) -> _Columns:
    """The columns by the first line.

    It has names, or counts the columns as pandas does where there are no names, or is an image.
    Raises `DataError`.
    """
    with path.open("rb") as file:
        line = file.readline(_MAX_LINE)
    if b"\0" in line:
        raise DataError(f"{path} is no text in UTF-8: {REMEDY} as CSV in UTF-8")
    text = line.decode("utf-8-sig", "replace").strip("\r\n")
    if not text:
        raise DataError(f"{path} has an empty first line: remove it")
    names = [name.strip() for name in next(reader([text]))]
    if not line.endswith(b"\n") or len(names) > _MAX_COLUMNS:
        raise DataError(
            f"{path} has no first line of at most {_MAX_COLUMNS:,} columns: {REMEDY} as CSV with "
            "commas"
        )
    if names in ([str(i + first) for i in range(len(names))] for first in (0, 1)):
        note = f"{path} numbers its columns in the first line: the first is taken for the label"
        return _Columns(names, names[0], 1, note)
    words = [name for name in names[1:] if name.casefold() not in _EMPTY and not _is_number(name)]
    if not words and not label_column(names):
        note = f"{path} has no names of columns: the first is taken for the label"
        names = [f"column {i}" for i in range(len(names))]
        return _Columns(names, names[0], 0, note)
    if len(set(names)) < len(names):
        word = words[0] if words else label_column(names)
        raise DataError(
            f"{path} has {word[:40]!r} in its first line, where names repeat: give each column a "
            "name of its own, or put the label before the pixels"
        )
    return _Columns(names, label_column(names), 1)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def label_column(columns: Sequence[str]) -> str:
    """The column of labels, or an empty string."""
    folded = {name.casefold(): name for name in columns}
    return next((folded[name] for name in LABEL_COLUMNS if name in folded), "")


def no_nulls(path: pathlib.Path, column: pyarrow.Array, name: str) -> np.ndarray:
    if column.null_count:
        raise DataError(_lacks(path, name))
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype != object or not len(found):
        return found
    if isinstance(found[0], bytes):
        raise DataError(_no_text(path, name))
    if isinstance(found[0], list | dict | np.ndarray):
        raise DataError(f"{path} has several values in the column {name}: give one label an image")
    return found.astype(str)


def _no_text(path: pathlib.Path, name: str) -> str:
    return f"{path} has no text in UTF-8 in the column {name}: {REMEDY} in UTF-8"


def _lacks(path: pathlib.Path, name: str) -> str:
    return f"{path} has an empty field in the column {name}: fill it or leave the row out"
