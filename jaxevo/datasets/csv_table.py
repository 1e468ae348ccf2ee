"""Tables of images as CSV: a label column and a column for each pixel of a square image."""

from __future__ import annotations

import math
import pathlib
import re
from collections.abc import Sequence
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
_MAX_COLUMNS = 20_000
_MAX_LINE = 1 << 20  # bytes of the first line


class ImageTable(NamedTuple):
    """A table's images and labels, the class names that the file has, and what to say of it."""

    pixels: Pixels
    labels: np.ndarray | None  # None: no column has them
    class_names: tuple[str, ...] = ()
    note: str = ""


def read_csv(path: pathlib.Path) -> ImageTable:
    """The images and labels of a CSV file. Raises `DataError`."""
    import pyarrow as pa
    from pyarrow import csv

    # Tell label and pixels apart.
    columns, has_names = _csv_columns(path)
    label = label_column(columns) if has_names else columns[0]
    pixels = [name for name in columns if name != label]
    side = _check_pixel_columns(path, pixels)
    # Read in blocks, so that the size is checked before all of it is held.
    reader = csv.open_csv(
        path,
        read_options=csv.ReadOptions(column_names=columns, skip_rows=int(has_names)),
        convert_options=csv.ConvertOptions(column_types={name: pa.float32() for name in pixels}),
    )
    blocks: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    rows = 0
    for batch in reader:
        rows += batch.num_rows
        check_image_array(path, (max(1, rows), side, side, 1), MAX_BYTES // 4)
        block = np.stack([no_nulls(path, batch.column(name), name) for name in pixels], axis=1)
        blocks.append(block.reshape(-1, side, side, 1))
        if label:
            labels.append(no_nulls(path, batch.column(label), label))
    if not rows:
        raise DataError(f"{path} has no rows: use a file with at least one image")
    images = ArrayPixels.of(str(path), np.concatenate(blocks))
    if not labels:
        return ImageTable(images, None)
    found = np.concatenate(labels)
    if found.dtype.kind == "U" and label in found and all(map(_is_number, pixels)):
        raise DataError(f"{path} has its first line twice: leave the second one out")
    note = "" if has_names else f"{path} has no names of columns: the first is taken for the label"
    return ImageTable(images, label_names(str(path), found), note=note)


def _check_pixel_columns(path: pathlib.Path, names: Sequence[str]) -> int:
    """The side of the square images whose pixels have these columns.

    Raises `DataError` unless their number is a square, or where they were sorted by their letters.
    """
    side = math.isqrt(len(names))
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


def _csv_columns(path: pathlib.Path) -> tuple[list[str], bool]:
    """The columns' names, made up where the first line has none, and whether it has them."""
    with path.open("rb") as file:
        line = file.readline(_MAX_LINE)
    if b"\0" in line:
        raise DataError(f"{path} is no text in UTF-8: {REMEDY} as CSV in UTF-8")
    names = [name.strip().strip('"') for name in line.decode("utf-8-sig", "replace").split(",")]
    if not line.endswith(b"\n") or len(names) > _MAX_COLUMNS:
        raise DataError(
            f"{path} has no first line of at most {_MAX_COLUMNS:,} columns: {REMEDY} as CSV with "
            "commas"
        )
    named = label_column(names) or not all(_is_number(name) for name in names[1:])
    if len(set(names)) == len(names) and named:
        return names, True
    return [f"column {i}" for i in range(len(names))], False


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
        raise DataError(
            f"{path} has an empty field in the column {name}: fill it or leave the row out"
        )
    found = column.to_numpy(zero_copy_only=False)
    return found.astype(str) if found.dtype == object else found
