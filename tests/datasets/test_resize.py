"""Resizing: stretched, and placed as MNIST's digits are."""

from __future__ import annotations

import numpy as np
import pytest
from builders_data import SHARED, data_error, make_images, real_files

from jaxevo.datasets import load_test_data, resize_images

pytestmark = pytest.mark.usefixtures("offline")


def test_stretch() -> None:
    images = make_images(3, (8, 6, 3))
    assert resize_images(images, (8, 6, 3)) is images
    assert resize_images(images, (16, 12, 3)).shape == (3, 16, 12, 3)
    flat = np.full((1, 5, 5, 1), 77, np.uint8)
    assert (resize_images(flat, (9, 3, 3)) == 77).all()
    checks = np.kron(np.ones((16, 16)), [[0, 255], [255, 0]]).astype(np.uint8)[None, ..., None]
    assert (
        np.abs(resize_images(checks, (8, 8, 1)) - 127.5).max() < 30
    )  # antialiased: grey, not black or white
    grey = resize_images(np.array([[[[200, 100, 50]]]], np.uint8), (1, 1, 1))
    assert grey.item() == round(0.299 * 200 + 0.587 * 100 + 0.114 * 50)
    data_error(lambda: resize_images(images, (8, 6, 2)), "2", "1 and 3")
    data_error(lambda: resize_images(images, (0, 6, 1)), "0")
    data_error(lambda: resize_images(images / 255, (4, 4, 3)), "float64", "InputForm.from_array")


def extent(image: np.ndarray) -> tuple[int, int]:
    ink = image[..., 0] > 25
    # type: ignore[return-value]
    return tuple(int(np.ptp(np.flatnonzero(ink.any(axis=axis)))) + 1 for axis in (1, 0))


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


@real_files
def test_usps_in_mnists_frame() -> None:
    test = load_test_data("usps", str(SHARED), image_shape=(28, 28, 1), resize="mnist_box")
    assert test.images.shape == (2007, 28, 28, 1)
    for image in test.images[:200]:
        assert max(extent(image)) <= 20
        assert all(abs(centre - 14) <= 0.5 for centre in mass_centre(image))
