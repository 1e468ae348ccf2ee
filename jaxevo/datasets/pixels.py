"""The images of a split as they are stored: measured for the input form, then read through it.

There are arrays that come in blocks (`array_pixels`) and image files (`file_pixels`). Neither
is ever in memory as a whole before it has the input form's size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

import numpy as np

from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.values import ValueRange

Progress = Callable[[int, int], None]  # images done, of how many


@dataclasses.dataclass(frozen=True)
class Measured:
    """What training images are like."""

    sides: tuple[tuple[int, int], ...]  # the different heights and widths
    channels: int
    values: ValueRange
    background: str


@dataclasses.dataclass(frozen=True)
class Read:
    """Inputs, uint8 [K, H, W, C], the positions of the images they were made of, and the files that
    were skipped.
    """

    images: np.ndarray
    positions: np.ndarray
    skipped: tuple[str, ...] = ()


class Pixels(Protocol):
    """The images of one split."""

    def __len__(self) -> int: ...

    def take(self, indices: np.ndarray) -> Pixels:
        """Those at `indices`, sorted integers [K]."""
        ...

    def measure(self, values: ValueRange | None = None) -> Measured:
        """What they are like; their range is `values`, if a person says so."""
        ...

    def read(self, form: InputForm, skip_unreadable: bool, progress: Progress) -> Read:
        """All of them as inputs."""
        ...
