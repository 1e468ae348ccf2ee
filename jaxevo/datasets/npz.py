"""A person's data as an `.npz` file in Keras's form: `x_train`, `y_train`, `x_test`, `y_test`.

The two test arrays may be left out. The directory of the archive and each array's header are checked before anything
is unpacked, and arrays of objects, which would be unpickled, are refused.
"""

from __future__ import annotations

import contextlib
import io
import math
import pathlib
import zipfile
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.lib import format as npy

from jaxevo.datasets.base import MAX_BYTES, DataError, check_image_array, check_unpacked
from jaxevo.datasets.files import check_regular, read_errors

_BLOCK = 256  # images
_MAX_READ = 1 << 20  # bytes at once; a directory of that size has 20,000 entries, and ours 4
_REMEDY = "save it anew with numpy.savez_compressed"
_KEYS = ("x_train", "y_train", "x_test", "y_test")


class _File(io.FileIO):
    """A file of which nobody reads much at once: `zipfile` would take a directory of any length into the memory."""

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = _MAX_READ + 1
        data = super().read(min(size, _MAX_READ + 1)) or b""
        if len(data) > _MAX_READ:
            raise zipfile.BadZipFile("its directory is too large")
        return data


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[zipfile.ZipFile]:
    check_regular(path, _REMEDY)
    with _File(path) as file, zipfile.ZipFile(file) as archive:
        yield archive


def array_names(path: pathlib.Path) -> set[str]:
    """Which of the four arrays the file has; raises `DataError` if one is lacking that must be there."""
    with read_errors(path, _REMEDY):
        try:
            with _opened(path) as archive:
                found = {name.removesuffix(".npy") for name in archive.namelist()} & set(_KEYS)
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise DataError(f"{path} is no .npz file ({str(error)[:200]}): {_REMEDY}") from error
    required = _KEYS if {"x_test", "y_test"} & found else _KEYS[:2]
    missing = [key for key in required if key not in found]
    if missing:
        raise DataError(f"{path} lacks {', '.join(missing)}: {_REMEDY}(path, x_train=..., y_train=...)")
    return found


def read_labels(path: pathlib.Path, part: str) -> np.ndarray:
    """The labels of `part` ("train" or "test") as they are in the file, integers [M]."""
    labels = _read_array(path, f"y_{part}")
    if labels.dtype.kind not in "iu" or labels.shape not in ((labels.size,), (labels.size, 1)):
        raise DataError(f"{path}, y_{part}, is {labels.dtype} {list(labels.shape)}: it must be integers [M] or [M, 1]")
    return labels.reshape(-1)


def read_part(path: pathlib.Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """The images of `part`, uint8 [M, H, W, C], and their labels as they are in the file, integers [M]."""
    images, labels = to_pixels(f"{path}, x_{part},", _read_array(path, f"x_{part}")), read_labels(path, part)
    if len(images) != len(labels):
        raise DataError(f"{path} has {len(images)} images and {len(labels)} labels in its {part} part: {_REMEDY}")
    return images, labels


def number_classes(path: pathlib.Path, labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Labels as positions in `known`, the sorted labels of the training images, int32 [M]."""
    unknown = np.setdiff1d(labels, known)
    if unknown.size:
        raise DataError(f"{path}, y_test, has label {unknown[0]}, which y_train has not: leave those images out")
    return np.searchsorted(known, labels).astype(np.int32)


def _read_array(path: pathlib.Path, key: str) -> np.ndarray:
    with read_errors(path, _REMEDY):
        try:
            with _opened(path) as archive:
                names = archive.namelist()
                info = archive.getinfo(f"{key}.npy" if f"{key}.npy" in names else key)
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise DataError(f"{path}, {key}, is compressed in another way than NumPy's: {_REMEDY}")
                with archive.open(info) as stream:
                    size = _check_header(f"{path}, {key},", stream, info.file_size)
                check_unpacked(f"{path}, {key},", size, path.stat().st_size, "save uint8, or with numpy.savez")
                with archive.open(info) as stream:
                    return npy.read_array(stream, allow_pickle=False)
        except (DataError, OSError):
            raise
        except Exception as error:  # zipfile and NumPy raise many types on damaged files
            reason = str(error)[:200] or type(error).__name__
            raise DataError(f"{path}, {key}, cannot be read ({reason}): {_REMEDY}") from error


def _check_header(what: str, stream: IO[bytes], member_bytes: int) -> int:
    """Bytes of array and pixels. Raises `DataError` unless it is of numbers and as long as its header says."""
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise DataError(f"{what} is in version {version} of the format: {_REMEDY}")
    shape, _, dtype = readers[version](stream)
    if dtype.kind not in "biuf":
        raise DataError(f"{what} is of type {dtype}, not of numbers: {_REMEDY}")
    size = math.prod(shape) * dtype.itemsize
    if size > MAX_BYTES:
        raise DataError(f"{what} has {size >> 20} MiB, the limit is {MAX_BYTES >> 20}: use fewer images or uint8")
    if any(side < 0 for side in shape) or size != member_bytes - stream.tell():
        raise DataError(f"{what} holds another number of bytes than its header says: {_REMEDY}")
    return size if dtype == np.uint8 else size + math.prod(shape)


def to_pixels(what: str, array: np.ndarray) -> np.ndarray:
    """Numbers [M, H, W] or [M, H, W, C] as uint8 [M, H, W, C]."""
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or array.shape[3] not in (1, 3):
        raise DataError(f"{what} has the shape {list(array.shape)}: it must be [M, H, W] or [M, H, W, C], C 1 or 3")
    check_image_array(what, array.shape)
    if array.dtype == np.uint8:
        return array
    low, high = array.min(), array.max()
    if array.dtype.kind == "f" and not (np.isfinite(low) and np.isfinite(high)):
        raise DataError(f"{what} has values that are not finite: use pixels from 0 to 255")
    if low < 0 or high > 255:
        raise DataError(f"{what} has values from {low} to {high}: use pixels from 0 to 255 or floats from 0 to 1")
    scale = 255 if array.dtype.kind in "bf" and high <= 1 else 1
    pixels = np.empty(array.shape, np.uint8)
    for start in range(0, len(array), _BLOCK):  # not all at once: the floats may take many times the array's bytes
        block = slice(start, start + _BLOCK)
        pixels[block] = np.round(array[block].astype(np.float32) * scale)
    return pixels
