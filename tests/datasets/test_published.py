"""The published data sets: finding, downloading and preparing them."""

from __future__ import annotations

import dataclasses
import hashlib
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest
from builders_data import (
    SHARED,
    assert_images,
    data_error,
    idx_bytes,
    make_images,
    make_labels,
    real_files,
    write_mnist,
)

from jaxevo.datasets import (
    NAMES,
    Images,
    load_search_data,
    load_test_data,
    load_train_data,
    opening,
    originals,
    published,
)
from jaxevo.datasets.published import content_digests
from jaxevo.datasets.sources import SOURCES, OriginalFile, PublishedSource

pytestmark = pytest.mark.usefixtures("offline")


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


def test_unknown_data_sets(tmp_path: pathlib.Path) -> None:
    for name in ("mnits", str(tmp_path / "absent"), "x" * 5000, "a\nb", "a\0b", "~nobody/x"):
        data_error(lambda name=name: load_search_data(name), *NAMES)
    (tmp_path / "file.txt").write_text("")
    data_error(lambda: load_search_data(str(tmp_path / "file.txt")), "file.txt", "npz")
    data_error(lambda: load_search_data("mnist", str(tmp_path / "absent")), "absent", "data_dir")


@pytest.mark.parametrize("name", list(SOURCES))
def test_offline_without_files(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "cache"))
    files = [file.name for group in SOURCES[name].files.values() for file in group]
    data_error(lambda: load_search_data(name), name, "http", "data_dir", *files)
    data_error(lambda: load_search_data(name, str(tmp_path)), f"{tmp_path}/{name}", *files)


def test_downloads_are_checked(tmp_path: pathlib.Path) -> None:
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


def test_changed_originals_are_prepared_anew(tmp_path: pathlib.Path) -> None:
    for seed in (7, 8):
        pixels, labels = make_images(10, (28, 28), seed), make_labels(10)
        write_mnist(tmp_path / "fashion_mnist", pixels, labels)
        assert_images(load_test_data("fashion_mnist", str(tmp_path)), pixels[..., None], labels)


def test_damaged_and_unwritable_caches(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_two_processes_and_leftovers(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "cache"))
    pixels, labels = make_images(300, (28, 28)), make_labels(300)
    write_mnist(tmp_path / "mnist", pixels, labels)
    code = "import sys, jaxevo.datasets as d; print(len(d.load_test_data('mnist', sys.argv[1])))"
    command = [sys.executable, "-c", code, str(tmp_path)]
    root = pathlib.Path(__file__).parents[2]
    both = [
        subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    assert [process.communicate()[0] for process in both] == [
        "300\n"
    ] * 2  # and TFDS prints nothing
    (prepared,) = (tmp_path / "cache").rglob("1.0.0")
    leftover = prepared.rename(
        prepared.with_name("incomplete.ABCDEF_1.0.0")
    )  # as a killed process leaves it
    (leftover / "features.json").unlink()
    assert_images(load_test_data("mnist", str(tmp_path)), pixels[..., None], labels)
    assert not leftover.exists()


@real_files
@pytest.mark.parametrize(
    ("name", "shape", "num_train", "num_test"),
    [
        ("mnist", (28, 28, 1), 60_000, 10_000),
        ("usps", (16, 16, 1), 7_291, 2_007),
        (
            "svhn",
            (32, 32, 3),
            20_000,
            6_000,
        ),  # the sample beside the project, not the official files
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
        digest = hashlib.md5(
            b"\0\0\x08\x03" + struct.pack(">3I", *whole.images.shape[:3]) + whole.images.tobytes()
        )
        assert (
            digest.hexdigest() == "6bbc9ace898e44ae57da46a324031adb"
        )  # the official file, in its order


def known_sources(images: Images) -> dict[str, PublishedSource]:
    """The sources, as if MNIST's training images were these."""
    contents = {"train": content_digests(images)}
    return SOURCES | {"mnist": dataclasses.replace(SOURCES["mnist"], contents=contents)}


def test_files_of_another_data_set_are_refused(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of MNIST, Fashion-MNIST and KMNIST have the same names."""
    pixels, labels = make_images(20, (28, 28), 5), make_labels(20)
    images = Images(pixels[..., None], labels.astype(np.int32))
    for module in (opening, published):
        monkeypatch.setattr(module, "SOURCES", known_sources(images))
    write_mnist(tmp_path, pixels, labels, pack=False)
    for name in ("kmnist", "fashion_mnist"):
        data_error(
            lambda name=name: load_search_data(name, str(tmp_path)), "holds mnist's files", name
        )
    summary = load_search_data("mnist", str(tmp_path), validation_fraction=0.5).summary
    assert summary and summary.notes == ()
    write_mnist(tmp_path / "kmnist", make_images(20, (28, 28), 6), labels)
    summary = load_search_data("kmnist", str(tmp_path), validation_fraction=0.5).summary
    assert summary and summary.notes == ("unverified: these need not be kmnist's files",)


def test_content_is_known_however_it_is_packed(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (28, 28), 5), make_labels(20)
    images = Images(pixels[..., None], labels.astype(np.int32))
    by_hand = tuple(hashlib.md5(idx_bytes(array)).hexdigest() for array in (pixels, labels))
    assert content_digests(images) == by_hand


@real_files
@pytest.mark.parametrize(("name", "verified"), [("mnist", True), ("usps", False), ("svhn", False)])
def test_real_files_are_identified(name: str, verified: bool) -> None:
    summary = load_search_data(name, str(SHARED), train_examples=100).summary
    assert summary and any("unverified" in note for note in summary.notes) == (not verified)


def test_emnist_is_asked_for(tmp_path: pathlib.Path) -> None:
    data_error(
        lambda: load_search_data("emnist_letters", str(tmp_path)),
        "emnist-letters-train-images-idx3-ubyte.gz",
        "nist.gov",
        f"{tmp_path}/emnist_letters",
    )
    assert [len(SOURCES[f"emnist_{name}"].class_names) for name in ("balanced", "byclass")] == [
        47,
        62,
    ]
