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
    """Measurements of the training images."""

    sides: tuple[tuple[int, int], ...]  # the different heights and widths
    channels: int
    values: ValueRange
    background: str
    notes: tuple[str, ...] = ()  # what a person should know of them, each a phrase


@dataclasses.dataclass(frozen=True)
class Read:
    """Inputs, uint8 [K, H, W, C], with the positions of their images.

    The files that were skipped are listed too.
    """

    images: np.ndarray
    positions: np.ndarray
    skipped: tuple[str, ...] = ()


class Pixels(Protocol):
    """The images of one split."""

    def __len__(self) -> int: ...

    def take(self, indices: np.ndarray) -> Pixels:
        """The pixels of the images at `indices`, sorted integers [K]."""
        ...

    def measure(self, values: ValueRange | None = None) -> Measured:
        """Measures the images; their range is `values`, if a person says so."""
        ...

    def read(self, form: InputForm, skip_unreadable: bool, progress: Progress) -> Read:
        """All of them as inputs."""
        ...
