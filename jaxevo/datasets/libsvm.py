"""USPS as LIBSVM's page publishes it.

A line is `label index:value ...`, with 256 pixels in [-1, 1]; label 1 is digit 0.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.datasets.files import REMEDY, opened
from jaxevo.datasets.images import Images

_SIDE = 16
_NUM_PIXELS = _SIDE * _SIDE
_MAX_LINE = 16_384  # bytes; USPS's longest lines have about 3,000
_MAX_LINES = 20_000  # USPS has 7,291 and 2,007
_MAX_UNPACKED = 32 << 20  # bytes; USPS has 17 MB and 5 MB
_LINE = re.compile(
    rb"\d{1,3}(?: \d{1,3}:[+-]?(?:\d{1,3}(?:\.\d{0,20})?|\.\d{1,20})(?:[eE][+-]?\d{1,3})?)*"
)


def parse_line(line: bytes) -> tuple[np.ndarray, int]:
    """Parses one line.

    Returns:
        The pixels in [-1, 1], float64 [256] (as in LIBSVM, an index that is left out means 0), and
        the label as written.

    Raises:
        ValueError: The line is not of the form, or an index or a value out of range.
    """
    line = b" ".join(line.split())
    if not _LINE.fullmatch(line):
        raise ValueError("is not of the form 'label index:value ...'")
    label, *tokens = line.decode("ascii").replace(":", " ").split()
    indices = np.array([int(token) for token in tokens[0::2]], np.int64)
    values = np.array([float(token) for token in tokens[1::2]])
    if indices.size and (
        indices[0] < 1 or indices[-1] > _NUM_PIXELS or np.any(np.diff(indices) < 1)
    ):
        raise ValueError(f"has indices that do not rise from 1 to {_NUM_PIXELS}")
    if np.any(np.abs(values) > 1):
        raise ValueError("has a value outside [-1, 1]")
    pixels = np.zeros(_NUM_PIXELS)
    pixels[indices - 1] = values
    return pixels, int(label)


def read_split(paths: Sequence[pathlib.Path]) -> Images:
    """Reads `paths`, the one file of a split, packed or not, as [M, 16, 16, 1]."""
    (path,) = paths
    images: list[np.ndarray] = []
    labels: list[int] = []
    room = _MAX_UNPACKED
    with opened(path) as stream:
        while line := stream.readline(_MAX_LINE):
            room -= len(line)
            if len(images) == _MAX_LINES or room < 0:
                limits = f"{_MAX_LINES:,} lines or {_MAX_UNPACKED >> 20} MiB"
                raise DataError(f"{path} has more than {limits}: it is not USPS, {REMEDY}")
            try:
                pixels, label = parse_line(line)
            except ValueError as error:
                raise DataError(f"{path}, line {len(images) + 1}: {error}: {REMEDY}") from error
            images.append(np.round((pixels + 1) * 127.5).astype(np.uint8))
            labels.append(label - 1)
    if not images:
        raise DataError(f"{path} is empty: {REMEDY}")
    return Images(np.stack(images).reshape(-1, _SIDE, _SIDE, 1), np.array(labels, np.int32))
