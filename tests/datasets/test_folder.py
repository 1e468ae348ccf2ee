"""Folders of images: exact values, and folders that cannot be used."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from builders_data import assert_images, data_error, make_images, make_labels, write_folder
from PIL import Image

from jaxevo.datasets import folder as folder_format
from jaxevo.datasets import load_test_data, load_train_data, resize_images

pytestmark = pytest.mark.usefixtures("offline")


@pytest.mark.parametrize("shape", [(7, 5, 1), (7, 5, 3)])
def test_folder_with_official_split(tmp_path: pathlib.Path, shape: tuple[int, ...]) -> None:
    pixels, labels = make_images(12, shape), np.sort(make_labels(12, 3))
    write_folder(tmp_path / "train", pixels, labels)
    write_folder(tmp_path / "test", pixels[::2], labels[::2])
    (tmp_path / "train" / "a" / "notes.txt").write_text("no image")
    train, names = load_train_data(str(tmp_path))
    assert names == ("a", "b", "c")
    assert_images(train, pixels, labels)
    assert_images(load_test_data(str(tmp_path)), pixels[::2], labels[::2])


def test_folder_without_official_split(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (5, 5)), make_labels(20, 2)
    write_folder(tmp_path, pixels, labels)
    train, names = load_train_data(str(tmp_path))
    test = load_test_data(str(tmp_path))
    assert names == ("a", "b") and len(train) == 16 and np.bincount(test.labels).tolist() == [2, 2]
    assert {*map(bytes, train.images), *map(bytes, test.images)} == set(map(bytes, pixels))


def test_folder_of_mixed_images(tmp_path: pathlib.Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(4):
            Image.new("L", (6, 6), 90).save(tmp_path / name / f"{i}.png")
    Image.new("RGB", (9, 6), (10, 20, 30)).save(tmp_path / "b" / "9.png")
    listing = folder_format.list_split(tmp_path, "train")
    assert isinstance(listing.folder, pathlib.Path)
    everything = folder_format._list_classes(tmp_path, tmp_path)
    data_error(lambda: folder_format.read_listing(everything, None, "stretch"), "9.png", "image_size")
    images = folder_format.read_listing(everything, (6, 6), "stretch").images
    assert images.shape == (9, 6, 6, 3)  # one of them has colours
    assert (images[0] == 90).all() and (images[8] == [10, 20, 30]).all()


def test_sixteen_bits_rotation_and_palette(tmp_path: pathlib.Path) -> None:
    deep = np.full((3, 4), 0x8040, np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert folder_format._header(tmp_path / "deep.png") == ((3, 4), True)
    assert (folder_format._decode(tmp_path / "deep.png", 1) == 0x80).all()
    for name in ("turned.jpg", "turned.tif"):
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.new("RGB", (4, 3)).save(tmp_path / name, exif=exif)
        (height, width), _ = folder_format._header(tmp_path / name)
        assert folder_format._decode(tmp_path / name, 3).shape == (height, width, 3) == (4, 3, 3)
    Image.new("RGB", (4, 3), (1, 2, 3)).quantize(2).save(tmp_path / "palette.gif")
    assert (folder_format._decode(tmp_path / "palette.gif", 3) == [1, 2, 3]).all()


def test_folder_is_resized_once(tmp_path: pathlib.Path) -> None:
    pixels = np.zeros((8, 16, 16), np.uint8)
    pixels[:, 4:12, 6:9] = 255
    write_folder(tmp_path / "train", pixels, make_labels(8, 2))
    write_folder(tmp_path / "test", pixels, make_labels(8, 2))
    expected = resize_images(pixels[..., None], (28, 28, 1), "mnist_box")
    np.testing.assert_array_equal(load_train_data(str(tmp_path), image_size=28, resize="mnist_box")[0].images, expected)
    test = load_test_data(str(tmp_path), image_shape=(28, 28, 3), resize="mnist_box")
    np.testing.assert_array_equal(test.images, np.repeat(expected, 3, axis=3))


def test_folder_errors(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(8, (5, 5)), make_labels(8, 2)
    data_error(lambda: load_train_data(str(tmp_path)), tmp_path, "0 class folders")
    write_folder(tmp_path / "train", pixels, labels)
    data_error(lambda: load_train_data(str(tmp_path)), tmp_path, "only one of train/ and test/")
    write_folder(tmp_path / "test", pixels, labels, "ac")
    data_error(lambda: load_train_data(str(tmp_path)), tmp_path, "class b")
    flat = tmp_path / "train"
    (flat / "empty").mkdir()
    data_error(lambda: load_train_data(str(flat)), flat / "empty", "no images")
    (flat / "empty").rmdir()
    broken = flat / "a" / "0000.png"
    broken.write_bytes(broken.read_bytes()[:-30])
    data_error(lambda: folder_format.read_listing(folder_format._list_classes(flat, flat), None, "stretch"), broken)
    Image.new("1", (5000, 2)).save(broken)
    data_error(
        lambda: folder_format.read_listing(folder_format._list_classes(flat, flat), None, "stretch"), broken, "4096"
    )
    Image.new("1", (10_000, 10_000)).save(broken)  # more than Pillow's own limit
    data_error(lambda: folder_format.read_listing(folder_format._list_classes(flat, flat), None, "stretch"), broken)
