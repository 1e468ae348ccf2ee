"""SVHN's MATLAB files: exact values, and files that cannot be used."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import scipy.io
from builders_data import assert_images, data_error, make_images, make_labels, mat_bytes

from jaxevo.datasets import load_search_data, load_test_data, mat

pytestmark = pytest.mark.usefixtures("offline")


@pytest.mark.parametrize("compress", [True, False])
def test_svhn_files_round_trip(tmp_path: pathlib.Path, compress: bool) -> None:
    pixels, labels = make_images(20, (32, 32, 3)), make_labels(20)
    (tmp_path / "svhn_cropped").mkdir()
    for name in ("train_32x32.mat", "test_32x32.mat"):
        (tmp_path / "svhn_cropped" / name).write_bytes(mat_bytes(pixels, labels, compress))
    assert_images(load_test_data("svhn", str(tmp_path)), pixels, labels)
    assert load_search_data("svhn", str(tmp_path), validation_fraction=0.5).name == "svhn_cropped"


def test_one_svhn_image(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "one.mat"
    pixels = make_images(1, (32, 32, 3))
    scipy.io.savemat(
        path, {"X": pixels[0], "y": np.array([[10.0]])}
    )  # MATLAB drops the last dimension
    assert_images(mat.read_split([path]), pixels, np.array([0]))


def test_mat_errors(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train_32x32.mat"
    pixels, labels = make_images(4, (32, 32, 3)), make_labels(4)
    x = pixels.transpose(1, 2, 3, 0)
    cases = [
        ({"X": x}, "lacks y"),
        ({"X": x * 1.0, "y": labels}, "float64"),
        ({"X": x, "y": labels[:3]}, "4 images"),
        ({"X": x[:20], "y": labels}, "[20, 32, 3, 4]"),
        ({"X": x, "y": labels + 20}, "1 to 10"),
        ({"X": x, "y": np.array([1, 2, 3, np.nan])}, "1 to 10"),
        ({"X": np.array([{}, {}], object), "y": labels}, "lacks X"),
        ({"X": x * 1j, "y": labels}, "lacks X"),
    ]
    for arrays, part in cases:
        scipy.io.savemat(path, arrays)
        data_error(lambda: mat.read_split([path]), path, part)
    path.write_bytes(mat_bytes(pixels, labels)[:-20])
    data_error(lambda: mat.read_split([path]), path, "cut short")
    path.write_bytes(b"MATLAB 7.3")
    data_error(lambda: mat.read_split([path]), path, "no MATLAB 5 file")


def test_mat_bomb(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mat, "_LIMIT", 1 << 20)
    path = tmp_path / "bomb.mat"
    path.write_bytes(mat_bytes(np.zeros((400, 32, 32, 3), np.uint8), make_labels(400)))
    assert path.stat().st_size < 20_000
    data_error(lambda: mat.read_split([path]), path, "unpacks to more")
