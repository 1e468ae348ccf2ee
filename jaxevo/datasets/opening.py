"""Opening of a data set by its name, its path or its arrays, with the reader of its kind."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from typing import Any

from jaxevo.datasets.arrays import open_arrays
from jaxevo.datasets.base import DataError
from jaxevo.datasets.dataset import Dataset
from jaxevo.datasets.folder import holds_training_classes, open_folder
from jaxevo.datasets.npz import open_npz
from jaxevo.datasets.published import open_digits, open_published
from jaxevo.datasets.sources import SOURCES
from jaxevo.datasets.tables import SUFFIXES, open_tables, tables_in
from jaxevo.files import home_expanded

Data = Any  # see `open_dataset`
NAMES = ("digits", *SOURCES)
_ALIASES = {"svhn": "svhn_cropped"}


def same_dataset(first: str, second: str) -> bool:
    """True if two names or paths mean the same data."""

    def canonical(dataset: str) -> str:
        name = _ALIASES.get(dataset, dataset)
        return name if name in NAMES else os.path.realpath(home_expanded(dataset))

    return canonical(first) == canonical(second)


def open_dataset(data: Data, data_dir: str | None = None) -> Dataset:
    """Finds and understands a data set without reading images that are not needed for it.

    Args:
        data: One of `NAMES`, a folder of class folders of images or of tables, an `.npz`, CSV or
            parquet file, images and labels in memory (see `arrays.open_arrays`), or a data set that
            is open already.
        data_dir: Folder with the published files, as `<data_dir>/<name>/<file>`; without them they
            are downloaded.

    Raises:
        DataError: It is none of these, or damaged.
    """
    if isinstance(data, Dataset):
        return data
    if not isinstance(data, str | os.PathLike):
        return open_arrays(data)
    dataset = os.fspath(data)
    name = _ALIASES.get(dataset, dataset)
    if name not in NAMES:
        return dataclasses.replace(_open_path(dataset), name=dataset)
    opened = open_digits() if name == "digits" else open_published(SOURCES[name], data_dir)
    own = os.path.join(data_dir, dataset) if data_dir else None
    if not os.path.exists(dataset) or (own and os.path.realpath(own) == os.path.realpath(dataset)):
        return opened
    return opened.with_note(f"passed over: the path {dataset} here, which ./{dataset} would mean")


def _open_path(dataset: str) -> Dataset:
    path = pathlib.Path(home_expanded(dataset))
    suffix = path.suffix.lower()
    # A folder has tables, or folders of classes, which go first.
    if os.path.isdir(path):
        tables = tables_in(path)
        if "train" not in tables:
            return open_folder(path)
        if not holds_training_classes(path):
            return open_tables(str(path), tables)
        names = ", ".join(table.name for listed in tables.values() for table in listed)
        note = f"passed over: {names}, as there are folders of classes"
        return open_folder(path).with_note(note)
    # A file is known by its ending.
    if os.path.isfile(path):
        if suffix == ".npz":
            return open_npz(path)
        if suffix in SUFFIXES:
            return open_tables(str(path), {"train": [path]})
        kind = f"that ends in {suffix}" if suffix else "without an ending"
        raise DataError(f"dataset={dataset} is a file {kind}: use an .npz, .csv or .parquet file")
    # There is nothing: a path or a name may be misspelt.
    known = f"the data sets known by name are {', '.join(NAMES)}"
    if os.sep in dataset or suffix in (".npz", *SUFFIXES):
        raise DataError(f"dataset={dataset} does not exist: check the path; {known}")
    raise DataError(
        f"dataset={dataset} is not known and no such file or folder exists: give a folder with a "
        f"folder of images for each class, or an .npz, .csv or .parquet file; {known}"
    )
