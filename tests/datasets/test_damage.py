"""Damaged files of every format are read or refused in one line."""

from __future__ import annotations

import bz2
import gzip
import os
import pathlib
import warnings
from collections.abc import Callable

import numpy as np
import pytest
from builders_data import (
    damaged,
    idx_bytes,
    make_images,
    make_labels,
    mat_bytes,
    npz_bytes,
    picture,
    usps_text,
)

from jaxevo.datasets import DataError, InputForm, idx, libsvm, load_train_data, mat
from jaxevo.datasets.file_pixels import FilePixels

pytestmark = pytest.mark.usefixtures("offline")


def read_picture(path: pathlib.Path) -> object:
    return FilePixels("the pictures", (path,)).read(
        InputForm(8, 8, 3), False, lambda done, total: None
    )


X, Y = make_images(6, (32, 32, 3)), make_labels(6, 3)


FORMATS: dict[str, tuple[bytes, Callable[[pathlib.Path], object]]] = {
    "idx": (idx_bytes(X[..., 0]), lambda path: idx.read_idx(path, 3)),
    "idx.gz": (gzip.compress(idx_bytes(X[..., 0] // 200)), lambda path: idx.read_idx(path, 3)),
    "libsvm": (usps_text(X[:3, :16, :16, :1], Y[:3]), lambda path: libsvm.read_split([path])),
    "libsvm.bz2": (
        bz2.compress(usps_text(X[:3, :16, :16, :1], Y[:3])),
        lambda path: libsvm.read_split([path]),
    ),
    "mat": (mat_bytes(X[:2], Y[:2], False), lambda path: mat.read_split([path])),
    "mat.z": (mat_bytes(X[:2] // 200, Y[:2], True), lambda path: mat.read_split([path])),
    "npz": (
        npz_bytes(make_images(20, (3, 3)), make_labels(20, 2), False),
        lambda path: load_train_data(str(path)),
    ),
    "z.npz": (
        npz_bytes(make_images(20, (3, 3)), make_labels(20, 2), True),
        lambda path: load_train_data(str(path)),
    ),
    **{
        kind: (picture(kind), read_picture)
        for kind in ("png", "jpeg", "gif", "bmp", "tiff", "ppm", "webp")
    },
}


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_give_data_errors_or_data(tmp_path: pathlib.Path, name: str) -> None:
    data, read = FORMATS[name]
    path = tmp_path / f"file.{name}"
    path.write_bytes(data)
    read(path)
    rng = np.random.default_rng(len(name))
    failures = 0
    for _ in range(int(os.environ.get("JAXEVO_FUZZ", 200))):
        path.write_bytes(damaged(data, rng))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(path)
        except DataError as error:
            failures += 1
            assert str(path) in str(error) and "\n" not in str(error)
    assert failures  # or nothing was tested
