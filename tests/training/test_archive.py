"""Zips of weights: there and back, and what a stranger may put into one."""

from __future__ import annotations

import pathlib
import shutil
import stat
import struct
import tracemalloc
import warnings
import zipfile
import zlib

import numpy as np
import pytest
from builders_classifiers import fresh_classifier

import jaxevo
from jaxevo.training import archive
from jaxevo.training.checkpoints import CheckpointError
from jaxevo.training.classifier import Classifier

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 1), np.uint8)


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("weights") / "best"
    fresh_classifier().save(folder)
    return folder


def test_a_zip_is_as_good_as_its_folder(saved, tmp_path):
    path = tmp_path / "network.zip"
    archive.pack(saved, path)
    assert {pathlib.PurePath(name).parts[0] for name in zipfile.ZipFile(path).namelist()} == {
        "best"
    }
    loaded = jaxevo.load(path)
    expected = Classifier.load(saved).predict_proba(IMAGES)
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), expected)
    # The same weights make the same zip; without a folder around them it is read too.
    archive.pack(saved, tmp_path / "again.zip")
    assert path.read_bytes() == (tmp_path / "again.zip").read_bytes()
    bare = pathlib.Path(shutil.make_archive(str(tmp_path / "bare"), "zip", saved))
    np.testing.assert_array_equal(jaxevo.load(bare).predict_proba(IMAGES), expected)


def write_zip(path: pathlib.Path, *entries: tuple[str, bytes], mode: int = 0) -> pathlib.Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names given twice
        for name, content in entries:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(entry, content)
    return path


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["../out"], "not a plain file of a zip"),
        (["best/../../out"], "not a plain file of a zip"),
        (["/tmp/jaxevo-out"], "not a plain file of a zip"),
        (["..\\out"], "not a plain file of a zip"),
        (["best/\x1b[31m"], "not a plain file of a zip"),
        (["best/a", "best/a"], "one of them twice"),
        (["best", "best/a"], "cannot be unpacked"),
        (["best/a"], "bad.zip holds no checkpoint of this program"),
        ([], "no checkpoint of this program"),
    ],
)
def test_names_that_are_refused(tmp_path, names: list[str], problem: str):
    path = write_zip(tmp_path / "bad.zip", *((name, b"x") for name in names))
    with pytest.raises(CheckpointError, match=problem):
        Classifier.load(path)
    assert not (tmp_path / "out").exists() and list(tmp_path.iterdir()) == [path]


def test_a_link_is_refused(tmp_path):
    path = write_zip(tmp_path / "link.zip", ("best/d", b"/etc"), mode=stat.S_IFLNK | 0o777)
    with pytest.raises(CheckpointError, match="not a plain file of a zip"):
        Classifier.load(path)


def test_a_bomb_is_refused(tmp_path):
    path = write_zip(tmp_path / "bomb.zip", ("best/d", bytes(40 << 20)))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(CheckpointError, match="unpacks to 40 MiB, more than 10 times"):
        Classifier.load(path)


def test_an_entry_that_unpacks_to_more_than_it_says_takes_no_memory(tmp_path):
    # The header claims ten bytes, with their right checksum; 64 MiB follow.
    path = write_zip(tmp_path / "liar.zip", ("best/d", bytes(64 << 20)))
    content = path.read_bytes()
    honest = struct.pack("<L", 64 << 20)
    checksums = [struct.pack("<L", zlib.crc32(bytes(size))) for size in (64 << 20, 10)]
    content = content.replace(honest, struct.pack("<L", 10)).replace(*checksums)
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(CheckpointError, match="liar.zip holds no checkpoint"):
        Classifier.load(path)
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(tmp_path, method: int):
    with zipfile.ZipFile(tmp_path / "other.zip", "w", method) as file:
        file.writestr("best/d", b"x")
    with pytest.raises(CheckpointError, match="not a plain file of a zip"):
        Classifier.load(tmp_path / "other.zip")


def test_damaged_zips_are_refused(saved, tmp_path):
    archive.pack(saved, tmp_path / "whole.zip")
    whole = (tmp_path / "whole.zip").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "damaged.zip"
    refused = 0
    for _ in range(100):
        content = bytearray(whole)
        for place in rng.integers(0, len(whole), 3):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(1, len(whole))] if rng.random() < 0.3 else content)
        try:
            Classifier.load(path)
        except CheckpointError:
            refused += 1
    assert refused > 50
    path.write_bytes(b"not a zip")
    with pytest.raises(CheckpointError, match="damaged.zip cannot be unpacked"):
        Classifier.load(path)
