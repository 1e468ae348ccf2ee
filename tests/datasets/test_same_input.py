"""Training, validation, test and prediction of the same image give the same array, whatever read
it.
"""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Callable
from typing import Any

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


def single_csv(root: pathlib.Path) -> tuple[str, np.ndarray]:
    """A training table alone, of which a fixed part becomes the test images."""
    (root / "own.csv").write_text(csv_text(GREY[..., 0], LABELS))
    return str(root / "own.csv"), GREY


def emnist(root: pathlib.Path) -> tuple[str, np.ndarray]:
    """Images are stored with their axes exchanged, and letters begin with 1."""
    images, labels = np.concatenate([GREY, GREY[:12]]), make_labels(52, 26) + 1
    images[40:, 0, 0] = 255  # all are different
    stored = np.ascontiguousarray(images[..., 0].transpose(0, 2, 1))
    for part in ("train", "test"):
        name = root / f"emnist-letters-{part}"
        pathlib.Path(f"{name}-images-idx3-ubyte").write_bytes(idx_bytes(stored))
        pathlib.Path(f"{name}-labels-idx1-ubyte").write_bytes(idx_bytes(labels))
    return "emnist_letters", images


def medmnist(root: pathlib.Path) -> tuple[str, np.ndarray]:
    arrays = {f"{part}_images": COLOUR for part in ("train", "test")}
    arrays |= {f"{part}_labels": LABELS[:, None] for part in ("train", "test")}
    np.savez_compressed(root / "own.npz", **arrays)
    return str(root / "own.npz"), COLOUR


def arrays(root: pathlib.Path) -> tuple[Any, np.ndarray]:
    return dict(x_train=GREY[..., 0], y_train=LABELS, x_test=GREY, y_test=LABELS), GREY


READERS = [idx, libsvm, mat, folder, grey_folder, npz, float_npz, csv, single_csv, parquet]
READERS += [emnist, medmnist, arrays]


@pytest.mark.parametrize("size", [0, 20])
@pytest.mark.parametrize("method", ["stretch", "mnist_box"])
@pytest.mark.parametrize("reader", READERS)
def test_the_same_image_gives_the_same_array(
    tmp_path: pathlib.Path, reader: Callable, method: str, size: int
) -> None:
    dataset, stored = reader(tmp_path)
    data = load_search_data(
        dataset, str(tmp_path), image_size=size, resize=method, validation_fraction=0.5
    )
    assert data.form is not None
    test = load_test_data(dataset, str(tmp_path), form=data.form)
    # By hand, from the pixels that were written.
    form = InputForm(*data.image_shape, method)
    expected = {row.tobytes() for row in form.to_input(stored, "stored")}
    trained = rows(data.train) | rows(data.validation)
    if reader is single_csv:
        assert (len(data.train), len(data.validation), len(test)) == (16, 16, 8)
        assert trained | rows(test) == expected
    else:
        assert len(data.train) == len(data.validation) == len(test) / 2 == len(stored) / 2
        assert trained == rows(test) == expected
    # Predicted: as an array in the training images' range, and as image files.
    low, high = data.form.values.low, data.form.values.high
    predicted = data.form.from_array(stored / 255 * (high - low) + low)
    assert {row.tobytes() for row in predicted} == expected
    write_folder(tmp_path / "files", stored, make_labels(len(stored), 2))
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
