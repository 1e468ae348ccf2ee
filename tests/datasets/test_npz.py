"""`.npz` files: exact values, and files that cannot be used."""

from __future__ import annotations

import io
import pathlib
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
from builders_data import assert_images, data_error, make_images, make_labels

from jaxevo.datasets import load_test_data, load_train_data, npz

pytestmark = pytest.mark.usefixtures("offline")


@pytest.mark.parametrize(
    ("convert", "channels"),
    [
        (lambda x: x, 3),
        (lambda x: x[..., 0], 1),
        (lambda x: x.astype(np.int64), 3),
        (lambda x: x / 255, 3),
        (lambda x: x.astype(np.float32), 3),
        (lambda x: np.asfortranarray(x), 3),
    ],
)
def test_npz_round_trip(
    tmp_path: pathlib.Path, convert: Callable[[np.ndarray], np.ndarray], channels: int
) -> None:
    pixels, labels = make_images(24, (6, 5, 3)), make_labels(24, 3)
    path = tmp_path / "own.npz"
    names = np.array([-7, 3, 12])
    x, y = convert(pixels), names[labels]
    np.savez_compressed(path, x_train=x, y_train=y[:, None], x_test=x[:9], y_test=y[:9])
    train, class_names = load_train_data(str(path))
    assert_images(train, pixels[..., :channels], labels)
    assert class_names == ("-7", "3", "12")
    assert_images(load_test_data(str(path)), pixels[:9, ..., :channels], labels[:9])


def test_npz_without_test_part_has_a_fixed_one(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(50, (4, 4)), make_labels(50, 5)
    path = tmp_path / "own.npz"
    np.savez(path, x_train=pixels, y_train=labels)
    train, _ = load_train_data(str(path))
    test = load_test_data(str(path))
    assert (
        np.bincount(train.labels).tolist() == [8] * 5
        and np.bincount(test.labels).tolist() == [2] * 5
    )
    assert {*map(bytes, train.images), *map(bytes, test.images)} == set(map(bytes, pixels))


def test_npz_errors(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.npz"
    x, y = make_images(20, (4, 4)), make_labels(20, 2)
    good = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    cases: list[tuple[dict[str, np.ndarray], str]] = [
        ({"x_train": x}, "lacks its labels"),
        ({**good, "y_test": y + 1}, "label 2"),
        ({**good, "y_train": y[:9]}, "9 labels"),
        ({"x_train": x, "y_train": y, "x_test": x}, "lacks its labels"),
        ({**good, "x_train": x.astype(object)}, "x_train"),
        ({**good, "x_train": x.astype(float) - 1}, "from -1 to"),
        ({**good, "x_train": x * np.nan}, "finite"),
        ({**good, "x_train": x[..., None, None]}, "[20, 4, 4, 1, 1]"),
        ({**good, "x_train": x[:0]}, "no images"),
        ({**good, "y_train": y / 3}, "whole numbers"),
        ({**good, "x_train": x.astype(complex)}, "complex128"),
        ({**good, "y_train": y * 0}, "1 class"),
        ({**good, "x_train": x.astype("U3")}, "not of numbers"),
        ({**good, "x_train": x[..., None].repeat(2, 3)}, "C 1 or 3"),
    ]
    for arrays, part in cases:
        np.savez(path, **arrays)  # type: ignore[arg-type]
        data_error(lambda: (load_train_data(str(path)), load_test_data(str(path))), path, part)
    path.write_bytes(b"no zip")
    data_error(lambda: load_train_data(str(path)), path, "no .npz file")
    np.savez_compressed(path, **good)
    monkeypatch.setattr(npz, "MAX_BYTES", 100)
    data_error(lambda: load_train_data(str(path)), path, "MiB")


def npy_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_npz_header_must_agree_with_its_length(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "own.npz"
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        member, {"descr": "|u1", "fortran_order": False, "shape": (2**20, 32, 32)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", member.getvalue())
        archive.writestr("y_train.npy", npy_bytes(make_labels(8, 2)))
    data_error(lambda: load_train_data(str(path)), path, "x_train", "header")
