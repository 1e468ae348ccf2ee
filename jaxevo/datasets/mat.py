"""SVHN's MATLAB 5 files: `X` uint8 [32, 32, 3, M] and `y` [M, 1], in which 10 stands for digit 0.

Read here and not by SciPy, whose reader allocates whatever a file claims and on some damaged files
ends the whole process by a segmentation fault. The format:
https://www.mathworks.com/help/pdf_doc/matlab/matfile_format.pdf.
"""

from __future__ import annotations

import math
import pathlib
import struct
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from jaxevo.datasets.base import (
    MAX_PUBLISHED_BYTES,
    MAX_UNPACKED_BYTES,
    DataError,
    check_image_array,
)
from jaxevo.datasets.files import REMEDY, check_regular, read_errors
from jaxevo.datasets.images import Images

_HEADER_BYTES = 128
_MATRIX, _COMPRESSED = 14, 15  # types of an element
_NUMBERS = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
# Classes of an array, double to uint64; the others are cells, structures, text and so on.
_NUMERIC_CLASSES = range(6, 16)
_COMPLEX = 0x0800
_LIMIT = MAX_PUBLISHED_BYTES
_MAX_RATIO = 4  # of unpacked to packed bytes: SVHN has 1.2


def read_split(paths: Sequence[pathlib.Path]) -> Images:
    """Reads `paths`, the one file of a split, as [M, 32, 32, 3] with digit 0 as label 0."""
    (path,) = paths
    arrays: dict[str, np.ndarray] = {}
    for order, element in _elements(path):
        try:
            arrays.update(_parse_array(order, element, ("X", "y")))
        except ValueError as error:
            raise DataError(f"{path} has a damaged array ({error}): {REMEDY}") from error
    # Both arrays must be there, with the shapes and labels of SVHN.
    missing = [name for name in ("X", "y") if name not in arrays]
    if missing:
        raise DataError(
            f"{path} lacks {' and '.join(missing)}: it is not a cropped SVHN file, {REMEDY}"
        )
    images, labels = arrays["X"], arrays["y"].reshape(-1)
    if images.ndim == 3:  # MATLAB drops a last dimension of 1
        images = images[..., None]
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[:3] != (32, 32, 3):
        raise DataError(
            f"{path} has X {images.dtype} {list(images.shape)}, not uint8 [32, 32, 3, M]: {REMEDY}"
        )
    # Images first, as everywhere.
    images = images.transpose(3, 0, 1, 2)
    check_image_array(path, images.shape)
    if len(images) != len(labels):
        raise DataError(f"{path} has {len(images)} images and {len(labels)} labels: {REMEDY}")
    if np.any(labels != np.round(labels)) or labels.min() < 1 or labels.max() > 10:
        raise DataError(f"{path} has labels outside 1 to 10: {REMEDY}")
    return Images(np.ascontiguousarray(images), labels.astype(np.int32) % 10)


def _elements(path: pathlib.Path) -> Iterator[tuple[str, memoryview]]:
    """The file's arrays, unpacked, each with the byte order ("<" or ">").

    They have at most `_LIMIT` bytes in all.
    """
    check_regular(path)
    with read_errors(path):
        if path.stat().st_size > _LIMIT:
            raise DataError(f"{path} is larger than {_LIMIT >> 20} MiB: it is not SVHN, {REMEDY}")
        raw = memoryview(path.read_bytes())
    # The header tells the byte order and the version.
    order = {b"IM": "<", b"MI": ">"}.get(bytes(raw[126:128]))
    if order is None or bytes(raw[124:126]) not in (b"\x00\x01", b"\x01\x00"):
        raise DataError(f"{path} is no MATLAB 5 file: {REMEDY}")
    # Go through the elements, unpacking no more than there is room for.
    limit = min(_LIMIT, max(MAX_UNPACKED_BYTES, _MAX_RATIO * len(raw)))
    room, start = limit, _HEADER_BYTES
    while start < len(raw):
        kind, size = (
            struct.unpack_from(order + "II", raw, start) if start + 8 <= len(raw) else (0, len(raw))
        )
        end = start + 8 + size
        if end > len(raw):
            raise DataError(f"{path} is cut short: {REMEDY}")
        element = raw[start:end]
        if kind == _COMPRESSED:
            with read_errors(path):
                element = memoryview(zlib.decompressobj().decompress(element[8:], room + 1))
        room -= len(element)
        if room < 0:
            raise DataError(
                f"{path} unpacks to more than {limit >> 20} MiB: it is not SVHN, {REMEDY}"
            )
        yield order, element
        start = end


def _parse_array(order: str, element: memoryview, wanted: Sequence[str]) -> dict[str, np.ndarray]:
    """The array in `element` by its name, or nothing if it is not wanted or not of real numbers.

    Raises:
        ValueError: The element is damaged.
    """
    if len(element) < 8 or struct.unpack_from(order + "II", element) != (_MATRIX, len(element) - 8):
        raise ValueError("it is none or of another length than it says")
    _, flags, rest = _take(order, element[8:])
    if len(flags) != 8:
        raise ValueError("it has flags of a wrong size")
    (flag_bits,) = struct.unpack_from(order + "I", flags)
    _, shape_bytes, rest = _take(order, rest)
    _, name_bytes, rest = _take(order, rest)
    name = bytes(name_bytes).decode("latin-1")
    if name not in wanted or flag_bits & 0xFF not in _NUMERIC_CLASSES or flag_bits & _COMPLEX:
        return {}
    kind, data, _ = _take(order, rest)
    shape = struct.unpack(
        f"{order}{len(shape_bytes) // 4}i", shape_bytes[: len(shape_bytes) // 4 * 4]
    )
    if kind not in _NUMBERS or any(side < 0 for side in shape):
        raise ValueError(f"it has numbers of type {kind} in the shape {list(shape)}")
    dtype = np.dtype(order + _NUMBERS[kind])
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"it has {len(data)} bytes in the shape {list(shape)}")
    return {name: np.frombuffer(data, dtype).reshape(shape, order="F")}


def _take(order: str, data: memoryview) -> tuple[int, memoryview, memoryview]:
    """The type and the content of the part with which `data` starts, and what follows it."""
    if len(data) < 8:
        raise ValueError("it ends too early")
    kind, size = struct.unpack_from(order + "II", data)
    if kind >> 16:  # short form: size and type share the first word, up to 4 bytes follow
        kind, size, start, end = kind & 0xFFFF, kind >> 16, 4, 8
    else:
        start, end = 8, 8 + -(-size // 8) * 8  # padded to 8 bytes
    if start + size > min(end, len(data)):
        raise ValueError("it ends too early")
    return kind, data[start : start + size], data[end:]
