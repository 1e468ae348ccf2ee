"""The input form: what it does to an image, and that a stranger's document is no more than that."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from builders_data import data_error, make_images

from jaxevo.datasets import InputForm, ValueRange, resize_images


def test_each_step_by_hand() -> None:
    form = InputForm(1, 1, 1, values=ValueRange(0, 16), background="white")
    values = np.array([[[[16, 8, 0]]]])  # 255, 128, 0 as bytes
    grey = round(0.299 * 255 + 0.587 * 128)
    assert form.to_input(values, "x").tolist() == [[[[grey]]]]
    alpha = np.array([[[0.4]]])  # 0.4 of 255, 128 and 0 and 0.6 of white
    shown = [round(0.4 * value + 0.6 * 255) for value in (255, 128, 0)]
    grey = round(0.299 * shown[0] + 0.587 * shown[1] + 0.114 * shown[2])
    assert form.to_input(values, "x", alpha).tolist() == [[[[grey]]]]


def test_the_size_and_way_of_resizing_hold_for_every_image() -> None:
    images = make_images(4, (12, 10, 3))
    for size, channels in ((12, 3), (12, 1), (20, 3)):
        for method in ("stretch", "mnist_box"):
            form = InputForm(size, 10, channels, method)
            expected = resize_images(images, (size, 10, channels), method)
            np.testing.assert_array_equal(form.to_input(images, "x"), expected)
            for image, one in zip(images, expected, strict=True):
                np.testing.assert_array_equal(form.to_input(image[None], "x")[0], one)


def test_bytes_below_black_are_refused_as_other_numbers_are() -> None:
    form = InputForm(1, 2, 1, values=ValueRange(100, 255))
    for dtype in (np.uint8, np.int16):
        values = np.array([[[[0], [255]]]], dtype)
        data_error(lambda values=values: form.to_input(values, "x"), "from 0 to 255", "100 to 255")
        values[0, 0, 0, 0] = 100
        assert form.to_input(values, "x").ravel().tolist() == [0, 255]


def test_arrays_for_predictions() -> None:
    form = InputForm(4, 4, 1, values=ValueRange(0, 1))
    images = make_images(3, (4, 4))
    np.testing.assert_array_equal(form.from_array(images / 255)[..., 0], images)
    np.testing.assert_array_equal(form.from_array(images[..., None] / 255)[..., 0], images)
    np.testing.assert_array_equal(form.from_array((images / 255).tolist())[..., 0], images)
    first = images[:, None] / 255  # channels first
    np.testing.assert_array_equal(form.from_array(first)[..., 0], images)
    data_error(lambda: form.from_array(images), "values from", "0 to 1")
    data_error(lambda: InputForm(4, 4, 1).from_array(images / 255), "values from", "0 to 255")
    for odd in (make_images(4, (4, 3)), make_images(4, (4, 1))):
        data_error(lambda odd=odd: form.from_array(odd), "are one image", "image[None]")
    for odd in (images[:0], images.astype(object), images.astype(complex)):
        data_error(lambda odd=odd: form.from_array(odd), "give numbers")
    data_error(lambda: form.from_array(images[0]), "[4, 4]", "give [M, H, W]", ".reshape(-1, 2, 2)")


def test_a_document_is_read_back() -> None:
    for form in (
        InputForm(28, 30, 3, "mnist_box", ValueRange(-1, 1), "black"),
        InputForm.assumed((8, 8, 1)),
    ):
        assert InputForm.from_json(json.loads(json.dumps(form.to_json()))) == form
    assert InputForm.assumed((8, 9, 1)).values == ValueRange(0, 255)


GOOD = InputForm(8, 8, 1).to_json()


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        GOOD | {"more": 1},
        {key: GOOD[key] for key in list(GOOD)[1:]},
        GOOD | {"size": [8]},
        GOOD | {"size": [0, 8]},
        GOOD | {"size": [8, -1]},
        GOOD | {"size": [8, 5000]},
        GOOD | {"size": [8.0, 8]},
        GOOD | {"size": [True, 8]},
        GOOD | {"size": [8, 10**400]},
        GOOD | {"size": "88"},
        GOOD | {"channels": 2},
        GOOD | {"channels": True},
        GOOD | {"channels": "1"},
        GOOD | {"resize": "squash"},
        GOOD | {"resize": ["stretch"]},
        GOOD | {"range": [0, 0]},
        GOOD | {"range": [0, float("nan")]},
        GOOD | {"range": [0, float("inf")]},
        GOOD | {"range": [0, 1e300]},
        GOOD | {"range": [1, 0]},
        GOOD | {"range": ["0", "1"]},
        GOOD | {"background": "red"},
        GOOD | {"background": None},
        GOOD | {"background": {}},
    ],
)
def test_hostile_documents_are_refused(document: Any) -> None:
    data_error(lambda: InputForm.from_json(document))
