"""What is handed to a trained network: accepted shapes, and the sentence for everything else."""

from __future__ import annotations

import numpy as np
import pytest

from jaxevo.datasets import InputForm
from jaxevo.errors import InputError
from jaxevo.training.inputs import check_images, class_numbers

GREY = (8, 6, 1)
COLOUR = (8, 6, 3)


@pytest.mark.parametrize(
    ("given", "image_shape", "checked"),
    [
        ((5, 8, 6, 1), GREY, (5, 8, 6, 1)),
        ((5, 8, 6), GREY, (5, 8, 6, 1)),
        ((8, 6), GREY, (1, 8, 6, 1)),
        ((8, 6, 1), GREY, (1, 8, 6, 1)),
        ((0, 8, 6), GREY, (0, 8, 6, 1)),
        ((8, 8, 6), GREY, (8, 8, 6, 1)),  # eight images, not one of six channels
        ((5, 8, 1), (8, 1, 1), (5, 8, 1, 1)),
        ((8, 1), (8, 1, 1), (1, 8, 1, 1)),
        ((8, 1, 1), (8, 1, 1), (1, 8, 1, 1)),
        ((5, 8, 6, 3), COLOUR, (5, 8, 6, 3)),
        ((8, 6, 3), COLOUR, (1, 8, 6, 3)),
    ],
)
def test_accepted_shapes(given, image_shape, checked):
    pixels = np.arange(np.prod(given)).astype(np.uint8).reshape(given)
    images = check_images(pixels, image_shape)
    assert images.shape == checked and images.dtype == np.uint8
    np.testing.assert_array_equal(images.ravel(), pixels.ravel())


@pytest.mark.parametrize("image_shape", [GREY, COLOUR])
def test_channels_may_come_first_as_in_training(image_shape):
    images = np.random.default_rng(0).integers(0, 256, (5, *image_shape), np.uint8)
    found = check_images(images.transpose(0, 3, 1, 2), image_shape)
    np.testing.assert_array_equal(found, images)


def test_rows_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"use images\.reshape\(-1, 8, 6, 1\)"):
        check_images(np.zeros((5, 48), np.uint8), GREY, InputForm(*GREY))


@pytest.mark.parametrize(
    ("dtype", "images", "refused"),
    [
        (np.uint8, 20, True),  # not all of so many are dark by chance
        (np.uint8, 1, False),  # a few may be
        (np.float64, 1, True),  # bytes are rarely of another type
        (np.int64, 1, True),
    ],
)
def test_whole_numbers_of_a_smaller_range_are_no_bytes(dtype, images, refused):
    dark = np.resize(np.arange(17), (images, 8, 6)).astype(dtype)
    form = InputForm(8, 6, 1)
    if refused:
        with pytest.raises(InputError, match="values from 0 to 16, where .* range is 0 to 255"):
            check_images(dark, GREY, form)
    else:
        np.testing.assert_array_equal(check_images(dark, GREY, form)[..., 0], dark)
    check_images((10 * dark).astype(dtype), GREY, form)


@pytest.mark.parametrize(
    ("given", "image_shape"),
    [
        ((), GREY),
        ((48,), GREY),
        ((5, 6, 8), GREY),
        ((5, 8, 6, 3), GREY),
        ((1, 5, 8, 6, 1), GREY),
        ((5, 8, 6), COLOUR),
        ((8, 6), COLOUR),
        ((5, 9, 6, 3), COLOUR),
    ],
)
def test_other_shapes_are_refused(given, image_shape):
    with pytest.raises(InputError) as caught:
        check_images(np.zeros(given, np.uint8), image_shape)
    height, width, channels = image_shape
    assert str(caught.value) == (
        f"images of shape {list(given)} cannot be classified, as the network takes "
        f"[M, {height}, {width}, {channels}]: resize them by jaxevo.datasets.resize_images"
    )


SCALES = {
    "fractions": (
        np.array([0, 0.5]),
        "float64 from 0 to 0.5 and the network takes uint8 from 0 to 255: "
        "use np.round(255 * images).astype(np.uint8)",
    ),
    "floats": (
        np.array([0.0, 254.0], np.float32),
        "float32 from 0 to 254 and the network takes uint8 from 0 to 255: "
        "use np.round(images).astype(np.uint8) if 255 is white",
    ),
    "integers": (
        np.array([3, 200]),
        "int64 from 3 to 200 and the network takes uint8 from 0 to 255: "
        "use np.round(images).astype(np.uint8) if 255 is white",
    ),
    "centred": (
        np.array([-1.0, 1.0]),
        "float64 from -1 to 1 and the network takes uint8 from 0 to 255: "
        "scale them as the training images were scaled",
    ),
    "16 bits": (
        np.array([0, 65535], np.uint16),
        "uint16 from 0 to 65535 and the network takes uint8 from 0 to 255: "
        "scale them as the training images were scaled",
    ),
    "not finite": (
        np.array([0.0, np.nan]),
        "float64 from nan to nan and the network takes uint8 from 0 to 255: "
        "scale them as the training images were scaled",
    ),
    "masks": (
        np.array([False, True]),
        "bool and the network takes uint8 from 0 to 255: use images * np.uint8(255)",
    ),
    "empty": (
        np.zeros((0,)),
        "float64 from 0 to 0 and the network takes uint8 from 0 to 255: "
        "use np.round(255 * images).astype(np.uint8)",
    ),
}


@pytest.mark.parametrize("name", SCALES)
def test_other_scales_are_refused(name):
    values, message = SCALES[name]
    with pytest.raises(InputError) as caught:
        check_images(values.reshape(-1, 1, 2), (1, 2, 1))
    assert str(caught.value) == f"images are {message}"


def test_what_is_no_array_of_numbers_is_refused():
    with pytest.raises(InputError, match=r"differ in shape: give one array \[M, 8, 6, 1\]"):
        check_images([np.zeros((8, 6)), np.zeros((9, 6))], GREY)
    with pytest.raises(InputError, match="images are <U1, not numbers"):
        check_images([["a"]], GREY)


def test_labels_by_name_and_by_number():
    assert class_numbers(["dog", "cat", "dog"], ("cat", "dog")).tolist() == [1, 0, 1]
    assert class_numbers(np.array([1, 0, 1]), ("cat", "dog")).tolist() == [1, 0, 1]
    assert class_numbers([[1], [0]], ("cat", "dog")).tolist() == [1, 0]
    assert class_numbers([], ("cat", "dog")).tolist() == []
    # Where the classes are numbers, a number is a name: 3 is the first class here.
    assert class_numbers([7, 3], ("3", "5", "7")).tolist() == [2, 0]
    assert class_numbers(["7", "3"], ("3", "5", "7")).tolist() == [2, 0]
    assert class_numbers([7.0, 3.0], ("3", "5", "7")).tolist() == [2, 0]
    assert class_numbers([True, False], ("False", "True")).tolist() == [1, 0]
    assert class_numbers([True, False], ("0", "1")).tolist() == [1, 0]  # as training takes them
    assert class_numbers([-1, 1], ("-1", "1")).tolist() == [0, 1]
    assert class_numbers([0], ("a",)).dtype == np.int32


@pytest.mark.parametrize(
    ("labels", "names", "message"),
    [
        (["cow"], ("cat", "dog"), "label cow is no class of the network: use cat, dog"),
        ([2], ("cat", "dog"), "label 2 is no class of the network: use 0, 1"),
        ([0.5], ("a", "b"), "label 0.5 is no class of the network: use a, b"),
        ([np.inf], ("3", "5"), "label inf is no class of the network: use 3, 5"),
        ([4], ("3", "5"), "label 4 is no class of the network: use 3, 5"),
        (["x"], tuple("abcdef"), "label x is no class of the network: use a, b, c, d, e, ..."),
        ([[0, 1]], ("cat", "dog"), "labels have the shape [1, 2]: give one an image, [M]"),
        (0, ("cat", "dog"), "labels have the shape []: give one an image, [M]"),
    ],
)
def test_labels_of_no_class_are_refused(labels, names, message):
    with pytest.raises(InputError) as caught:
        class_numbers(labels, names)
    assert str(caught.value) == message
