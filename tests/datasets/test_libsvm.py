"""USPS in LIBSVM's form: exact values, and lines that cannot be used."""

from __future__ import annotations

import bz2
import pathlib

import numpy as np
import pytest
from builders_data import assert_images, data_error, make_images, make_labels, usps_text

from jaxevo.datasets import libsvm, load_test_data

pytestmark = pytest.mark.usefixtures("offline")


def test_usps_files_round_trip(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(30, (16, 16, 1)), make_labels(30)
    (tmp_path / "usps").mkdir()
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / "usps" / name).write_bytes(bz2.compress(usps_text(pixels, labels)))
    assert_images(load_test_data("usps", str(tmp_path)), pixels, labels)


def test_libsvm_leaves_out_zeros() -> None:
    pixels, label = libsvm.parse_line(b"10 2:-1 256:0.5")
    assert label == 10 and pixels[1] == -1 and pixels[255] == 0.5 and np.count_nonzero(pixels) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"1 0:0.5",
        b"1 257:0.5",
        b"1 2:0.5 1:0.5",
        b"1 1:0.5 1:0.5",
        b"1 1:nan",
        b"1 1:inf",
        b"1 1:1.5",
        b"1 1:9e999",
        b"1 1:0.5:2",
        b"1 1",
        b"x 1:0.5",
        b"1 1:0_1",
        b"\xff\xfe",
        b"-1 1:0",
        b"",
        b"1 1:" + b"0" * 50_000,
    ],
)
def test_libsvm_errors(tmp_path: pathlib.Path, line: bytes) -> None:
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress(b"1 1:0.5\n" + line + b"\n"))
    data_error(lambda: libsvm.read_split([path]), path, "line 2")
