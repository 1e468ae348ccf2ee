"""The order of the axes of images, told by the shape of their array."""

from __future__ import annotations

import numpy as np
import pytest
from builders_data import data_error

from jaxevo.datasets.axes import axes_of, in_order


@pytest.mark.parametrize(
    ("shape", "ordered"),
    [
        ((5, 8, 6), (5, 8, 6, 1)),
        ((5, 8, 6, 1), (5, 8, 6, 1)),
        ((5, 8, 6, 3), (5, 8, 6, 3)),
        ((5, 1, 8, 6), (5, 8, 6, 1)),
        ((5, 3, 8, 6), (5, 8, 6, 3)),
        ((5, 3, 8, 3), (5, 3, 8, 3)),  # channels last come first
    ],
)
def test_axes_by_shape(shape: tuple[int, ...], ordered: tuple[int, ...]) -> None:
    images = np.arange(np.prod(shape)).reshape(shape)
    found = in_order(images, axes_of("x", shape))
    assert found.shape == ordered
    # The pixel of row 2 and column 1 of image 4, in each channel.
    channels_first = shape != ordered and len(shape) == 4
    pixel = images[4, :, 2, 1] if channels_first else images[4, 2, 1]
    np.testing.assert_array_equal(found[4, 2, 1], np.atleast_1d(pixel))


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((5,), "give [M, H, W] or [M, H, W, C]"),
        ((5, 8, 6, 2), "give [M, H, W] or [M, H, W, C]"),
        ((5, 64), ".reshape(-1, 8, 8) makes that of rows"),
        ((8, 6, 3, 50), ".transpose(3, 0, 1, 2) makes that of images that come last"),
    ],
)
def test_other_shapes_are_refused_with_the_way_out(shape: tuple[int, ...], words: str) -> None:
    data_error(lambda: axes_of("x_train", shape), f"x_train of the shape {list(shape)}", words)
