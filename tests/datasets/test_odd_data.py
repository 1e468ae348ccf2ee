"""Data as people have it: each set's counts, classes and mean pixel are known, and it is read
rightly or refused.

Most sets are made of the same 40 images of two classes, stored in another way.
"""

from __future__ import annotations

import pathlib
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

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

from jaxevo.datasets import (
    ReadOptions,
    ValueRange,
    load_test_data,
    load_training_data,
)
from jaxevo.datasets.opening import open_dataset
from jaxevo.datasets.splits import fixed_test_part
from jaxevo.run.prepare import make_task

pytestmark = pytest.mark.usefixtures("offline")
GREY, COLOUR = make_images(40, (12, 12)), make_images(40, (12, 12, 3), 1)
LABELS = make_labels(40, 2)
ONE_HOT = np.eye(2)[LABELS]
BINARY = (GREY > 99).astype(np.uint8)


class Made(NamedTuple):
    """What a set must be read as."""

    train: np.ndarray  # the images to train on, as bytes
    names: tuple[str, ...]
    test: np.ndarray | None = None  # None: the training images
    counts: tuple[int, ...] = ()  # training images of each class; empty: as many of each
    note: str = ""  # a part of the line before a run


def npz(root: pathlib.Path, x: np.ndarray, y: np.ndarray, compress: bool = False) -> None:
    save = np.savez_compressed if compress else np.savez
    save(root / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)


def bytes_(root: pathlib.Path) -> Made:
    npz(root, GREY, LABELS)
    return Made(GREY, ("0", "1"))


def floats(root: pathlib.Path) -> Made:
    npz(root, COLOUR / 255, LABELS)
    return Made(COLOUR, ("0", "1"))


def packed_floats(root: pathlib.Path) -> Made:
    """46 MB in less than a hundredth of it, and no bomb."""
    x = np.tile(BINARY, (1000, 1, 1))
    npz(root, x.astype(np.float64), np.tile(LABELS, 1000), compress=True)
    return Made(x * np.uint8(255), ("0", "1"))


def half_floats(root: pathlib.Path) -> Made:
    npz(root, (GREY / 255).astype(np.float16), LABELS)
    return Made(np.round((GREY / 255).astype(np.float16).astype(np.float32) * 255), ("0", "1"))


def signed_floats(root: pathlib.Path) -> Made:
    npz(root, GREY / 127.5 - 1, LABELS)
    return Made(GREY, ("0", "1"))


def zeros_and_ones(root: pathlib.Path) -> Made:
    npz(root, BINARY, LABELS)
    return Made(BINARY * 255, ("0", "1"))


def booleans(root: pathlib.Path) -> Made:
    npz(root, BINARY.astype(bool), LABELS.astype(bool))
    return Made(BINARY * 255, ("False", "True"))


def sixteenths(root: pathlib.Path) -> Made:
    npz(root, GREY % 17, LABELS)
    return Made(np.round((GREY % 17) * (255 / 16)), ("0", "1"))


def twelve_bits(root: pathlib.Path) -> Made:
    npz(root, GREY.astype(np.uint16) * 16 + 15, LABELS)
    return Made(np.round((GREY * 16.0 + 15) * (255 / 4095)), ("0", "1"))


def channels_first(root: pathlib.Path) -> Made:
    npz(root, COLOUR.transpose(0, 3, 1, 2), LABELS)
    return Made(COLOUR, ("0", "1"))


def fortran_order(root: pathlib.Path) -> Made:
    npz(root, np.asfortranarray(COLOUR), LABELS)
    return Made(COLOUR, ("0", "1"))


def column_labels(root: pathlib.Path) -> Made:
    npz(root, GREY, LABELS[:, None])
    return Made(GREY, ("0", "1"))


def one_hot(root: pathlib.Path) -> Made:
    npz(root, GREY, ONE_HOT)
    return Made(GREY, ("0", "1"))


def words(root: pathlib.Path) -> Made:
    npz(root, GREY, np.array(["healthy", "ill"])[LABELS])
    return Made(GREY, ("healthy", "ill"))


def byte_words(root: pathlib.Path) -> Made:
    npz(root, GREY, np.array([b"cat", b"dog"])[LABELS])
    return Made(GREY, ("cat", "dog"))


def whole_floats(root: pathlib.Path) -> Made:
    npz(root, GREY, LABELS * 3.0 - 1)
    return Made(GREY, ("-1", "2"))


def medmnist(root: pathlib.Path) -> Made:
    parts = {"train": slice(None), "val": slice(0, 8), "test": slice(None)}
    arrays = {f"{part}_images": COLOUR[cut] for part, cut in parts.items()}
    arrays |= {f"{part}_labels": LABELS[cut, None] for part, cut in parts.items()}
    np.savez_compressed(root / "own.npz", **arrays)
    return Made(np.concatenate([COLOUR, COLOUR[:8]]), ("0", "1"), test=COLOUR)


def capital_letters(root: pathlib.Path) -> Made:
    np.savez(root / "own.NPZ.npz", X_train=GREY, Y_train=LABELS, X_test=GREY, Y_test=LABELS)
    (root / "own.NPZ.npz").rename(root / "OWN.NPZ")
    return Made(GREY, ("0", "1"))


def png_folder(root: pathlib.Path) -> Made:
    for part in ("training", "testing"):
        write_folder(root / part, GREY, LABELS, ("cat", "dog"))
    return Made(GREY, ("cat", "dog"))


def colour_folder(root: pathlib.Path) -> Made:
    for part in ("Train", "Test"):
        write_folder(root / part, COLOUR, LABELS)
    return Made(COLOUR, ("a", "b"))


def binary_png(root: pathlib.Path) -> Made:
    """Zeros and ones in 8 bits, as masks are often stored."""
    for part in ("train", "test"):
        write_folder(root / part, BINARY, LABELS)
    return Made(BINARY * 255, ("a", "b"))


def deep_png(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, GREY.astype(np.uint16) * 257, LABELS)
    return Made(GREY, ("a", "b"))


def palettes(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        for i, (image, label) in enumerate(zip(GREY, LABELS, strict=True)):
            path = root / part / "ab"[label] / f"{i:02}.gif"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path)
    return Made(GREY, ("a", "b"))


def transparent(root: pathlib.Path) -> Made:
    """Black ink on transparent pixels that are stored as black."""
    for part in ("train", "test"):
        for i, (image, label) in enumerate(zip(GREY, LABELS, strict=True)):
            path = root / part / "ab"[label] / f"{i:02}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.merge("LA", (Image.new("L", (12, 12)), Image.fromarray(image))).save(path)
    return Made(255 - GREY, ("a", "b"))


def kaggle_csv(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(GREY, LABELS))
    return Made(GREY, ("0", "1"))


def csv_of_words(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(
            csv_text(GREY, np.array(["no", "yes"])[LABELS], label="Class")
        )
    return Made(GREY, ("no", "yes"))


def csv_without_header(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(GREY, LABELS, header=False))
    return Made(GREY, ("0", "1"), note="train.csv has no names of columns: the first is taken for")


def csv_of_numbered_columns(root: pathlib.Path) -> Made:
    """As pandas names them: `label,0,1,2,...`."""
    for part in ("train", "test"):
        text = csv_text(GREY, LABELS, header=False)
        (root / f"{part}.csv").write_text(f"label,{','.join(map(str, range(144)))}\n{text}")
    return Made(GREY, ("0", "1"))


def csv_of_counted_columns(root: pathlib.Path) -> Made:
    """As pandas writes a table without names of columns: 0, 1, 2, ... in the first line."""
    for part in ("train", "test"):
        text = csv_text(GREY, LABELS, header=False)
        (root / f"{part}.csv").write_text(f"{','.join(map(str, range(145)))}\n{text}")
    return Made(GREY, ("0", "1"), note="train.csv numbers its columns in the first line: the first")


def csv_of_quoted_labels(root: pathlib.Path) -> Made:
    """Commas within quotes divide no columns, with names of columns and without."""
    names = np.array(['"a,b"', '"c"'])[LABELS]
    (root / "train.csv").write_text(csv_text(GREY, names, header=False))
    (root / "test.csv").write_text(csv_text(GREY, names))
    return Made(GREY, ("a,b", "c"), note="train.csv has no names of columns: the first is taken")


def csv_of_exponents(root: pathlib.Path) -> Made:
    """As `numpy.savetxt` writes them."""
    for part in ("train", "test"):
        np.savetxt(
            root / f"{part}.csv", np.hstack([LABELS[:, None], GREY.reshape(40, -1)]), delimiter=","
        )
    return Made(GREY, ("0", "1"))


def csv_of_late_words(root: pathlib.Path) -> Made:
    """The first block of a file has numbers for labels, which say nothing of later ones."""
    images, labels = np.tile(GREY, (100, 1, 1)), np.repeat([0, 1], 2000)
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(images, np.array(["1", "A"])[labels]))
    return Made(images, ("1", "A"))


def csv_of_leading_zeros(root: pathlib.Path) -> Made:
    """01 and 1 are two names, as they are for folders."""
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(GREY, np.array(["01", "1"])[LABELS]))
    return Made(GREY, ("01", "1"))


def folders_beside_a_table(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, GREY, LABELS)
    (root / "train.csv").write_text("id,label\n0,a\n")
    return Made(GREY, ("a", "b"), note="passed over: train.csv, as there are folders of classes")


def hub_parquet(root: pathlib.Path) -> Made:
    (root / "data").mkdir()
    pictures = [png_bytes(image) for image in COLOUR]
    for part in ("train", "test"):
        for shard in range(2):
            path = root / "data" / f"{part}-0000{shard}-of-00002.parquet"
            cut = slice(20 * shard, 20 * shard + 20)
            path.write_bytes(parquet_bytes(pictures[cut], LABELS[cut], ("cat", "dog")))
    return Made(COLOUR, ("cat", "dog"))


def parquet_of_words(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        data = parquet_bytes(
            [png_bytes(image) for image in GREY], np.array(["x", "y"])[LABELS], (), "img"
        )
        (root / f"{part}.parquet").write_bytes(data)
    return Made(GREY, ("x", "y"))


def emnist(root: pathlib.Path) -> Made:
    images, labels = make_images(52, (28, 28)), make_labels(52, 26) + 1
    (root / "emnist").mkdir()
    for part in ("train", "test"):
        name = f"emnist-letters-{part}"
        stored = np.ascontiguousarray(images.transpose(0, 2, 1))
        (root / "emnist" / f"{name}-images-idx3-ubyte").write_bytes(idx_bytes(stored))
        (root / "emnist" / f"{name}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return Made(images, tuple("abcdefghijklmnopqrstuvwxyz"))


def even(values: Sequence[int], side: int) -> np.ndarray:
    """Images of one value each, which no resizing and no JPEG changes."""
    return np.broadcast_to(np.array(values, np.uint8)[:, None, None], (len(values), side, side))


def four_dimensions(root: pathlib.Path) -> Made:
    npz(root, GREY[..., None].astype(np.float32), LABELS)
    return Made(GREY, ("0", "1"))


def jfif(root: pathlib.Path) -> Made:
    images = even(range(100, 140), 12)
    for part in ("train", "test"):
        write_folder(root / part, images, LABELS, ending="jfif", quality=100)
    return Made(images, ("a", "b"))


def pages(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, GREY, LABELS, ending="tiff")
        for path in sorted((root / part / "a").iterdir())[:2]:
            with Image.open(path) as image:
                kept = image.copy()
            kept.save(path, save_all=True, append_images=[kept.rotate(90)])
    note = "files with several images, of which the first is read: 2 ("
    return Made(GREY, ("a", "b"), note=note)


def own_validation(root: pathlib.Path) -> Made:
    for part, number in (("train", 40), ("valid", 6), ("test", 10)):
        write_folder(root / part, GREY[:number], LABELS[:number])
    note = "6 validation images are trained on too"
    return Made(np.concatenate([GREY, GREY[:6]]), ("a", "b"), GREY[:10], note=note)


def validation_without_test(root: pathlib.Path) -> Made:
    """A fixed fifth of the training images becomes the test images."""
    images = even(np.array([50, 200])[LABELS], 12)
    for part, number in (("train", 40), ("val", 6)):
        write_folder(root / part, images[:number], LABELS[:number])
    note = "8 for the test (a fixed 20% of the images)"
    return Made(images[:38], ("a", "b"), images[:8], note=note)


def nested_folders(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        for ward in ("ward 1", "ward 2/2024"):
            cut = slice(0, 20) if ward == "ward 1" else slice(20, 40)
            write_folder(root / "made", GREY[cut], LABELS[cut], ("ill", "well"))
            for name in ("ill", "well"):
                (root / part / name / ward).parent.mkdir(parents=True, exist_ok=True)
                (root / "made" / name).rename(root / part / name / ward)
    (root / "made").rmdir()
    return Made(GREY, ("ill", "well"))


def differing_sizes(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, even([10] * 20, 12), np.zeros(20, int))
        write_folder(root / part, even([90] * 20, 24), np.ones(20, int))
    images = even([10] * 20 + [90] * 20, 16)
    return Made(images, ("a", "b"), note="images from 12x12 to 24x24 made 16x16")


def other_files_between(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, GREY, LABELS, ending="PNG")
    (root / "train" / "a" / ".DS_Store").write_bytes(b"")
    (root / "train" / "b" / "Thumbs.db").write_bytes(b"")
    return Made(GREY, ("a", "b"), note="1 files that end in .db, not as images do")


def deep_tiff(root: pathlib.Path) -> Made:
    for part in ("train", "test"):
        write_folder(root / part, GREY.astype(np.uint16) * 16 + 15, LABELS, ending="tif")
    expected = np.round((GREY * 16.0 + 15) * (255 / 4095))
    return Made(expected, ("a", "b"), note="values 0 to 4095")


def tiff_on_its_side(root: pathlib.Path) -> Made:
    """Turned as the camera says; Pillow tears its rows where it opens it by its path."""
    images = np.zeros((40, 20, 12), np.uint8)
    images[:, :, :6] = 255
    for part in ("train", "test"):
        for k, image in enumerate(images):
            path = root / part / "ab"[k % 2] / f"{k}.tif"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(image).save(path, tiffinfo={274: 6})
    return Made(np.rot90(images, 3, axes=(1, 2)), ("a", "b"))


def names_in_two_spellings(root: pathlib.Path) -> Made:
    """é as one character, and as two, as another system writes it."""
    write_folder(root / "train", GREY, LABELS, ("caf\u00e9", "tea"))
    write_folder(root / "test", GREY, LABELS, ("cafe\u0301", "tea"))
    return Made(GREY, ("caf\u00e9", "tea"))


def opaque(root: pathlib.Path) -> Made:
    """An opacity of 255 everywhere, as drawing programs save it."""
    images = np.concatenate([COLOUR, np.full((40, 12, 12, 1), 255, np.uint8)], axis=3)
    for part in ("train", "test"):
        write_folder(root / part, images, LABELS)
    return Made(COLOUR, ("a", "b"))


def one_image_of_a_class(root: pathlib.Path) -> Made:
    labels = np.append(np.zeros(39, int), 1)
    for part in ("train", "test"):
        write_folder(root / part, GREY, labels)
    return Made(GREY, ("a", "b"), counts=(39, 1))


def names_of_many_kinds(root: pathlib.Path) -> Made:
    names = ("crème\u00a0brûlée", "می\u200cخواهم")
    for part in ("train", "test"):
        write_folder(root / part, GREY, LABELS, names)
    return Made(GREY, names)


READ: list[Callable[[pathlib.Path], Made]] = [
    *(bytes_, floats, packed_floats, half_floats, signed_floats, zeros_and_ones, booleans),
    *(sixteenths, twelve_bits, channels_first, fortran_order, column_labels, one_hot, words),
    *(byte_words, whole_floats, medmnist, capital_letters, png_folder, colour_folder),
    *(binary_png, deep_png, palettes, transparent, kaggle_csv, csv_of_words),
    *(csv_without_header, hub_parquet, parquet_of_words, emnist, four_dimensions, jfif),
    *(own_validation, validation_without_test, nested_folders, differing_sizes),
    *(other_files_between, deep_tiff, opaque, one_image_of_a_class, names_of_many_kinds),
    *(csv_of_counted_columns, csv_of_quoted_labels, csv_of_late_words, csv_of_leading_zeros),
    *(tiff_on_its_side, names_in_two_spellings),
    *(csv_of_numbered_columns, csv_of_exponents, folders_beside_a_table, pages),
]


@pytest.mark.parametrize("make", READ)
def test_read_rightly(tmp_path: pathlib.Path, make: Callable[[pathlib.Path], Made]) -> None:
    made = make(tmp_path)
    files = list(tmp_path.glob("*.[nN][pP][zZ]"))
    dataset = "emnist_letters" if make is emnist else str(files[0] if files else tmp_path)
    train = load_training_data(dataset, str(tmp_path))
    test = load_test_data(dataset, str(tmp_path), form=train.form)
    assert train.class_names == made.names
    # How many, of which class, and their pixels.
    expected = made.train if made.test is None else made.test
    classes = len(made.names)
    counts = made.counts or (len(made.train) // classes,) * classes
    assert np.bincount(train.images.labels).tolist() == list(counts)
    test_counts = made.counts or (len(expected) // classes,) * classes
    assert np.bincount(test.labels).tolist() == list(test_counts)
    assert train.images.images.shape[1:3] == test.images.shape[1:3] == made.train.shape[1:3]
    mean = made.train.mean(dtype=np.float64)
    assert train.images.images.mean() == pytest.approx(mean, abs=1e-9)
    assert test.images.mean() == pytest.approx(expected.mean(dtype=np.float64), abs=1e-9)
    described = train.summary.describe()
    assert "\n" not in described and made.note in described
    assert f"{len(made.train):,} training images" in described


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
    "an empty word for a label": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\ncat,2,3,4,5\n,2,3,4,5\ndog,1,2,3,4"),
        ("own.csv", "an empty field in the column label: fill it"),
    ),
    "a label that is lacking": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\n1,2,3,4,5\nnan,2,3,4,5\n"),
        ("own.csv", "an empty field in the column label: fill it"),
    ),
    "labels in a column of another name": (
        lambda root: written(root / "own.csv", "emotion,a,b,c,d\n1,2,3,4,5\n2,2,3,4,5\n"),
        ("5 columns, of which none is called label", "call that of the labels so"),
    ),
    "an empty first line": (
        lambda root: written(root / "own.csv", "\nlabel,a,b,c,d\n1,2,3,4,5\n"),
        ("own.csv", "empty first line: remove it"),
    ),
    "labels of numbers behind the pixels": (
        lambda root: written(root / "own.csv", "0,2,3,4,1\n0,2,2,4,2\n"),
        ("own.csv has 1 class (0)", "no names of columns: the first is taken for the label"),
    ),
    "labels of words behind the pixels": (
        lambda root: written(root / "own.csv", "0,2,2,4,cat\n0,2,2,4,dog\n"),
        ("own.csv has 'cat' in its first line, where names repeat", "put the label before"),
    ),
    "words in Latin-1": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\nété,2,3,4,5\n", "latin-1"),
        ("own.csv", "no text in UTF-8 in the column label: save it anew in UTF-8"),
    ),
    "bytes that are no text": (
        lambda root: save(root, x_train=GREY, y_train=np.array([b"caf\xe9", b"tea"])[LABELS]),
        ("y_train", "no text in UTF-8"),
    ),
    "words for pixels": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\n1,2,x,4,5\n"),
        ("own.csv", "cannot be read"),
    ),
    "several labels an image": (
        lambda root: parquet_of_lists(root / "own.parquet"),
        ("own.parquet", "several values in the column label: give one label an image"),
    ),
    "no parquet": (
        lambda root: written(root / "own.parquet", "PAR1 nothing PAR1"),
        ("own.parquet", "cannot be read"),
    ),
    "an image cut short": (
        lambda root: damaged(root, lambda data: data[:60]),
        ("0000.png cannot be read as an image", "skip_unreadable"),
    ),
    "an empty image file": (
        lambda root: damaged(root, lambda data: b""),
        ("0000.png cannot be read as an image", "skip_unreadable"),
    ),
    "a class without images": (
        lambda root: folder_of(root, {"a": [GREY[0]], "b": []}),
        ("own/b has no images",),
    ),
    "one class": (
        lambda root: folder_of(root, {"a": list(GREY)}),
        ("own has 1 class folders, and 2",),
    ),
    "one image of a class, and no test images": (
        lambda root: folder_of(root, {"a": list(GREY), "b": [GREY[0]]}),
        ("class b has fewer than 2 images to divide", "add images or leave the class out"),
    ),
    "8 and 16 bits": (
        lambda root: folder_of(root, {"a": list(GREY), "b": list(GREY.astype(np.uint16))}),
        ("8 bits a pixel", "16", "the same depth"),
    ),
    "fewer labels than images": (
        lambda root: save(root, x_train=GREY, y_train=LABELS[:39]),
        ("40 images", "39 labels"),
    ),
    "pixels that are no numbers": (
        lambda root: save(root, x_train=np.where(GREY > 250, np.nan, GREY), y_train=LABELS),
        ("x_train", "not finite"),
    ),
    "fractions for labels": (
        lambda root: save(root, x_train=GREY, y_train=LABELS + 0.5),
        ("y_train", "no whole numbers"),
    ),
    "splits without class folders": (
        lambda root: folder_of(root, {"train": list(GREY), "test": list(GREY)}),
        ("test/ and train/", "no classes but splits", "a folder for each class"),
    ),
    "splits of other names": (
        lambda root: folder_of(root, {"training_set": list(GREY), "test_set": list(GREY)}),
        ("test_set/ and training_set/", "call them train/ and test/"),
    ),
    "splits in folders of their names": (
        lambda root: folder_of(
            root, {"seg_train": list(GREY), "seg_test": list(GREY), "seg_pred": [GREY[0]]}
        ),
        ("seg_test/ and seg_train/",),
    ),
    "a class name with a line's end": (
        lambda root: folder_of(root, {"a": list(GREY), "b\nc": list(GREY)}),
        ("control characters in its name", "rename it"),
    ),
    "colours of 10 bits in 16": (
        lambda root: folder_of_colours(root, COLOUR.astype(np.uint16) * 4),
        ("16 bits a channel, of which 8 are read", "save all images with 8 bits a channel"),
    ),
    "white is 0, in 16 bits": (
        lambda root: folder_of_tiff(root, GREY.astype(np.uint16), {262: 0}),
        ("16 bits whose 0 is white",),
    ),
    "bytes with a sign": (
        lambda root: folder_of_tiff(root, GREY, {339: 2}),
        ("signed pixels of 8 bits",),
    ),
    "columns in the order of letters": (
        lambda root: written(root / "own.csv", "label,p1,p10,p2,p3\n1,2,3,4,5\n"),
        ("order of their names' letters", "sort them by the names' numbers"),
    ),
    "two columns of labels": (
        lambda root: written(root / "own.csv", "label,class,a,b,c\n1,2,3,4,5\n"),
        ("two columns for labels", "class"),
    ),
    "its header again": (
        lambda root: written(
            root / "own.csv", "label,0,1,2,3\n1,2,3,4,5\nlabel,0,1,2,3\n2,2,3,4,5\n"
        ),
        ("first line twice",),
    ),
    "semicolons": (
        lambda root: written(root / "own.csv", "label;a;b;c;d\n1;2;3;4;5\n"),
        ("put commas between",),
    ),
    "UTF-16": (
        lambda root: written(root / "own.csv", "label,a,b,c,d\n1,2,3,4,5\n", "utf-16"),
        ("no text in UTF-8",),
    ),
    "a text": (lambda root: written(root / "own.txt", ""), ("ends in .txt",)),
    "an absent file": (lambda root: str(root / "absent.npz"), ("does not exist",)),
    "an absent folder": (lambda root: str(root / "absent"), ("does not exist",)),
}


def folder_of(root: pathlib.Path, classes: dict[str, list[np.ndarray]]) -> str:
    """A folder of these images in class folders, without a split."""
    for name, images in classes.items():
        (root / "own" / name).mkdir(parents=True)
        write_folder(root / "own", np.array(images), np.zeros(len(images), int), (name,))
    return str(root / "own")


def damaged(root: pathlib.Path, damage: Callable[[bytes], bytes]) -> str:
    """A folder of which one image file is not whole."""
    path = folder_of(root, {"a": list(GREY), "b": list(GREY)})
    file = root / "own" / "a" / "0000.png"
    file.write_bytes(damage(file.read_bytes()))
    return path


def folder_of_colours(root: pathlib.Path, images: np.ndarray) -> str:
    """A folder of PNG files of 16 bits a channel, which Pillow cannot write."""
    path = folder_of(root, {"a": list(COLOUR), "b": list(COLOUR)})
    for file, image in zip((root / "own").glob("*/*.png"), [*images, *images], strict=True):
        size = struct.pack(">IIBBBBB", image.shape[1], image.shape[0], 16, 2, 0, 0, 0)
        rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in image)
        chunks = ((b"IHDR", size), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
        file.write_bytes(
            b"\x89PNG\r\n\x1a\n"
            + b"".join(
                struct.pack(">I", len(data))
                + kind
                + data
                + struct.pack(">I", zlib.crc32(kind + data))
                for kind, data in chunks
            )
        )
    return path


def folder_of_tiff(root: pathlib.Path, images: np.ndarray, tags: dict[int, int]) -> str:
    path = folder_of(root, {"a": list(GREY), "b": list(GREY)})
    for file, image in zip((root / "own").glob("*/*.png"), [*images, *images], strict=True):
        Image.fromarray(image).save(file, "TIFF", tiffinfo=tags)
    return path


def parquet_of_lists(path: pathlib.Path) -> str:
    path.write_bytes(parquet_bytes([png_bytes(image) for image in GREY], [[0, 1]] * len(GREY)))
    return str(path)


def written(path: pathlib.Path, text: str, encoding: str = "utf-8") -> str:
    path.write_text(text, encoding)
    return str(path)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_line(tmp_path: pathlib.Path, name: str) -> None:
    make, parts = REFUSED[name]
    dataset = make(tmp_path)
    data_error(lambda: load_training_data(dataset), *parts)


def test_colours_of_whole_16_bits_are_read(tmp_path: pathlib.Path) -> None:
    path = folder_of_colours(tmp_path, COLOUR.astype(np.uint16) * 257)
    data = load_training_data(path)
    assert set(map(bytes, data.images.images)) <= set(map(bytes, COLOUR))
    assert data.form.values == ValueRange(0, 255)


@pytest.mark.parametrize(
    "names", [("test_valid", "test_invalid"), ("train", "valve"), ("train", "tram", "tent")]
)
def test_classes_may_sound_like_splits(tmp_path: pathlib.Path, names: tuple[str, ...]) -> None:
    path = folder_of(tmp_path, {name: list(GREY) for name in names})
    assert load_training_data(path).class_names == tuple(sorted(names))


@pytest.mark.parametrize(
    "header",
    [
        "label,x0_y0,x1_y0,x0_y1,x1_y1",  # row by row
        "label,p0a,p0b,p0c,p0d",  # hexadecimal
        "label,p4,p3,p2,p1",
    ],
)
def test_columns_in_an_order_of_their_own(tmp_path: pathlib.Path, header: str) -> None:
    rows = "".join(f"{i % 2},0,85,170,255\n" for i in range(10))
    data = load_training_data(written(tmp_path / "own.csv", f"{header}\n{rows}"))
    assert data.images.images[0, ..., 0].tolist() == [[0, 85], [170, 255]]


def test_a_test_split_may_lack_a_class(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "train", GREY, make_labels(40, 3))
    write_folder(tmp_path / "test", GREY[:6], np.array([0, 2, 0, 2, 0, 2]))
    data = load_training_data(str(tmp_path))
    assert "no test images of class b" in data.summary.describe()
    assert load_test_data(str(tmp_path)).labels.tolist() == [0, 0, 0, 2, 2, 2]


@pytest.mark.parametrize("with_test", [True, False])
def test_a_search_reads_a_persons_test_images_before_it_begins(
    tmp_path: pathlib.Path, with_test: bool
) -> None:
    if with_test:
        x_test = np.where(GREY > 250, np.nan, GREY)
        path = save(tmp_path, x_train=GREY, y_train=LABELS, x_test=x_test, y_test=LABELS)
        words = ("x_test", "not finite")
    else:  # one of the fixed fifth is cut short
        path = folder_of(tmp_path, {"a": list(GREY), "b": list(GREY)})
        dataset = open_dataset(path)
        _, off = fixed_test_part(dataset.train.labels, path)
        file = dataset.train.take(off).pixels.pictures[0]
        file.write_bytes(file.read_bytes()[:60])
        words = (file, "skip_unreadable")
    load_training_data(path)
    data_error(lambda: make_task(path, preset="quick", workdir=tmp_path / "run"), *words)
    assert not (tmp_path / "run").exists()


def test_a_folder_of_a_known_data_sets_name_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digits").mkdir()
    assert "which ./digits would mean" in load_training_data("digits").summary.describe()


def test_a_given_range_is_taken(tmp_path: pathlib.Path) -> None:
    path = save(tmp_path, x_train=GREY // 64, y_train=LABELS)  # 0 to 3, of 2 bits
    data = load_training_data(path, options=ReadOptions(pixel_range=ValueRange(0, 3)))
    assert np.unique(data.images.images).tolist() == [0, 85, 170, 255]
    assert "values 0 to 3" in data.summary.describe()
    path = save(tmp_path, x_train=(GREY - 100.0) / 50, y_train=LABELS)
    data = load_training_data(path, options=ReadOptions(pixel_range=ValueRange(-2, 3.1)))
    assert data.images.images.min() == 0 and data.images.images.max() == 255


def test_classes_beside_a_table_are_taken(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path, GREY, LABELS)
    (tmp_path / "train.csv").write_text("file,label\n0,a\n")
    loaded = load_training_data(str(tmp_path))
    assert loaded.class_names == ("a", "b")
    assert "passed over: train.csv, as there are folders of classes" in loaded.summary.describe()


def test_a_table_with_its_columns_in_another_order_is_refused(tmp_path: pathlib.Path) -> None:
    text = csv_text(GREY, LABELS)
    first, rest = text.split("\n", 1)
    label, *names = first.split(",")
    (tmp_path / "train.csv").write_text(text)
    (tmp_path / "test.csv").write_text(",".join([label, *names[::-1]]) + "\n" + rest)
    data_error(
        lambda: load_training_data(str(tmp_path)),
        "test.csv",
        "in another order than the training table: sort",
    )


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_labels_that_lack_are_no_class(missing: object) -> None:
    labels: list[object] = ["cat", "dog"] * 20
    labels[7] = missing
    for given in (labels, np.array(labels, object)):
        data_error(lambda given=given: load_training_data((GREY, given)), "y_train", "empty label")


def test_what_is_no_array_is_refused() -> None:
    class Tensor:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise RuntimeError("it requires grad")

    data_error(lambda: load_training_data((Tensor(), LABELS)), "x_train", "requires grad")
