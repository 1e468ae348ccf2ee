"""Training, validation, test and prediction of the same image give the same array, whatever read
it.
"""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Callable

import numpy as np
import pytest
from builders_data import (
    csv_text,
    idx_bytes,
    make_labels,
    mat_bytes,
    parquet_bytes,
    png_bytes,
    usps_text,
    write_folder,
)

from jaxevo.datasets import Images, InputForm, load_search_data, load_test_data
from jaxevo.datasets.file_pixels import FilePixels

pytestmark = pytest.mark.usefixtures("offline")
LABELS = make_labels(40, 2)


def strokes(side: int, channels: int) -> np.ndarray:
    """40 different images with ink on black, so that boxing moves them."""
    rng = np.random.default_rng(side)
    images = np.zeros((40, side, side, channels), np.uint8)
    for image in images:
        top, left = rng.integers(0, side // 2, 2)
        size = side // 3, side // 4, channels
        image[top : top + size[0], left : left + size[1]] = rng.integers(60, 256, size)
    return images


GREY, COLOUR = strokes(28, 1), strokes(32, 3)


def idx(root: pathlib.Path) -> tuple[str, np.ndarray]:
    for part in ("train", "t10k"):
        (root / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(GREY[..., 0])))
        (root / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(LABELS)))
    return "mnist", GREY


def libsvm(root: pathlib.Path) -> tuple[str, np.ndarray]:
    images = strokes(16, 1)
    for name in ("usps", "usps.t"):
        (root / name).write_bytes(usps_text(images, LABELS))
    return "usps", images


def mat(root: pathlib.Path) -> tuple[str, np.ndarray]:
    for part in ("train", "test"):
        (root / f"{part}_32x32.mat").write_bytes(mat_bytes(COLOUR, LABELS))
    return "svhn", COLOUR


def folder(root: pathlib.Path, images: np.ndarray = COLOUR) -> tuple[str, np.ndarray]:
    for part in ("train", "test"):
        write_folder(root / "own" / part, images, LABELS)
    return str(root / "own"), images


def grey_folder(root: pathlib.Path) -> tuple[str, np.ndarray]:
    return folder(root, GREY)


def npz(root: pathlib.Path, convert: Callable = lambda x: x) -> tuple[str, np.ndarray]:
    x = convert(COLOUR)
    np.savez(root / "own.npz", x_train=x, y_train=LABELS, x_test=x, y_test=LABELS)
    return str(root / "own.npz"), COLOUR


def float_npz(root: pathlib.Path) -> tuple[str, np.ndarray]:
    return npz(root, lambda x: x / 255)


def csv(root: pathlib.Path) -> tuple[str, np.ndarray]:
    for part in ("train", "test"):
        (root / f"{part}.csv").write_text(csv_text(GREY[..., 0], LABELS))
    return str(root), GREY


def parquet(root: pathlib.Path) -> tuple[str, np.ndarray]:
    for part in ("train", "test"):
        path = root / f"{part}-00000-of-00001.parquet"
        path.write_bytes(parquet_bytes([png_bytes(image) for image in COLOUR], LABELS))
    return str(root), COLOUR


READERS = [idx, libsvm, mat, folder, grey_folder, npz, float_npz, csv, parquet]


@pytest.mark.parametrize("size", [0, 20])
@pytest.mark.parametrize("method", ["stretch", "mnist_box"])
@pytest.mark.parametrize("reader", READERS)
def test_the_same_image_gives_the_same_array(
    tmp_path: pathlib.Path, reader: Callable, method: str, size: int
) -> None:
    dataset, stored = reader(tmp_path)
    data = load_search_data(
        dataset, str(tmp_path), image_size=size, resize=method, validation_fraction=0.25
    )
    assert data.form is not None
    test = load_test_data(dataset, str(tmp_path), form=data.form)
    assert (len(data.train), len(data.validation), len(test)) == (30, 10, 40)
    # By hand, from the pixels that were written.
    form = InputForm(*data.image_shape, method)
    expected = {row.tobytes() for row in form.to_input(stored, "stored")}
    assert rows(test) == expected
    assert rows(data.train) | rows(data.validation) == expected
    # Predicted: as an array in the training images' range, and as image files.
    low, high = data.form.values.low, data.form.values.high
    predicted = data.form.from_array(stored / 255 * (high - low) + low)
    assert {row.tobytes() for row in predicted} == expected
    write_folder(tmp_path / "files", stored, LABELS)
    paths = tuple(sorted((tmp_path / "files").rglob("*.png")))
    if high == 255:
        read = FilePixels("files", paths).read(data.form, False, lambda done, total: None)
        assert {row.tobytes() for row in read.images} == expected


def test_boxing_without_a_size_holds_for_every_split() -> None:
    """The test images alone were boxed: validation 96 %, test 13 %."""
    data = load_search_data("digits", resize="mnist_box")
    plain = load_search_data("digits")
    assert data.form == InputForm(8, 8, 1, "mnist_box")
    assert (data.train.images != plain.train.images).any()
    np.testing.assert_array_equal(
        data.train.images, InputForm(8, 8, 1, "mnist_box").to_input(plain.train.images, "x")
    )
    boxed = load_test_data("digits", resize="mnist_box").images
    np.testing.assert_array_equal(load_test_data("digits", form=data.form).images, boxed)


def rows(images: Images) -> set[bytes]:
    return {image.tobytes() for image in images.images}
