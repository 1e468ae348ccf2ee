"""Tables of images: CSV or parquet.

CSV has a label column and a column for each pixel; parquet has encoded images.

Kaggle's digits and MNIST in CSV are of the first kind, the Hub's image data sets (`image`, `label`,
class names in the file's metadata) of the second. A folder may hold tables of each split:
`train.csv`, `test-00000-of-00001.parquet`.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxevo.datasets.base import MAX_BYTES, DataError
from jaxevo.datasets.csv_table import (
    LABEL_COLUMNS,
    REMEDY,
    ImageTable,
    label_column,
    no_nulls,
    read_csv,
)
from jaxevo.datasets.dataset import Dataset, Part
from jaxevo.datasets.file_pixels import FilePixels
from jaxevo.datasets.files import check_regular
from jaxevo.datasets.folder import PassedOver
from jaxevo.datasets.labels import classes_of, label_names, lacking, number_classes
from jaxevo.datasets.pictures import Encoded
from jaxevo.datasets.pixels import Pixels
from jaxevo.datasets.split_names import role_of

if TYPE_CHECKING:  # imported late, as it takes a while
    import pyarrow

SUFFIXES = (".csv", ".parquet")
_MAX_SCHEMA = 1 << 20  # bytes of the class names' description


def tables_in(folder: pathlib.Path) -> dict[str, list[pathlib.Path]]:
    """The tables of each split that lie in a folder or its `data/`, by their names' beginnings."""
    found: dict[str, list[pathlib.Path]] = {}
    for place in (folder, folder / "data"):
        if not place.is_dir():
            continue
        for path in sorted(place.iterdir()):
            role = role_of(re.split(r"[-_.]", path.name, maxsplit=1)[0])
            if (
                path.suffix.lower() in SUFFIXES
                and role
                and path.is_file()
                and not path.is_symlink()
            ):
                found.setdefault(role, []).append(path)
        if "train" in found:
            return found
    return {}


def open_tables(name: str, tables: dict[str, list[pathlib.Path]]) -> Dataset:
    """Reads the tables of each split; `tables` has at least those of "train"."""
    passed = PassedOver()
    read: dict[str, tuple[Pixels, np.ndarray, tuple[str, ...]]] = {}
    notes: list[str] = []
    columns: dict[str, tuple[str, ...]] = {}
    # Read the tables of each split; a test table without labels is passed over.
    for role, paths in tables.items():
        tabled = [_read_table(path) for path in paths]
        if role != "train" and any(table.labels is None for table in tabled):
            passed.add(f"files without a label column for {role}", paths[0].name, len(paths))
            continue
        columns[role] = tabled[0].columns
        read[role] = _joined(paths, tabled)
        notes += [table.note for table in tabled if table.note]
    # The training tables decide the classes.
    pixels, raw, names = read["train"]
    classes = np.arange(len(names)) if names else classes_of(str(tables["train"][0]), raw, notes)
    class_names = names or tuple(map(str, classes.tolist()))
    parts = {}
    for role, (pixels, raw, other) in read.items():
        what = str(tables[role][0])
        _check_order(what, columns[role], columns["train"])
        if other != names:
            raise DataError(
                f"{what} names other classes than the training images: use the same in both"
            )
        parts[role] = Part(
            pixels, number_classes(what, raw, classes, trained=str(tables["train"][0]))
        )
    notes += [note for role in parts for note in lacking(parts[role].labels, class_names, role)]
    test = parts.get("test")
    return Dataset(
        name,
        class_names,
        parts["train"],
        parts.get("validation"),
        None if test is None else lambda: test,
        0 if test is None else len(test),
        (*notes, *passed.notes()),
    )


def _check_order(what: str, columns: Sequence[str], trained: Sequence[str]) -> None:
    """Raises `DataError` where a table has the columns of the training table in another order."""
    if columns != trained and sorted(columns) == sorted(trained):
        raise DataError(
            f"{what} has its columns in another order than the training table: sort them alike"
        )


def _read_table(path: pathlib.Path) -> ImageTable:
    check_regular(path, REMEDY)
    try:
        return read_csv(path) if path.suffix.lower() == ".csv" else _read_parquet(path)
    except (DataError, OSError):
        raise
    except Exception as error:  # pyarrow raises many types on damaged files
        raise DataError(
            f"{path} cannot be read ({str(error)[:200] or type(error).__name__}): {REMEDY}"
        ) from error


def _joined(
    paths: Sequence[pathlib.Path], tabled: Sequence[ImageTable]
) -> tuple[Pixels, np.ndarray, tuple[str, ...]]:
    labels = []
    for path, table in zip(paths, tabled, strict=True):
        if table.labels is None:
            raise DataError(
                f"{path} has no label column ({', '.join(LABEL_COLUMNS)}): name one of its "
                "columns so"
            )
        kinds = {each.dtype.kind for each in [table.labels, *labels]}
        if table.class_names != tabled[0].class_names or len(kinds) > 1:
            raise DataError(f"{path} has other classes than {paths[0]}: use the same in both")
        labels.append(table.labels)
    first = tabled[0].pixels
    if len(tabled) > 1:
        pictures = [
            table.pixels.pictures for table in tabled if isinstance(table.pixels, FilePixels)
        ]
        if len(pictures) < len(tabled):
            raise DataError(
                f"{paths[1]} is a second table for one split: join them into one CSV file"
            )
        first = FilePixels(str(paths[0]), sum(pictures, ()))
    return first, np.concatenate(labels), tabled[0].class_names


def _read_parquet(path: pathlib.Path) -> ImageTable:
    from pyarrow import parquet

    # Check the size that the metadata tells, before a row is read.
    file = parquet.ParquetFile(path)
    groups = [
        file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups)
    ]
    if sum(groups) > MAX_BYTES or not file.metadata.num_rows:
        raise DataError(
            f"{path} has {file.metadata.num_rows} rows of {sum(groups) >> 20} MiB: use 1 row to "
            "4096 MiB"
        )
    # Collect the encoded images and the labels.
    schema = file.schema_arrow
    image, label = _image_column(path, schema), label_column(schema.names)
    pictures: list[Encoded] = []
    labels: list[np.ndarray] = []
    for batch in file.iter_batches(columns=[image, label] if label else [image]):
        for encoded in _encoded(batch.column(image)):
            if not isinstance(encoded, bytes):
                raise DataError(f"{path}, row {len(pictures)}, has no image: leave the row out")
            pictures.append(Encoded(f"{path}, row {len(pictures)},", encoded))
        if label:
            labels.append(no_nulls(path, batch.column(label), label))
    raw = label_names(str(path), np.concatenate(labels)) if labels else None
    return ImageTable(FilePixels(str(path), tuple(pictures)), raw, _class_names(schema, label))


def _image_column(path: pathlib.Path, schema: pyarrow.Schema) -> str:
    import pyarrow as pa

    def holds_bytes(kind: pyarrow.DataType) -> bool:
        return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)

    found = [
        field.name
        for field in schema
        if holds_bytes(field.type)
        or (
            pa.types.is_struct(field.type)
            and any(f.name == "bytes" and holds_bytes(f.type) for f in field.type)
        )
    ]
    if len(found) != 1:
        have = ", ".join(schema.names[:8])
        raise DataError(
            f"{path} has {len(found)} columns of encoded images (of {have}): it must have exactly "
            "one"
        )
    return found[0]


def _encoded(column: Any) -> Iterator[Any]:
    """The encoded images of a column of bytes, or of structures with a field `bytes`."""
    import pyarrow as pa

    values = column.field("bytes") if pa.types.is_struct(column.type) else column
    return (value.as_py() for value in values)


def _class_names(schema: pyarrow.Schema, label: str) -> tuple[str, ...]:
    """Class names in the metadata that the Hub's library writes; empty if there are none."""
    text = (schema.metadata or {}).get(b"huggingface", b"")
    if not text or len(text) > _MAX_SCHEMA:
        return ()
    try:
        names = json.loads(text)["info"]["features"][label]["names"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    good = (
        isinstance(names, list)
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
    )
    return tuple(names) if good and len(names) > 1 else ()
