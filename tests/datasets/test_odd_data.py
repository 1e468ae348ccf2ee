"""Data as people have it: each set's counts, classes and mean pixel are known, and it is read
rightly or refused.

Every set is made of the same 40 images of two classes, stored in another way.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import numpy as np
import pytest
from builders_data import (
    csv_text,
    data_error,
    idx_bytes,
    make_images,
    make_labels,
    parquet_bytes,
    png_bytes,
    write_folder,
)
from PIL import Image

from jaxevo.datasets import ReadOptions, ValueRange, load_test_data, load_training_data

pytestmark = pytest.mark.usefixtures("offline")
GREY, COLOUR = make_images(40, (12, 12)), make_images(40, (12, 12, 3), 1)
LABELS = make_labels(40, 2)
ONE_HOT = np.eye(2)[LABELS]
BINARY = (GREY > 99).astype(np.uint8)
Made = tuple[np.ndarray, tuple[str, ...]]  # the images as bytes, and the class names


def npz(root: pathlib.Path, x: np.ndarray, y: np.ndarray, compress: bool = False) -> None:
    save = np.savez_compressed if compress else np.savez
    save(root / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)


def bytes_(root: pathlib.Path) -> Made:
    npz(root, GREY, LABELS)
    return GREY, ("0", "1")


def floats(root: pathlib.Path) -> Made:
    npz(root, COLOUR / 255, LABELS)
    return COLOUR, ("0", "1")


def packed_floats(root: pathlib.Path) -> Made:
    """46 MB in less than a hundredth of it, and no bomb."""
    x = np.tile(BINARY, (1000, 1, 1))
    npz(root, x.astype(np.float64), np.tile(LABELS, 1000), compress=True)
    return x * np.uint8(255), ("0", "1")


def half_floats(root: pathlib.Path) -> Made:
    npz(root, (GREY / 255).astype(np.float16), LABELS)
    return np.round((GREY / 255).astype(np.float16).astype(np.float32) * 255), ("0", "1")


def signed_floats(root: pathlib.Path) -> Made:
    npz(root, GREY / 127.5 - 1, LABELS)
    return GREY, ("0", "1")


def zeros_and_ones(root: pathlib.Path) -> Made:
    npz(root, BINARY, LABELS)
    return BINARY * 255, ("0", "1")


def booleans(root: pathlib.Path) -> Made:
    npz(root, BINARY.astype(bool), LABELS.astype(bool))
    return BINARY * 255, ("0", "1")


def sixteenths(root: pathlib.Path) -> Made:
    npz(root, GREY % 17, LABELS)
    return np.round((GREY % 17) * (255 / 16)), ("0", "1")


def twelve_bits(root: pathlib.Path) -> Made:
    npz(root, GREY.astype(np.uint16) * 16 + 15, LABELS)
    return np.round((GREY * 16.0 + 15) * (255 / 4095)), ("0", "1")


def channels_first(root: pathlib.Path) -> Made:
    npz(root, COLOUR.transpose(0, 3, 1, 2), LABELS)
    return COLOUR, ("0", "1")


def fortran_order(root: pathlib.Path) -> Made:
    npz(root, np.asfortranarray(COLOUR), LABELS)
    return COLOUR, ("0", "1")


def column_labels(root: pathlib.Path) -> Made:
    npz(root, GREY, LABELS[:, None])
    return GREY, ("0", "1")


def one_hot(root: pathlib.Path) -> Made:
    npz(root, GREY, ONE_HOT)
    return GREY, ("0", "1")


def words(root: pathlib.Path) -> Made:
    npz(root, GREY, np.array(["healthy", "ill"])[LABELS])
    return GREY, ("healthy", "ill")


def byte_words(root: pathlib.Path) -> Made:
    npz(root, GREY, np.array([b"cat", b"dog"])[LABELS])
    return GREY, ("cat", "dog")


def whole_floats(root: pathlib.Path) -> Made:
    npz(root, GREY, LABELS * 3.0 - 1)
    return GREY, ("-1", "2")


def medmnist(root: pathlib.Path) -> Made:
    parts = {"train": slice(None), "val": slice(0, 8), "test": slice(None)}
    arrays = {f"{part}_images": COLOUR[cut] for part, cut in parts.items()}
    arrays |= {f"{part}_labels": LABELS[cut, None] for part, cut in parts.items()}
    np.savez_compressed(root / "own.npz", **arrays)
    return np.concatenate([COLOUR, COLOUR[:8]]), ("0", "1")


def capital_letters(root: pathlib.Path) -> Made:
    np.savez(root / "own.NPZ.npz", X_train=GREY, Y_train=LABELS, X_test=GREY, Y_test=LABELS)
    (root / "own.NPZ.npz").rename(root / "OWN.NPZ")
    return GREY, ("0", "1")


def png_folder(root: pathlib.Path) -> Made:
    for part in ("training", "testing"):
        write_folder(root / part, GREY, LABELS, ("cat", "dog"))
    return GREY, ("cat", "dog")


def colour_folder(root: pathlib.Path) -> Made:
    for part in ("Train", "Test"):
        write_folder(root / part, COLOUR, LABELS)
    return COLOUR, ("a", "b")


def binary_png(root: pathlib.Path) -> Made:
    """Zeros and ones in 8 bits, as masks are often stored."""
    for part in ("train", "test"):
        write_folder(root / part, BINARY, LABELS)
    return BINARY * 255, ("a", "b")


def deep_png(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, GREY.astype(np.uint16) * 257, LABELS)
    return GREY, ("a", "b")


def palettes(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        for i, (image, label) in enumerate(zip(GREY, LABELS, strict=True)):
            path = root / part / "ab"[label] / f"{i:02}.gif"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    return GREY, ("a", "b")


def transparent(root: pathlib.Path) -> Made:
    """Black ink on transparent pixels that are stored as black."""
    for part in ("train", "test"):
        for i, (image, label) in enumerate(zip(GREY, LABELS, strict=True)):
            path = root / part / "ab"[label] / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.merge("LA", (Image.new("L", (12, 12)), Image.fromarray(image))).save(path)
    return 255 - GREY, ("a", "b")


def kaggle_csv(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(GREY, LABELS))
    return GREY, ("0", "1")


def csv_of_words(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(
            csv_text(GREY, np.array(["no", "yes"])[LABELS], label="Class")
        )
    return GREY, ("no", "yes")


def csv_without_header(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(GREY, LABELS, header=False))
    return GREY, ("0", "1")


def hub_parquet(root: pathlib.Path) -> Made:
    (root / "data").mkdir()
    pictures = [png_bytes(image) for image in COLOUR]
    for part in ("train", "test"):
        for shard in range(2):
            path = root / "data" / f"{part}-0000{shard}-of-00002.parquet"
            cut = slice(20 * shard, 20 * shard + 20)
            path.write_bytes(parquet_bytes(pictures[cut], LABELS[cut], ("cat", "dog")))
    return COLOUR, ("cat", "dog")


def parquet_of_words(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        data = parquet_bytes(
            [png_bytes(image) for image in GREY], np.array(["x", "y"])[LABELS], (), "img"
        )
        (root / f"{part}.parquet").write_bytes(data)
    return GREY, ("x", "y")


def emnist(root: pathlib.Path) -> Made:
    images, labels = make_images(52, (28, 28)), make_labels(52, 26) + 1
    (root / "emnist").mkdir()
    for part in ("train", "test"):
        name = f"emnist-letters-{part}"
        stored = np.ascontiguousarray(images.transpose(0, 2, 1))
        (root / "emnist" / f"{name}-images-idx3-ubyte").write_bytes(idx_bytes(stored))
        (root / "emnist" / f"{name}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return images, tuple("abcdefghijklmnopqrstuvwxyz")


READ: list[Callable[[pathlib.Path], Made]] = [
    *(bytes_, floats, packed_floats, half_floats, signed_floats, zeros_and_ones, booleans),
    *(sixteenths, twelve_bits, channels_first, fortran_order, column_labels, one_hot, words),
    *(byte_words, whole_floats, medmnist, capital_letters, png_folder, colour_folder),
    *(binary_png, deep_png, palettes, transparent, kaggle_csv, csv_of_words),
    *(csv_without_header, hub_parquet, parquet_of_words, emnist),
]


@pytest.mark.parametrize("make", READ)
def test_read_rightly(tmp_path: pathlib.Path, make: Callable[[pathlib.Path], Made]) -> None:
    expected, names = make(tmp_path)
    files = list(tmp_path.glob("*.[nN][pP][zZ]"))
    dataset = "emnist_letters" if make is emnist else str(files[0] if files else tmp_path)
    train = load_training_data(dataset, str(tmp_path))
    test = load_test_data(dataset, str(tmp_path), form=train.form)
    assert train.class_names == names
    number = len(expected) - 8 if make is medmnist else len(expected)
    assert (len(train.images), len(test)) == (len(expected), number)
    assert np.bincount(test.labels).tolist() == [number // len(names)] * len(names)
    assert train.images.images.shape[1:3] == expected.shape[1:3]
    mean, test_mean = (x.mean(dtype=np.float64) for x in (expected, expected[:number]))
    assert train.images.images.mean() == pytest.approx(mean, abs=1e-9)
    assert test.images.mean() == pytest.approx(test_mean, abs=1e-9)
    described = train.summary.describe()
    assert "\n" not in described and f"{len(expected):,} training images" in described


def save(root: pathlib.Path, **arrays: np.ndarray) -> str:
    np.savez(root / "own.npz", **arrays)
    return str(root / "own.npz")


REFUSED: dict[str, tuple[Callable[[pathlib.Path], str], tuple[str, ...]]] = {
    "several labels": (
        lambda root: save(root, x_train=GREY, y_train=np.ones((40, 2))),
        ("y_train", "several labels"),
    ),
    "flat images": (
        lambda root: save(root, x_train=GREY.reshape(40, -1), y_train=LABELS),
        ("[40, 144]", "reshape(-1, 12, 12)"),
    ),
    "images last": (
        lambda root: save(root, x_train=COLOUR.transpose(1, 2, 3, 0), y_train=LABELS),
        ("[12, 12, 3, 40]", "transpose(3, 0, 1, 2)"),
    ),
    "standardized": (
        lambda root: save(root, x_train=(GREY - 100.0) / 50, y_train=LABELS),
        ("values from -2", "0 to 255"),
    ),
    "test labels of other classes": (
        lambda root: save(root, x_train=GREY, y_train=LABELS, x_test=GREY, y_test=LABELS + 1),
        ("y_test", "label 2"),
    ),
    "test images of other channels": (
        lambda root: save(root, x_train=GREY, y_train=LABELS, x_test=COLOUR, y_test=LABELS),
        ("x_test", "3 channels"),
    ),
    "test images without labels": (
        lambda root: save(root, x_train=GREY, y_train=LABELS, x_test=GREY),
        ("x_test", "lacks its labels"),
    ),
    "two training parts": (
        lambda root: save(root, x_train=GREY, y_train=LABELS, train_images=GREY),
        ("several arrays", "train_images"),
    ),
    "no training part": (
        lambda root: save(root, a=GREY, b=LABELS),
        ("lacks x_train and y_train", "a, b"),
    ),
    "no square": (
        lambda root: written(root / "own.csv", "label,a,b,c\n1,2,3,4\n"),
        ("3 columns", "square"),
    ),
    "no label column": (
        lambda root: written(root / "own.csv", "a,b,c,d\n1,2,3,4\n"),
        ("no label column",),
    ),
    "an empty field": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\n1,2,,4,5\n2,3,4,5,6\n"),
        ("own.csv", "empty field", "column b"),
    ),
    "words for pixels": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\n1,2,x,4,5\n"),
        ("own.csv", "cannot be read"),
    ),
    "no parquet": (
        lambda root: written(root / "own.parquet", "PAR1 nothing PAR1"),
        ("own.parquet", "cannot be read"),
    ),
    "a text": (lambda root: written(root / "own.txt", ""), ("ends in .txt",)),
    "an absent file": (lambda root: str(root / "absent.npz"), ("does not exist",)),
    "an absent folder": (lambda root: str(root / "absent"), ("does not exist",)),
}


def written(path: pathlib.Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(tmp_path: pathlib.Path, name: str) -> None:
    make, parts = REFUSED[name]
    dataset = make(tmp_path)
    data_error(lambda: load_training_data(dataset), *parts)


def test_a_given_range_is_taken(tmp_path: pathlib.Path) -> None:
    path = save(tmp_path, x_train=GREY // 64, y_train=LABELS)  # 0 to 3, of 2 bits
    data = load_training_data(path, options=ReadOptions(pixel_range=ValueRange(0, 3)))
    assert np.unique(data.images.images).tolist() == [0, 85, 170, 255]
    assert "values 0 to 3" in data.summary.describe()
    path = save(tmp_path, x_train=(GREY - 100.0) / 50, y_train=LABELS)
    data = load_training_data(path, options=ReadOptions(pixel_range=ValueRange(-2, 3.1)))
    assert data.images.images.min() == 0 and data.images.images.max() == 255
