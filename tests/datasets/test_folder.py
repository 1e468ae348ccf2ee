"""Folders of images: exact values, and folders that cannot be used."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest
from builders_data import assert_images, data_error, make_images, make_labels, write_folder
from PIL import Image

from jaxevo.datasets import (
    InputForm,
    ReadOptions,
    load_search_data,
    load_test_data,
    load_train_data,
    load_training_data,
    resize_images,
)
from jaxevo.datasets.file_pixels import FilePixels
from jaxevo.datasets.pictures import decode

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
        (tmp_path / "train" / name).mkdir(parents=True)
        for i in range(4):
            Image.new("L", (6, 6), 90).save(tmp_path / "train" / name / f"{i}.png")
    Image.new("RGB", (9, 6), (10, 20, 30)).save(tmp_path / "train" / "b" / "9.png")
    shutil.copytree(tmp_path / "train", tmp_path / "test")
    images, _ = load_train_data(str(tmp_path), image_size=6)
    assert images.images.shape == (9, 6, 6, 3)  # one of them has colours
    assert (images.images[0] == 90).all() and (images.images[8] == [10, 20, 30]).all()
    data_error(
        lambda: load_train_data(str(tmp_path)), "differ in size", "under 8 pixels", "image_size"
    )


def test_folder_is_resized_once(tmp_path: pathlib.Path) -> None:
    pixels = np.zeros((8, 16, 16), np.uint8)
    pixels[:, 4:12, 6:9] = 255
    write_folder(tmp_path / "train", pixels, make_labels(8, 2))
    write_folder(tmp_path / "test", pixels, make_labels(8, 2))
    expected = resize_images(pixels[..., None], (28, 28, 1), "mnist_box")
    np.testing.assert_array_equal(
        load_train_data(str(tmp_path), image_size=28, resize="mnist_box")[0].images, expected
    )
    test = load_test_data(str(tmp_path), image_shape=(28, 28, 3), resize="mnist_box")
    np.testing.assert_array_equal(test.images, np.repeat(expected, 3, axis=3))


def test_folder_errors(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(8, (5, 5)), make_labels(8, 2)
    data_error(lambda: load_train_data(str(tmp_path)), tmp_path, "0 class folders")
    write_folder(tmp_path / "test", pixels, labels, "ac")
    data_error(lambda: load_train_data(str(tmp_path)), tmp_path, "test/", "no train/")
    write_folder(tmp_path / "train", pixels, labels)
    data_error(
        lambda: load_train_data(str(tmp_path)), tmp_path, "class c in test/ but not in train/"
    )
    (tmp_path / "test" / "c").rename(tmp_path / "test" / "b")
    (tmp_path / "train" / "empty").mkdir()
    data_error(lambda: load_train_data(str(tmp_path)), tmp_path / "train" / "empty", "no images")
    (tmp_path / "train" / "empty").rmdir()
    load_train_data(str(tmp_path))
    (tmp_path / "Training").mkdir()
    write_folder(tmp_path / "Training", pixels, labels)
    data_error(lambda: load_train_data(str(tmp_path)), "both Training/ and train/")


def test_class_folders_that_hold_the_splits(tmp_path: pathlib.Path) -> None:
    for name in "ab":
        write_folder(tmp_path / name, make_images(4, (5, 5)), make_labels(4, 2), ["train", "test"])
    data_error(lambda: load_train_data(str(tmp_path)), "inside its class folders")


def test_unreadable_files_are_all_named_or_skipped(tmp_path: pathlib.Path) -> None:
    for split in ("train", "test"):
        write_folder(tmp_path / split, make_images(20, (5, 5)), make_labels(20, 2))
    broken = [tmp_path / "train" / "a" / f"{i:04}.png" for i in (0, 2, 4)]
    broken[0].write_bytes(broken[0].read_bytes()[:-30])
    data_error(lambda: load_train_data(str(tmp_path)), broken[0], "skip_unreadable")
    Image.new("1", (10_000, 10_000)).save(broken[0])  # more than is decoded whole
    data_error(lambda: load_train_data(str(tmp_path)), broken[0], "90 million")
    broken[1].write_bytes(b"")
    broken[2].write_text("no image")
    data_error(lambda: load_train_data(str(tmp_path)), "3 images that cannot be read", *broken)
    data = load_search_data(str(tmp_path), options=ReadOptions(skip_unreadable=True))
    assert len(data.train) + len(data.validation) == 17
    assert (
        data.summary
        and f"passed over: 3 files that cannot be read ({broken[0]}, " in data.summary.describe()
    )


def test_pixels_that_are_no_numbers_are_unreadable(tmp_path: pathlib.Path) -> None:
    fractions = np.random.default_rng(0).random((20, 5, 5), np.float32)
    for number, image in enumerate(fractions):
        if number == 3:
            image[2, 2] = np.nan
        path = tmp_path / "ab"[number % 2] / f"{number:02}.tiff"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(image).save(path)
    data_error(lambda: load_train_data(str(tmp_path)), "03.tiff", "not finite", "skip_unreadable")
    data = load_search_data(str(tmp_path), options=ReadOptions(skip_unreadable=True))
    read = np.concatenate([data.train.images, data.validation.images])
    kept = np.round(np.delete(fractions, 3, axis=0) * 255)
    assert len(read) < 20 and {int(image.sum()) for image in read} <= set(kept.sum((1, 2)))


def test_images_are_of_one_class(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "own", make_images(8, (5, 5)), make_labels(8, 2))
    link = tmp_path / "own" / "c"
    link.symlink_to(tmp_path / "own" / "a")
    data_error(lambda: load_train_data(str(tmp_path / "own")), "own/a and", "c are the same folder")
    inner = tmp_path / "own" / "a" / "inner"
    inner.mkdir()
    for target, words in (
        (tmp_path / "own", "a folder that it lies in"),
        (tmp_path, "a folder that it lies in"),
        (inner, f"inside {inner.parent}"),
    ):
        link.unlink()
        link.symlink_to(target)
        data_error(lambda: load_train_data(str(tmp_path / "own")), link, words)


def test_files_passed_over_are_named(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "training", make_images(20, (9, 9)), make_labels(20, 2))
    write_folder(tmp_path / "testing", make_images(6, (9, 9), 1), make_labels(6, 2))
    (tmp_path / "training" / "a" / "notes.txt").write_text("")
    (tmp_path / "training" / "b" / "more.txt").write_text("")
    (tmp_path / "training" / "b" / ".DS_Store").write_text("")
    (tmp_path / "extra").mkdir()
    Image.new("L", (9, 9)).save(tmp_path / "loose.png")
    (tmp_path / "training" / "a" / "linked").symlink_to(tmp_path / "training" / "b")
    data = load_search_data(str(tmp_path))
    assert data.summary is not None
    assert (len(data.train), len(data.validation), data.summary.num_test) == (18, 2, 6)
    assert set(data.summary.notes) == {
        "passed over: 2 files that end in .txt, not as images do (training/a/notes.txt, ...)",
        "passed over: 1 folders beside training/ that are no split or have no class folders "
        "(extra)",
        f"passed over: 1 images outside the class folders of {tmp_path.name}/ (loose.png)",
        "passed over: 1 links to folders (training/a/linked)",
    }


@pytest.mark.parametrize("name", ["val", "valid", "validation", "Dev"])
def test_own_validation_images_are_used(tmp_path: pathlib.Path, name: str) -> None:
    for seed, (split, number) in enumerate({"train": 20, name: 8, "test": 6}.items()):
        write_folder(tmp_path / split, make_images(number, (5, 5), seed), make_labels(number, 2))
    data = load_search_data(str(tmp_path))
    assert_images(data.validation, *in_order(make_images(8, (5, 5), 1), make_labels(8, 2)))
    assert (
        len(data.train) == 20
        and data.summary
        and "8 for validation (the data's own)" in data.summary.describe()
    )
    whole = load_training_data(str(tmp_path))
    assert (
        len(whole.images) == 28
        and "8 validation images are trained on too" in whole.summary.describe()
    )


def test_a_folder_without_test_images_has_a_fixed_part(tmp_path: pathlib.Path) -> None:
    for seed, (split, number) in enumerate({"train": 20, "val": 8}.items()):
        write_folder(tmp_path / split, make_images(number, (5, 5), seed), make_labels(number, 2))
    (tmp_path / "test").mkdir()
    Image.new("L", (5, 5)).save(tmp_path / "test" / "unlabelled.png")
    data = load_search_data(str(tmp_path))
    assert (len(data.train), len(data.validation), len(load_test_data(str(tmp_path)))) == (16, 8, 4)
    assert data.summary and "a fixed 20% of the images" in data.summary.describe()


def test_images_in_subfolders_and_with_other_endings(tmp_path: pathlib.Path) -> None:
    pixels = make_images(8, (6, 6, 3))
    for i, ending in enumerate(("jfif", "avif", "apng", "PNG", "webp", "jpe", "tif", "bmp")):
        path = tmp_path / "train" / "ab"[i % 2] / f"deep/{i % 3}" / f"{i}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        kind = {"jfif": "JPEG", "jpe": "JPEG", "apng": "PNG", "tif": "TIFF"}.get(
            ending, ending.upper()
        )
        Image.fromarray(pixels[i]).save(path, kind)
    (tmp_path / "test").mkdir()
    shutil.copytree(tmp_path / "train", tmp_path / "test", dirs_exist_ok=True)
    assert np.bincount(load_train_data(str(tmp_path))[0].labels).tolist() == [4, 4]


def in_order(pixels: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As a folder lists them: by class."""
    order = np.argsort(labels, kind="stable")
    return pixels[order][..., None], labels[order]


def test_photographs_of_differing_sizes(tmp_path: pathlib.Path) -> None:
    rng = np.random.default_rng(0)
    sizes = [(600, 900), (450, 300), (200, 200), (70, 90), (640, 480), (1200, 800)] * 4
    for i, (height, width) in enumerate(sizes):
        path = tmp_path / "ab"[i % 2] / f"{i:02}.jpg"
        path.parent.mkdir(exist_ok=True)
        colour = tuple(int(value) for value in rng.integers(0, 256, 3))
        Image.new("RGB", (width, height), colour).save(path, quality=95)
    data = load_search_data(str(tmp_path), validation_fraction=0.3)
    assert data.image_shape == (64, 64, 3)
    assert (
        data.summary
        and "images from 70x90 to 1200x800 made 64x64 (image_size=..." in data.summary.describe()
    )
    seen: list[tuple[int, int]] = []
    options = ReadOptions(progress=lambda done, total: seen.append((done, total)))
    data = load_search_data(str(tmp_path), validation_fraction=0.3, image_size=20, options=options)
    assert data.image_shape == (20, 20, 3) and seen[-1] == (19, 19)
    assert np.ptp(data.train.images, axis=(1, 2)).max() <= 2  # each is of one colour


def test_large_photographs_are_decoded_in_part(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "photo.jpg"
    Image.new("RGB", (6000, 4500), (200, 30, 60)).save(path)
    pixels, _ = decode(path, (32, 32))
    assert pixels.shape == (563, 750, 3)  # an eighth
    images = (
        FilePixels("photos", (path,))
        .read(InputForm(32, 32, 3), False, lambda done, total: None)
        .images
    )
    assert (
        images.shape == (1, 32, 32, 3)
        and np.abs(images.reshape(-1, 3) - [200.0, 30, 60]).max() <= 2
    )
