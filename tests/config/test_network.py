"""The stack of cells, and the images that it can take."""

from __future__ import annotations

import pytest

from jaxevo.config import (
    NetworkConfig,
)
from jaxevo.errors import InputError

N, R = "normal", "reduction"


@pytest.mark.parametrize(
    ("values", "stack"),
    [
        ({}, [(N, 24), (R, 24), (N, 48), (R, 48), (N, 96)]),
        ({"channels": 5, "num_normal_cells": 1}, [(N, 5)]),
        ({"channels": 5, "num_normal_cells": 1, "normal_repeats": 3}, [(N, 5)] * 3),
        (
            {"channels": 2, "num_normal_cells": 2, "normal_repeats": 2},
            [(N, 2), (N, 2), (R, 2), (N, 4), (N, 4)],
        ),
        (
            {"channels": 1, "channel_multiplier": 3, "num_normal_cells": 4},
            [(N, 1), (R, 1), (N, 3), (R, 3), (N, 9), (R, 9), (N, 27)],
        ),
        ({"channels": 7, "channel_multiplier": 1}, [(N, 7), (R, 7), (N, 7), (R, 7), (N, 7)]),
    ],
)
def test_stack_of_cells(values: dict[str, int], stack: list[tuple[str, int]]):
    assert NetworkConfig(**values).stack() == tuple(stack)


def test_images_must_outlast_the_reductions():
    config = NetworkConfig()  # two reductions: 4 -> 2 -> 1
    config.check_image(4, 4)
    config.check_image(5, 100)
    NetworkConfig(num_normal_cells=1).check_image(1, 1)
    for height, width in ((3, 4), (28, 3)):
        with pytest.raises(InputError) as caught:
            config.check_image(height, width)
        assert str(caught.value) == (
            "num_normal_cells=3 is not possible: its 2 reductions need images of at least 4x4 "
            "pixels, "
            f"these have {height}x{width}; resize the images or use fewer normal cells"
        )
    with pytest.raises(InputError, match=f"at least {2**99}x{2**99} pixels"):
        NetworkConfig(num_normal_cells=100).check_image(4096, 4096)
