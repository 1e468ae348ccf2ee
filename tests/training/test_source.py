"""What a network was trained on, as it is saved with the weights, and predictions in that form."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from jaxevo.datasets import Content, DataError, InputForm, ValueRange
from jaxevo.errors import InputError
from jaxevo.training.inputs import check_images
from jaxevo.training.source import Source

FORM = InputForm(4, 5, 1, "mnist_box", ValueRange(0, 1), "white")
SOURCE = Source("own.npz", ("cat", "dog"), "mnist_box", FORM, Content("ab" * 32, (3, 2**64 - 1)))
OLD = {"dataset": "digits", "class_names": ["0", "1"], "resize": "stretch"}  # of version 0.2.0


def test_a_source_is_read_back():
    document = json.loads(json.dumps(SOURCE.to_json()))
    assert Source.from_json(document, (4, 5, 1)) == SOURCE


def test_weights_of_0_2_0_have_no_form():
    source = Source.from_json(OLD, (8, 8, 1))
    assert source == Source("digits", ("0", "1"), "stretch")
    assert source.to_json() == OLD


@pytest.mark.parametrize(
    ("changes", "image_shape"),
    [
        ({}, (5, 4, 1)),
        ({}, (4, 5, 3)),
        ({"resize": "stretch"}, (4, 5, 1)),
        ({"input": None}, (4, 5, 1)),
        ({"input": FORM.to_json() | {"range": [1, 0]}}, (4, 5, 1)),
        ({"input": FORM.to_json() | {"size": [10**9, 5]}}, (10**9, 5, 1)),
    ],
)
def test_another_form_is_refused(changes: dict[str, Any], image_shape: tuple[int, int, int]):
    with pytest.raises(ValueError):
        Source.from_json(SOURCE.to_json() | changes, image_shape)


def test_control_characters_are_escaped():
    source = Source.from_json(OLD | {"dataset": "\x1b[31m", "content": "\n"}, (8, 8, 1))
    assert (source.dataset, source.content.digest) == ("\\x1b[31m", "\\n")


def test_pixels_are_taken_in_the_training_images_range():
    form = InputForm(2, 2, 1, values=ValueRange(0, 1))
    images = np.array([[[0, 0.2], [0.4, 1.0]]])
    found = check_images(images, (2, 2, 1), form)
    assert found[..., 0].tolist() == [[[0, 51], [102, 255]]]
    with pytest.raises(DataError, match="values from 0 to 255, where the training images' range"):
        check_images(images * 255, (2, 2, 1), form)
    with pytest.raises(InputError, match="from 0 to 1 and the network takes uint8 from 0 to 255"):
        check_images(images, (2, 2, 1), InputForm(2, 2, 1))
    for few in (np.array([[0, 1], [1, 1]]), np.ones((2, 2), bool)):  # black and white, not dark
        with pytest.raises(InputError, match="to 1 and the network|bool and the network"):
            check_images(few, (2, 2, 1), InputForm(2, 2, 1))
    inputs = np.array([[[0, 51], [102, 255]]], np.uint8)
    dark = np.full((15, 2, 2), 9, np.uint8)  # a few bytes may be as dark as that, not many
    assert check_images(dark, (2, 2, 1), InputForm(2, 2, 1)).max() == 9
    with pytest.raises(DataError, match="values from 9 to 9, where the training images' range"):
        check_images(np.tile(dark, (2, 1, 1)), (2, 2, 1), InputForm(2, 2, 1))
    for none in (dark[:0], dark[:0].astype(float)):
        assert check_images(none, (2, 2, 1), InputForm(2, 2, 1)).shape == (0, 2, 2, 1)
    for kind in (np.int64, np.uint16, np.float32):  # the range counts, not the type
        found = check_images(inputs.astype(kind), (2, 2, 1), InputForm(2, 2, 1))
        assert found.dtype == np.uint8 and found[..., 0].tolist() == inputs.tolist()
    assert check_images(inputs, (2, 2, 1), InputForm(2, 2, 1))[..., 0].tolist() == inputs.tolist()


def test_images_of_another_size_are_refused_with_what_converts_them():
    form = InputForm(2, 2, 1, values=ValueRange(0, 1))
    images = np.random.default_rng(0).random((3, 6, 4))
    words = r"\[3, 6, 4\] cannot .* takes \[M, 2, 2, 1\]: convert them by the .* form.from_array"
    with pytest.raises(InputError, match=words):
        check_images(images, (2, 2, 1), form)
    assert form.from_array(images).shape == (3, 2, 2, 1)


def test_pixels_are_boxed_as_the_training_images_were():
    form = InputForm(8, 8, 1, "mnist_box")
    image = np.zeros((1, 8, 8), np.uint8)
    image[0, :2, :2] = 200
    boxed = check_images(image, (8, 8, 1), form)
    np.testing.assert_array_equal(boxed, form.to_input(image[..., None], "x"))
    assert (boxed[..., 0] != image).any()
