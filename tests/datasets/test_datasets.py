"""Data sets: exact values from hand-made files, the splits' promises, and damaged files of every format."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import os
import pathlib
import struct
import subprocess
import sys
import urllib.error
import urllib.request
import warnings
import zipfile
from collections.abc import Callable

import numpy as np
import pytest
import scipy.io
from PIL import Image

from jaxevo.datasets import (
    NAMES,
    DataError,
    Images,
    SearchData,
    idx,
    libsvm,
    load_search_data,
    load_test_data,
    load_train_data,
    mat,
    npz,
    originals,
    resize_images,
    splits,
)
from jaxevo.datasets import folder as folder_format
from jaxevo.datasets.sources import SOURCES, OriginalFile

SHARED = pathlib.Path(__file__).parents[3] / "shared" / "data"
real_files = pytest.mark.skipif(not SHARED.is_dir(), reason="the real files lie beside the project")


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def offline(cache: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may use the network or the person's own cache."""
    real_urlopen = urllib.request.urlopen

    def urlopen(url: str, timeout: float) -> object:
        if url.startswith("file:"):
            return real_urlopen(url, timeout=timeout)
        raise urllib.error.URLError("no network")

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    monkeypatch.setenv("JAXEVO_CACHE", str(cache))


def make_images(num: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num, *shape), np.uint8)


def make_labels(num: int, classes: int = 10) -> np.ndarray:
    return np.arange(num, dtype=np.uint8) % classes


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_mnist(folder: pathlib.Path, images: np.ndarray, labels: np.ndarray, pack: bool = True) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            data = idx_bytes(array)
            name = f"{part}-{kind}-ubyte"
            (folder / (name + ".gz" if pack else name)).write_bytes(gzip.compress(data) if pack else data)


def usps_text(images: np.ndarray, labels: np.ndarray) -> bytes:
    values = images.reshape(len(images), -1) / 127.5 - 1
    lines = (
        f"{label + 1} " + " ".join(f"{i}:{v:.6g}" for i, v in enumerate(row, 1))
        for row, label in zip(values, labels, strict=True)
    )
    return "".join(line + " \n" for line in lines).encode()


def mat_bytes(images: np.ndarray, labels: np.ndarray, compress: bool = True) -> bytes:
    file = io.BytesIO()
    y = np.where(labels == 0, 10, labels)[:, None].astype(np.uint8)
    scipy.io.savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": y}, do_compression=compress)
    return file.getvalue()


def write_folder(root: pathlib.Path, images: np.ndarray, labels: np.ndarray, names: str = "abcdefghij") -> None:
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = root / names[label] / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.squeeze()).save(path)


def assert_images(images: Images, pixels: np.ndarray, labels: np.ndarray) -> None:
    np.testing.assert_array_equal(images.images, pixels)
    np.testing.assert_array_equal(images.labels, labels)


def data_error(function: Callable[[], object], *parts: object) -> str:
    """Runs `function`, which must fail with a one-line `DataError` that has all `parts` in it."""
    with pytest.raises(DataError) as caught:
        function()
    message = str(caught.value)
    assert "\n" not in message and all(str(part) in message for part in parts), message
    return message


# Exact values


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


def test_usps_files_round_trip(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(30, (16, 16, 1)), make_labels(30)
    (tmp_path / "usps").mkdir()
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / "usps" / name).write_bytes(bz2.compress(usps_text(pixels, labels)))
    assert_images(load_test_data("usps", str(tmp_path)), pixels, labels)


def test_libsvm_leaves_out_zeros() -> None:
    pixels, label = libsvm.parse_line(b"10 2:-1 256:0.5")
    assert label == 10 and pixels[1] == -1 and pixels[255] == 0.5 and np.count_nonzero(pixels) == 2


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
    scipy.io.savemat(path, {"X": pixels[0], "y": np.array([[10.0]])})  # MATLAB drops the last dimension
    assert_images(mat.read_split([path]), pixels, np.array([0]))


def test_digits_are_scaled_to_bytes() -> None:
    from sklearn.datasets import load_digits

    raw = load_digits()
    train, names = load_train_data("digits")
    test = load_test_data("digits")
    assert (len(train), len(test), names) == (1437, 360, tuple("0123456789"))
    both = np.concatenate([train.images, test.images]).reshape(-1, 64)
    expected = np.round(raw.data * 255 / 16).astype(np.uint8)
    assert sorted(map(bytes, both)) == sorted(map(bytes, expected))
    assert np.bincount(test.labels).min() >= 34


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
def test_npz_round_trip(tmp_path: pathlib.Path, convert: Callable[[np.ndarray], np.ndarray], channels: int) -> None:
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
    assert np.bincount(train.labels).tolist() == [8] * 5 and np.bincount(test.labels).tolist() == [2] * 5
    assert {*map(bytes, train.images), *map(bytes, test.images)} == set(map(bytes, pixels))


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


# Splits


def keys(images: Images) -> list[bytes]:
    return [image.tobytes() for image in images.images]


@pytest.fixture
def unique(tmp_path: pathlib.Path) -> str:
    """An .npz file of 400 different images in 4 unequal classes."""
    labels = np.repeat(np.arange(4), [200, 100, 60, 40])
    pixels = make_images(400, (4, 4))
    assert len(set(map(bytes, pixels))) == 400
    np.savez(tmp_path / "unique.npz", x_train=pixels, y_train=labels, x_test=255 - pixels[:40], y_test=labels[:40])
    return str(tmp_path / "unique.npz")


def test_splits_are_disjoint_stratified_and_complete(unique: str) -> None:
    data = load_search_data(unique, validation_fraction=0.2, seed=3)
    assert isinstance(data, SearchData) and data.num_classes == 4 and data.image_shape == (4, 4, 1)
    train, validation, test = keys(data.train), keys(data.validation), keys(load_test_data(unique))
    assert len(train) + len(validation) == 400 and not set(train) & set(validation)
    assert set(train) | set(validation) == set(keys(load_train_data(unique)[0]))
    assert not set(test) & (set(train) | set(validation))
    assert np.bincount(data.train.labels).tolist() == [160, 80, 48, 32]
    assert np.bincount(data.validation.labels).tolist() == [40, 20, 12, 8]


def test_seed_decides_the_split(unique: str) -> None:
    first, again, other = (load_search_data(unique, seed=seed, train_examples=90) for seed in (1, 1, 2**40))
    assert keys(first.train) == keys(again.train) and keys(first.validation) == keys(again.validation)
    assert keys(first.train) != keys(other.train) and keys(first.validation) != keys(other.validation)


def test_validation_does_not_depend_on_train_examples(unique: str) -> None:
    whole = load_search_data(unique, seed=5)
    smaller: set[bytes] = set()
    for size in (4, 37, 359, 360):
        part = load_search_data(unique, seed=5, train_examples=size)
        assert keys(part.validation) == keys(whole.validation)
        chosen = set(keys(part.train))
        assert len(chosen) == size and smaller <= chosen <= set(keys(whole.train))
        assert np.abs(np.bincount(part.train.labels) - size * np.array([0.5, 0.25, 0.15, 0.1])).max() < 2
        smaller = chosen


def test_the_fixed_test_part_does_not_depend_on_the_seed() -> None:
    test = set(keys(load_test_data("digits")))
    searched = [load_search_data("digits", seed=seed) for seed in (0, 1)]
    for data in searched:
        assert len(data.train) + len(data.validation) == 1437
        assert not test & set(keys(data.train)) and not test & set(keys(data.validation))


def test_impossible_splits(unique: str) -> None:
    data_error(lambda: load_search_data(unique, train_examples=361), "train_examples=361", "360 images")
    data_error(lambda: load_search_data(unique, train_examples=3), "train_examples=3", "4 classes")
    data_error(lambda: load_search_data(unique, train_examples=-1), "train_examples=-1")
    data_error(lambda: load_search_data(unique, seed=-1), "seed=-1")
    data_error(lambda: load_search_data(unique, validation_fraction=1.0), "validation_fraction=1.0")
    data_error(lambda: load_search_data(unique, validation_fraction=0.001), unique, "0.001", "4 classes")
    data_error(lambda: load_search_data(unique, image_size=-1), "image_size=-1")
    data_error(lambda: load_search_data(unique, image_size=10**9), "image_size")
    data_error(lambda: load_search_data(unique, resize="squash"), "resize=squash", "mnist_box")
    data_error(lambda: splits.split_off(np.array([0, 0, 0, 1]), 0.5, 0, "the part"), "class 1", "fewer than 2")
    data_error(lambda: splits.split_off(np.array([], np.int32), 0.5, 0, "the part"), "the part")


def test_number_of_classes_must_agree(unique: str) -> None:
    data_error(lambda: load_test_data(unique, class_names=tuple("0123456789")), unique, "4 classes", "10")
    assert len(load_test_data(unique, class_names=tuple("0123"))) == 40


# Resizing


def test_stretch() -> None:
    images = make_images(3, (8, 6, 3))
    assert resize_images(images, (8, 6, 3)) is images
    assert resize_images(images, (16, 12, 3)).shape == (3, 16, 12, 3)
    flat = np.full((1, 5, 5, 1), 77, np.uint8)
    assert (resize_images(flat, (9, 3, 3)) == 77).all()
    checks = np.kron(np.ones((16, 16)), [[0, 255], [255, 0]]).astype(np.uint8)[None, ..., None]
    assert np.abs(resize_images(checks, (8, 8, 1)) - 127.5).max() < 30  # antialiased: grey, not black or white
    grey = resize_images(np.array([[[[200, 100, 50]]]], np.uint8), (1, 1, 1))
    assert grey.item() == round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)
    data_error(lambda: resize_images(images, (8, 6, 2)), "2", "1 and 3")
    data_error(lambda: resize_images(images, (0, 6, 1)), "0")


def extent(image: np.ndarray) -> tuple[int, int]:
    ink = image[..., 0] > 25
    return tuple(int(np.ptp(np.flatnonzero(ink.any(axis=axis)))) + 1 for axis in (1, 0))  # type: ignore[return-value]


def mass_centre(image: np.ndarray) -> tuple[float, float]:
    mass = image[..., 0].astype(float)
    rows, cols = np.indices(mass.shape)
    return float((mass * rows).sum() / mass.sum()), float((mass * cols).sum() / mass.sum())


@pytest.mark.parametrize("side", [28, 42])
def test_mnist_box(side: int) -> None:
    image = np.zeros((1, 16, 16, 1), np.uint8)
    image[0, 1:11, 2:7] = 200  # 10 x 5 pixels, its mass off the middle
    image[0, 9:11, 2:7] = 255
    image[0, 15, 15] = 10  # not ink
    (boxed,) = resize_images(image, (side, side, 1), "mnist_box")
    box = round(side * 20 / 28)
    assert extent(boxed) == (box, box // 2)
    assert all(abs(centre - side / 2) <= 0.5 for centre in mass_centre(boxed))
    (colour,) = resize_images(np.repeat(image, 3, axis=3), (side, side, 3), "mnist_box")
    assert colour.shape == (side, side, 3) and (np.abs(colour.astype(int) - boxed) <= 1).all()


def test_mnist_box_of_odd_images() -> None:
    black = np.zeros((1, 16, 16, 1), np.uint8)
    assert not resize_images(black, (28, 28, 1), "mnist_box").any()
    black[0, 3, 3] = 1
    assert resize_images(black, (28, 28, 1), "mnist_box").any()
    lopsided = np.zeros((1, 16, 16, 1), np.uint8)
    lopsided[0, :, 0], lopsided[0, 8, :] = 255, 40  # reaches over the edge when centred by mass
    assert resize_images(lopsided, (28, 28, 1), "mnist_box").any()


def test_folder_is_resized_once(tmp_path: pathlib.Path) -> None:
    pixels = np.zeros((8, 16, 16), np.uint8)
    pixels[:, 4:12, 6:9] = 255
    write_folder(tmp_path / "train", pixels, make_labels(8, 2))
    write_folder(tmp_path / "test", pixels, make_labels(8, 2))
    expected = resize_images(pixels[..., None], (28, 28, 1), "mnist_box")
    np.testing.assert_array_equal(load_train_data(str(tmp_path), image_size=28, resize="mnist_box")[0].images, expected)
    test = load_test_data(str(tmp_path), image_shape=(28, 28, 3), resize="mnist_box")
    np.testing.assert_array_equal(test.images, np.repeat(expected, 3, axis=3))


# Files that cannot be used


def test_unknown_data_sets(tmp_path: pathlib.Path) -> None:
    for name in ("mnits", str(tmp_path / "absent"), "x" * 5000, "a\nb", "a\0b", "~nobody/x"):
        data_error(lambda name=name: load_search_data(name), *NAMES)
    (tmp_path / "file.txt").write_text("")
    data_error(lambda: load_search_data(str(tmp_path / "file.txt")), "file.txt", "npz")
    data_error(lambda: load_search_data("mnist", str(tmp_path / "absent")), "absent", "data_dir")


@pytest.mark.parametrize("name", list(SOURCES))
def test_offline_without_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "cache"))
    files = [file.name for group in SOURCES[name].files.values() for file in group]
    data_error(lambda: load_search_data(name), name, "http", "data_dir", *files)
    data_error(lambda: load_search_data(name, str(tmp_path)), f"{tmp_path}/{name}", *files)


def test_downloads_are_checked(tmp_path: pathlib.Path, cache: pathlib.Path) -> None:
    (tmp_path / "file.gz").write_bytes(b"right")
    url = (tmp_path / "file.gz").as_uri()
    digest = hashlib.sha256(b"right").hexdigest()
    target = tmp_path / "got"
    target.mkdir()
    good = OriginalFile("file.gz", f"sha256:{digest}", ("http://gone.invalid/file.gz", url))
    assert originals._download(good, target).read_bytes() == b"right"
    bad = OriginalFile("other.gz", "md5:" + "0" * 32, (url,))
    with pytest.raises(OSError, match="its md5 is"):
        originals._download(bad, target)
    assert [path.name for path in target.iterdir()] == ["file.gz"]


def test_idx_errors(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (28, 28)), make_labels(20)
    good = idx_bytes(pixels)
    path = tmp_path / "images"
    huge = struct.pack(">4I", 0x803, 2**32 - 1, 28, 28)
    cases = {
        good[:-1]: "holds only", good + b"\0": "holds more", good[:9]: "header", b"": "starts with",
        b"\0\0\x0d\x03" + good[4:]: "starts with 00000d03", huge: "MiB",
        struct.pack(">4I", 0x803, 0, 28, 28): "no images",
        gzip.compress(good)[:-9]: "cannot be read", gzip.compress(good + bytes(10**7)): "holds more",
        struct.pack(">4I", 0x803, 1, 2**20, 28): "pixels",
    }  # fmt: skip
    for data, part in cases.items():
        path.write_bytes(data)
        data_error(lambda: idx.read_idx(path, 3), path, part)
    write_mnist(tmp_path / "mnist", pixels, labels[:-1])
    data_error(lambda: load_train_data("mnist", str(tmp_path)), "20 images", "19 labels", "idx1-ubyte")
    write_mnist(tmp_path / "mnist", pixels, labels + 1)
    data_error(lambda: load_train_data("mnist", str(tmp_path)), "idx1-ubyte", "10 classes")
    write_mnist(tmp_path / "mnist", pixels[:, :20], labels)
    data_error(lambda: load_train_data("mnist", str(tmp_path)), "idx3-ubyte", "20 x 28 x 1")


@pytest.mark.parametrize(
    "line",
    [
        b"1 0:0.5", b"1 257:0.5", b"1 2:0.5 1:0.5", b"1 1:0.5 1:0.5", b"1 1:nan", b"1 1:inf", b"1 1:1.5", b"1 1:9e999",
        b"1 1:0.5:2", b"1 1", b"x 1:0.5", b"1 1:0_1", b"\xff\xfe", b"-1 1:0", b"", b"1 1:" + b"0" * 50_000,
    ],
)  # fmt: skip
def test_libsvm_errors(tmp_path: pathlib.Path, line: bytes) -> None:
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(b"1 1:0.5\n" + line + b"\n"))
    data_error(lambda: libsvm.read_split([path]), path, "line 2")


def test_mat_errors(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "train_32x32.mat"
    pixels, labels = make_images(4, (32, 32, 3)), make_labels(4)
    x = pixels.transpose(1, 2, 3, 0)
    cases = [
        ({"X": x}, "lacks y"), ({"X": x * 1.0, "y": labels}, "float64"), ({"X": x, "y": labels[:3]}, "4 images"),
        ({"X": x[:20], "y": labels}, "[20, 32, 3, 4]"), ({"X": x, "y": labels + 20}, "1 to 10"),
        ({"X": x, "y": np.array([1, 2, 3, np.nan])}, "1 to 10"),
        ({"X": np.array([{}, {}], object), "y": labels}, "lacks X"), ({"X": x * 1j, "y": labels}, "lacks X"),
    ]  # fmt: skip
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


def test_npz_errors(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.npz"
    x, y = make_images(20, (4, 4)), make_labels(20, 2)
    good = {"x_train": x, "y_train": y, "x_test": x, "y_test": y}
    cases: list[tuple[dict[str, np.ndarray], str]] = [
        ({"x_train": x}, "lacks y_train"), ({**good, "y_test": y + 1}, "label 2"),
        ({**good, "y_train": y[:9]}, "9 labels"), ({"x_train": x, "y_train": y, "x_test": x}, "lacks y_test"),
        ({**good, "x_train": x.astype(object)}, "x_train"), ({**good, "x_train": x.astype(float) - 1}, "from -1.0"),
        ({**good, "x_train": x * np.nan}, "finite"), ({**good, "x_train": x[..., None, None]}, "[20, 4, 4, 1, 1]"),
        ({**good, "x_train": x[:0]}, "no images"), ({**good, "y_train": y.astype(float)}, "integers"),
        ({**good, "x_train": x.astype(complex)}, "complex128"), ({**good, "y_train": y * 0}, "1 class"),
        ({**good, "x_train": x.astype("U3")}, "not of numbers"),
        ({**good, "x_train": x[..., None].repeat(2, 3)}, "C 1 or 3"),
    ]  # fmt: skip
    for arrays, part in cases:
        np.savez(path, **arrays)  # type: ignore[arg-type]
        data_error(lambda: (load_train_data(str(path)), load_test_data(str(path))), path, part)
    path.write_bytes(b"no zip")
    data_error(lambda: load_train_data(str(path)), path, "no .npz file")
    np.savez_compressed(path, **good)
    monkeypatch.setattr(npz, "MAX_BYTES", 100)
    data_error(lambda: load_train_data(str(path)), path, "MiB")


def test_npz_header_must_agree_with_its_length(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "own.npz"
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "|u1", "fortran_order": False, "shape": (2**20, 32, 32)})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", member.getvalue())
        archive.writestr("y_train.npy", b"")
    data_error(lambda: load_train_data(str(path)), path, "x_train", "header")


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


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """`data` cut short, or with a few bytes changed (half of the time near the start), removed or put in."""
    kind = rng.integers(4)
    place = int(rng.integers(min(len(data), 200)) if rng.random() < 0.5 else rng.integers(len(data)))
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + rng.bytes(int(rng.integers(1, 9))) + data[place:]
    if kind == 2:
        return data[:place] + data[place + int(rng.integers(1, 9)) :]
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed[min(len(data) - 1, place + int(rng.integers(8)))] = int(rng.choice([0, 1, 127, 128, 255]))
    return bytes(changed)


def npz_bytes(pixels: np.ndarray, labels: np.ndarray, compress: bool) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, x_train=pixels, y_train=labels)
    return file.getvalue()


def picture(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(make_images(1, (9, 7, 3))[0]).save(file, kind)
    return file.getvalue()


def read_picture(path: pathlib.Path) -> object:
    listing = folder_format.Listing(path.parent, (path,), np.zeros(1, np.int32), ("a",))
    return folder_format.read_listing(listing, (8, 8), "stretch")


X, Y = make_images(6, (32, 32, 3)), make_labels(6, 3)
FORMATS: dict[str, tuple[bytes, Callable[[pathlib.Path], object]]] = {
    "idx": (idx_bytes(X[..., 0]), lambda path: idx.read_idx(path, 3)),
    "idx.gz": (gzip.compress(idx_bytes(X[..., 0] // 200)), lambda path: idx.read_idx(path, 3)),
    "libsvm": (usps_text(X[:3, :16, :16, :1], Y[:3]), lambda path: libsvm.read_split([path])),
    "libsvm.bz2": (bz2.compress(usps_text(X[:3, :16, :16, :1], Y[:3])), lambda path: libsvm.read_split([path])),
    "mat": (mat_bytes(X[:2], Y[:2], False), lambda path: mat.read_split([path])),
    "mat.z": (mat_bytes(X[:2] // 200, Y[:2], True), lambda path: mat.read_split([path])),
    "npz": (npz_bytes(make_images(20, (3, 3)), make_labels(20, 2), False), lambda path: load_train_data(str(path))),
    "z.npz": (npz_bytes(make_images(20, (3, 3)), make_labels(20, 2), True), lambda path: load_train_data(str(path))),
    **{kind: (picture(kind), read_picture) for kind in ("png", "jpeg", "gif", "bmp", "tiff", "ppm", "webp")},
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


# The cache


def test_changed_originals_are_prepared_anew(tmp_path: pathlib.Path) -> None:
    for seed in (7, 8):
        pixels, labels = make_images(10, (28, 28), seed), make_labels(10)
        write_mnist(tmp_path / "fashion_mnist", pixels, labels)
        assert_images(load_test_data("fashion_mnist", str(tmp_path)), pixels[..., None], labels)


def test_damaged_and_unwritable_caches(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "cache"))
    write_mnist(tmp_path / "mnist", make_images(10, (28, 28)), make_labels(10))
    load_test_data("mnist", str(tmp_path))
    for name in ("*-test.*", "dataset_info.json"):
        (record,) = (tmp_path / "cache").rglob(name)
        record.write_bytes(record.read_bytes()[:20])
        data_error(lambda: load_test_data("mnist", str(tmp_path)), "cache", "damaged", "delete")
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "taken"))
    data_error(lambda: load_test_data("mnist", str(tmp_path)), "taken", "JAXEVO_CACHE")


def test_two_processes_and_leftovers(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "cache"))
    pixels, labels = make_images(300, (28, 28)), make_labels(300)
    write_mnist(tmp_path / "mnist", pixels, labels)
    code = "import sys, jaxevo.datasets as d; print(len(d.load_test_data('mnist', sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    root = pathlib.Path(__file__).parents[2]
    both = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["300\n"] * 2  # and TFDS prints nothing
    (prepared,) = (tmp_path / "cache").rglob("1.0.0")
    leftover = prepared.rename(prepared.with_name("incomplete.ABCDEF_1.0.0"))  # as a killed process leaves it
    (leftover / "features.json").unlink()
    assert_images(load_test_data("mnist", str(tmp_path)), pixels[..., None], labels)
    assert not leftover.exists()


# The real files


@real_files
@pytest.mark.parametrize(
    ("name", "shape", "num_train", "num_test"),
    [
        ("mnist", (28, 28, 1), 60_000, 10_000),
        ("usps", (16, 16, 1), 7_291, 2_007),
        ("svhn", (32, 32, 3), 20_000, 6_000),  # the sample beside the project, not the official files
    ],
)
def test_real_counts(name: str, shape: tuple[int, ...], num_train: int, num_test: int) -> None:
    data = load_search_data(name, str(SHARED), train_examples=1000)
    assert len(data.train) == 1000 and len(data.validation) == -(-num_train // 10)
    assert data.image_shape == shape and data.num_classes == 10
    whole, _ = load_train_data(name, str(SHARED))
    test = load_test_data(name, str(SHARED), class_names=data.class_names)
    assert (len(whole), len(test)) == (num_train, num_test)
    assert np.unique(whole.labels).tolist() == np.unique(test.labels).tolist() == list(range(10))
    if name == "mnist":
        digest = hashlib.md5(b"\0\0\x08\x03" + struct.pack(">3I", *whole.images.shape[:3]) + whole.images.tobytes())
        assert digest.hexdigest() == "6bbc9ace898e44ae57da46a324031adb"  # the official file, in its order


@real_files
def test_usps_in_mnists_frame() -> None:
    test = load_test_data("usps", str(SHARED), image_shape=(28, 28, 1), resize="mnist_box")
    assert test.images.shape == (2007, 28, 28, 1)
    for image in test.images[:200]:
        assert max(extent(image)) <= 20
        assert all(abs(centre - 14) <= 0.5 for centre in mass_centre(image))
