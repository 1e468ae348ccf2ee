"""The range of stored values: chosen from training images, demanded of all others."""

from __future__ import annotations

import numpy as np
import pytest
from builders_data import data_error

from jaxevo.datasets import ValueRange
from jaxevo.datasets.values import Extent, choose_range


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        ([0, 1], 0, 1),
        ([0, 7], 0, 15),
        ([0, 16], 0, 16),
        ([0, 0], 0, 255),
        ([3, 17], 0, 255),
        ([0, 256], 0, 1023),
        ([0, 4095], 0, 4095),
        ([0, 10_000], 0, 16383),
        ([9, 65_535], 0, 65535),
        ([0.0, 0.25], 0, 1),
        ([0.0, 1.0], 0, 1),
        ([-0.0001, 1.0001], 0, 1),
        ([-0.5, 0.99], -1, 1),
        ([0.5, 200.25], 0, 255),
        ([-0.3, 255.4], 0, 255),
        ([0.0, 16.0], 0, 16),
    ],
)
def test_the_range_of_training_images(values: list[float], low: float, high: float) -> None:
    assert choose_range(Extent.of(np.array(values), "x"), "x") == ValueRange(low, high)


@pytest.mark.parametrize(
    "values", [[-1, 255], [-3.5, 2.0], [0, 70_000], [0.5, 256.0], [-0.03, 1.03], [0.0, 2.5]]
)
def test_unusual_ranges_are_refused(values: list[float]) -> None:
    data_error(lambda: choose_range(Extent.of(np.array(values), "x"), "x"), "x has values from")


@pytest.mark.parametrize(
    ("low", "high", "values", "bytes_"),
    [
        (0, 1, [0, 1, 1], [0, 255, 255]),
        (0, 1, [0.5, 0.2, 1.0], [128, 51, 255]),
        (0, 1, [-0.001, 1.001, 0.1], [0, 255, 26]),
        (0, 16, [0, 8, 16], [0, 128, 255]),
        (0, 4095, [0, 2048, 4095], [0, 128, 255]),
        (-1, 1, [-1.0, 0.0, 1.0], [0, 128, 255]),
        (0, 255, [7, 8, 255], [7, 8, 255]),
    ],
)
def test_values_become_bytes(low: float, high: float, values: list, bytes_: list) -> None:
    for kind in (float, np.float32, *([np.uint16] if min(values) >= 0 and high > 1 else [])):
        assert ValueRange(low, high).to_bytes(np.array(values, kind)).tolist() == bytes_


def test_one_value_over_the_border_changes_nothing() -> None:
    """A test image with a pixel of 1.0001 made all of them 0 and 1 of 255."""
    values = np.linspace(0, 1, 100)
    expected = ValueRange(0, 1).to_bytes(values)
    values[-1] = 1.0001
    ValueRange(0, 1).check_scale(Extent.of(values[:, None], "x"), "x")
    np.testing.assert_array_equal(ValueRange(0, 1).to_bytes(values), expected)


@pytest.mark.parametrize(
    ("low", "high", "values", "images"),
    [
        (0, 1, [0, 255], 1),
        (0, 1, [0.0, 1.1], 1),
        (0, 16, [0, 255], 1),
        (0, 255, [0.1, 0.9], 1),  # fractions show it at once
        (0, 255, [0, 1], 20),
        (0, 255, [0, 16], 20),
        (0, 65535, [0, 4095], 20),
        (0, 255, [-1.0, 1.0], 1),
        (0, 255, [-0.03, 1.03], 1),  # as resizing and noise leave fractions of 0 to 1
        (0, 65535, [-1.1, 1.1], 1),
        (-1, 1, [0.0, 1.0], 20),
    ],
)
def test_images_of_another_range_are_refused(
    low: float, high: float, values: list, images: int
) -> None:
    array = np.resize(np.array(values), (images, 2))
    data_error(
        lambda: ValueRange(low, high).check_scale(Extent.of(array, "x_test"), "x_test"),
        "x_test has values from",
        f"{low} to {high}",
        "pixel_range",
    )


def test_values_far_from_0_keep_their_differences() -> None:
    steps = np.arange(8) / 7
    expected = [0, 36, 73, 109, 146, 182, 219, 255]
    for low in (0.0, 1e6, -1e9):
        found = ValueRange(low, low + 1).to_bytes(low + steps)
        np.testing.assert_array_equal(found, expected)


def test_a_few_dark_images_are_none_of_another_range() -> None:
    ValueRange(0, 255).check_scale(Extent.of(np.array([[0, 1]]), "x"), "x")
    ValueRange(0, 255).check_scale(Extent.of(np.zeros((50, 2), np.uint8), "x"), "x")


def test_no_range() -> None:
    for low, high in ((1, 1), (2, 1), (0, float("nan")), (0, float("inf"))):
        data_error(lambda low=low, high=high: ValueRange(low, high), "pixel_range")
    data_error(lambda: Extent.of(np.array([0, np.nan]), "x"), "not finite")
