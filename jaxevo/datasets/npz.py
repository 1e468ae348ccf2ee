"""A person's data as an `.npz` file.

Names are Keras's (`x_train`, `y_train`, ...) or MedMNIST's (`train_images`, ...).

Test and validation arrays may be left out. The directory of the archive and each array's header are
checked before anything is unpacked, arrays of objects, which would be unpickled, are refused, and
images come block by block.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import math
import pathlib
import zipfile
from collections.abc import Iterator
from typing import IO

import numpy as np
from numpy.lib import format as npy

from jaxevo.datasets.array_pixels import BLOCK, ArrayPixels
from jaxevo.datasets.axes import axes_of, in_order
from jaxevo.datasets.base import MAX_BYTES, DataError, check_image_array
from jaxevo.datasets.dataset import Dataset, Part
from jaxevo.datasets.files import check_regular, read_errors
from jaxevo.datasets.labels import classes_of, label_names, lacking, number_classes
from jaxevo.datasets.split_names import SPLITS

_MAX_READ = 1 << 20  # bytes at once; a directory of that size has 20,000 entries, and ours 6
_CHUNK = _MAX_READ // 4
_MAX_RATIO = 40  # of values to packed bytes: MNIST has 5 as bytes, 25 as zeros and ones
_ALLOWED_VALUES = 32 << 20  # below it any ratio is possible, as even images pack well
_REMEDY = "save it anew with numpy.savez_compressed"


@dataclasses.dataclass(frozen=True)
class _Header:
    """An array's header; `values` is the number of its values."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def values(self) -> int:
        return math.prod(self.shape)


class _File(io.FileIO):
    """A file of which nobody reads much at once.

    `zipfile` would take a directory of any length into the memory.
    """

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            size = _MAX_READ + 1
        data = super().read(min(size, _MAX_READ + 1)) or b""
        if len(data) > _MAX_READ:
            raise zipfile.BadZipFile("its directory is too large")
        return data


def open_npz(path: pathlib.Path) -> Dataset:
    """Finds the splits and checks the form of each: names, shapes, types, labels, no pixel."""
    keys, others = _find_keys(path)
    # Number the classes of the training labels.
    raw = {role: _labels(path, y) for role, (_, y) in keys.items()}
    classes = classes_of(f"{path}, {keys['train'][1]},", raw["train"])
    pixels: dict[str, ArrayPixels] = {}
    parts: dict[str, Part] = {}
    # Check the arrays of each split.
    for role, (x, y) in keys.items():
        labels = number_classes(f"{path}, {y},", raw[role], classes, trained=keys["train"][1])
        pixels[role] = _pixels(path, x, len(labels))
        parts[role] = Part(pixels[role], labels)
    names = tuple(map(str, classes.tolist()))
    # Note what was passed over, and classes that a split lacks.
    notes = [f"passed over: the arrays {', '.join(others)}"] if others else []
    for role in ("validation", "test"):
        if role in parts:
            notes += lacking(parts[role].labels, names, role)
            check_alike(pixels["train"], pixels[role])
    test = parts.get("test")
    return Dataset(
        str(path),
        names,
        parts["train"],
        parts.get("validation"),
        None if test is None else lambda: test,
        0 if test is None else len(test),
        tuple(notes),
    )


def _find_keys(path: pathlib.Path) -> tuple[dict[str, tuple[str, str]], list[str]]:
    """Names of the images and labels of each split, and names of the other arrays."""
    with read_errors(path, _REMEDY):
        try:
            with _opened(path) as archive:
                names = [name.removesuffix(".npy") for name in archive.namelist()]
        except (zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            raise DataError(f"{path} is no .npz file ({str(error)[:200]}): {_REMEDY}") from error
    # Find the arrays of each split by any of the known names.
    folded = {name.casefold(): name for name in names}
    found: dict[str, tuple[str, str]] = {}
    for role in SPLITS:
        images, labels = ([folded[n] for n in known if n in folded] for known in _known_names(role))
        if len(images) > 1 or len(labels) > 1:
            several = ", ".join(images if len(images) > 1 else labels)
            raise DataError(
                f"{path} has several arrays for its {role} part ({several}): leave one of them"
            )
        if images and labels:
            found[role] = images[0], labels[0]
        elif images or labels:
            have = (images or labels)[0]
            raise DataError(
                f"{path} has {have} but lacks its {'labels' if images else 'images'}: {_form()}"
            )
    if "train" not in found:
        raise DataError(
            f"{path} lacks x_train and y_train, it has {', '.join(names[:8]) or 'nothing'}: "
            f"{_form()}"
        )
    used = {name for pair in found.values() for name in pair}
    return found, [name for name in names if name not in used]


def _form() -> str:
    return f"{_REMEDY}(path, x_train=..., y_train=...)"


def _known_names(role: str) -> tuple[list[str], list[str]]:
    images, labels = [], []
    for split in SPLITS[role]:
        images += [f"x_{split}", f"{split}_x", f"{split}_images", f"images_{split}"]
        labels += [f"y_{split}", f"{split}_y", f"{split}_labels", f"labels_{split}"]
    if role == "train":
        return [*images, "x", "images"], [*labels, "y", "labels"]
    return images, labels


def _labels(path: pathlib.Path, key: str) -> np.ndarray:
    _header(path, key, "biufUS")
    return label_names(f"{path}, {key},", _read_array(path, key))


def _pixels(path: pathlib.Path, key: str, num_labels: int) -> ArrayPixels:
    what = f"{path}, {key},"
    header = _header(path, key, "biuf")
    order = axes_of(what, header.shape)
    images, height, width, channels = (1 if axis is None else header.shape[axis] for axis in order)
    check_image_array(what, (images, height, width, channels))
    if images != num_labels:
        raise DataError(f"{path} has {images} images in {key} and {num_labels} labels: {_REMEDY}")
    return ArrayPixels(
        what, (images, height, width, channels), functools.partial(_blocks, path, key, order)
    )


def check_alike(train: ArrayPixels, other: ArrayPixels) -> None:
    """Raises `DataError` if a split has other channels than the training images.

    It is called before anything is trained.
    """
    if train.shape[3] != other.shape[3]:
        raise DataError(
            f"{other.what} has {other.shape[3]} channels and the training images "
            f"{train.shape[3]}: save both alike"
        )


def _blocks(path: pathlib.Path, key: str, order: tuple[int | None, ...]) -> Iterator[np.ndarray]:
    """The array's images, [m, H, W, C]: read in part where its order in the file allows it."""
    header = _header(path, key, "biuf")
    if header.fortran:
        array = _read_array(path, key)
        yield from (
            np.ascontiguousarray(in_order(array[start : start + BLOCK], order))
            for start in range(0, len(array), BLOCK)
        )
        return
    size = math.prod(header.shape[1:]) * header.dtype.itemsize
    with _read(path, key) as stream:
        _skip_header(stream)
        for start in range(0, header.shape[0], BLOCK):
            number = min(BLOCK, header.shape[0] - start)
            data = _read_exactly(stream, number * size)
            block = np.frombuffer(data, header.dtype).reshape(number, *header.shape[1:])
            yield np.ascontiguousarray(in_order(block, order))


def _read_exactly(stream: IO[bytes], size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        chunk = stream.read(min(size - len(data), _CHUNK))
        if not chunk:
            raise EOFError("it ends too early")
        data += chunk
    return data


def _header(path: pathlib.Path, key: str, kinds: str) -> _Header:
    """Reads and checks an array's header.

    Raises `DataError` unless the array is of one of the kinds and as long as its header says, and
    if it is too large or packed as a bomb is.
    """
    what = f"{path}, {key},"
    with _read(path, key) as stream:
        header, start = _skip_header(stream)
    info = _member(path, key)
    packed = min(info.compress_size, path.stat().st_size)
    # Type and size must be possible, and as much stored as the header says.
    if header.dtype.kind not in kinds:
        wanted = "numbers" if kinds == "biuf" else "numbers or words"
        raise DataError(f"{what} is of type {header.dtype}, not of {wanted}: {_REMEDY}")
    size = header.values * header.dtype.itemsize
    if size > MAX_BYTES:
        raise DataError(
            f"{what} has {size >> 20} MiB, the limit is {MAX_BYTES >> 20}: use fewer images or "
            "uint8"
        )
    if any(side < 0 for side in header.shape) or size != info.file_size - start:
        raise DataError(f"{what} holds another number of bytes than its header says: {_REMEDY}")
    # Too many values for the packed bytes would be a bomb.
    if header.values > max(_ALLOWED_VALUES, _MAX_RATIO * packed):
        ratio = header.values // max(1, packed)
        raise DataError(
            f"{what} unpacks to {header.values:,} values, {ratio} times its packed bytes: save it "
            "with numpy.savez"
        )
    return header


def _skip_header(stream: IO[bytes]) -> tuple[_Header, int]:
    version = npy.read_magic(stream)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"version {version} of the format is none of numbers")
    shape, fortran, dtype = readers[version](stream)
    return _Header(shape, fortran, dtype), stream.tell()


def _read_array(path: pathlib.Path, key: str) -> np.ndarray:
    with _read(path, key) as stream:
        return npy.read_array(stream, allow_pickle=False)


def _member(path: pathlib.Path, key: str) -> zipfile.ZipInfo:
    with read_errors(path, _REMEDY), _opened(path) as archive:
        return _info(archive, key)


def _info(archive: zipfile.ZipFile, key: str) -> zipfile.ZipInfo:
    return archive.getinfo(f"{key}.npy" if f"{key}.npy" in archive.namelist() else key)


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[zipfile.ZipFile]:
    check_regular(path, _REMEDY)
    with _File(path) as file, zipfile.ZipFile(file) as archive:
        yield archive


@contextlib.contextmanager
def _read(path: pathlib.Path, key: str) -> Iterator[IO[bytes]]:
    """An array's bytes; what zipfile and NumPy raise in the `with` block becomes a `DataError`."""
    with read_errors(path, _REMEDY):
        try:
            with _opened(path) as archive:
                info = _info(archive, key)
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise DataError(
                        f"{path}, {key}, is compressed in another way than NumPy's: {_REMEDY}"
                    )
                with archive.open(info) as stream:
                    yield stream
        except (DataError, OSError):
            raise
        except Exception as error:  # zipfile and NumPy raise many types on damaged files
            reason = str(error)[:200] or type(error).__name__
            raise DataError(f"{path}, {key}, cannot be read ({reason}): {_REMEDY}") from error
