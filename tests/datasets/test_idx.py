"""MNIST's IDX files: exact values, and files that cannot be used."""

from __future__ import annotations

import gzip
import pathlib
import struct

import pytest
from builders_data import (
    assert_images,
    data_error,
    idx_bytes,
    make_images,
    make_labels,
    write_mnist,
)

from jaxevo.datasets import idx, load_test_data, load_train_data

pytestmark = pytest.mark.usefixtures("offline")


@pytest.mark.parametrize("pack", [True, False])
def test_mnist_files_round_trip(tmp_path: pathlib.Path, pack: bool) -> None:
    pixels, labels = make_images(600, (28, 28)), make_labels(600)  # more than one block
    write_mnist(tmp_path / "mnist", pixels, labels, pack)
    assert_images(load_test_data("mnist", str(tmp_path)), pixels[..., None], labels)
    train, names = load_train_data("mnist", str(tmp_path))
    assert_images(train, pixels[..., None], labels)
    assert names == tuple("0123456789")


def test_files_directly_in_data_dir(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (28, 28), 1), make_labels(20)
    write_mnist(tmp_path, pixels, labels)
    assert_images(load_test_data("kmnist", str(tmp_path)), pixels[..., None], labels)


def test_files_by_the_names_that_kaggle_gives_them(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (28, 28), 1), make_labels(20)
    write_mnist(tmp_path, pixels, labels, pack=False)
    for path in list(tmp_path.iterdir()):
        path.rename(tmp_path / path.name.replace("-idx", ".idx"))
    assert_images(load_test_data("mnist", str(tmp_path)), pixels[..., None], labels)


def test_idx_errors(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (28, 28)), make_labels(20)
    good = idx_bytes(pixels)
    path = tmp_path / "images"
    huge = struct.pack(">4I", 0x803, 2**32 - 1, 28, 28)
    cases = {
        good[:-1]: "holds only",
        good + b"\0": "holds more",
        good[:9]: "header",
        b"": "starts with",
        b"\0\0\x0d\x03" + good[4:]: "starts with 00000d03",
        huge: "MiB",
        struct.pack(">4I", 0x803, 0, 28, 28): "no images",
        gzip.compress(good)[:-9]: "cannot be read",
        gzip.compress(good + bytes(10**7)): "holds more",
        struct.pack(">4I", 0x803, 1, 2**20, 28): "pixels",
    }
    for data, part in cases.items():
        path.write_bytes(data)
        data_error(lambda: idx.read_idx(path, 3), path, part)
    write_mnist(tmp_path / "mnist", pixels, labels[:-1])
    data_error(
        lambda: load_train_data("mnist", str(tmp_path)), "20 images", "19 labels", "idx1-ubyte"
    )
    write_mnist(tmp_path / "mnist", pixels, labels + 1)
    data_error(lambda: load_train_data("mnist", str(tmp_path)), "idx1-ubyte", "10 classes")
    write_mnist(tmp_path / "mnist", pixels[:, :20], labels)
    data_error(lambda: load_train_data("mnist", str(tmp_path)), "idx3-ubyte", "20 x 28 x 1")
