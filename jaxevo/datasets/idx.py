"""MNIST's IDX files: a magic number, the sizes, then one byte a value."""

from __future__ import annotations

import math
import pathlib
import struct
from collections.abc import Sequence

import numpy as np

from jaxevo.datasets.base import MAX_PUBLISHED_BYTES, DataError, check_image_array, check_unpacked
from jaxevo.datasets.files import REMEDY, opened, read_at_most
from jaxevo.datasets.images import Images

_UINT8 = 0x08  # the third byte of the magic number: the values' type


def read_idx(path: pathlib.Path, num_dims: int) -> np.ndarray:
    """Reads an IDX file of bytes, packed or not.

    Args:
        path: The file.
        num_dims: 3 for images, 1 for labels.

    Returns:
        uint8 [M, H, W] or [M].
    """
    with opened(path) as stream:
        header = stream.read(4 + 4 * num_dims)
        # The header tells the type, the number of axes and their lengths.
        magic = header[:4].hex()
        expected_magic = bytes([0, 0, _UINT8, num_dims]).hex()
        if magic != expected_magic:
            raise DataError(
                f"{path} starts with {magic}, not {expected_magic}: it is no such IDX file, "
                f"{REMEDY}"
            )
        if len(header) < 4 + 4 * num_dims:
            raise DataError(f"{path} ends within its header: {REMEDY}")
        # Bound the size before anything of it is read.
        shape = struct.unpack(f">{num_dims}I", header[4:])
        check_image_array(path, shape, MAX_PUBLISHED_BYTES)
        size = math.prod(shape)
        check_unpacked(path, size, path.stat().st_size, remedy=REMEDY)
        data = read_at_most(stream, size + 1)  # one byte more shows a file that is too long
    if len(data) != size:
        found = f"only {len(data)}" if len(data) < size else "more"
        raise DataError(f"{path} claims {size} values and holds {found}: {REMEDY}")
    return np.frombuffer(data, np.uint8).reshape(shape)


def read_split(paths: Sequence[pathlib.Path]) -> Images:
    """Reads `paths`, the images' file and the labels' file, as [M, H, W, 1]."""
    images_path, labels_path = paths
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if len(images) != len(labels):
        raise DataError(
            f"{images_path} has {len(images)} images and {labels_path} {len(labels)} labels: "
            "take both files from the same data set"
        )
    return Images(images[..., None], labels.astype(np.int32))
