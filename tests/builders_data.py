"""Builders of data: files of every format with known content, and what tests ask of readers."""

from __future__ import annotations

import gzip
import io
import json
import pathlib
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
from PIL import Image
from pyarrow import parquet

from jaxevo.datasets import DataError, Images

SHARED = pathlib.Path(__file__).parents[2] / "shared" / "data"
real_files = pytest.mark.skipif(not SHARED.is_dir(), reason="the real files lie beside the project")


def make_images(num: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num, *shape), np.uint8)


def make_labels(num: int, classes: int = 10) -> np.ndarray:
    return np.arange(num, dtype=np.uint8) % classes


def idx_bytes(array: np.ndarray) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_mnist(
    folder: pathlib.Path, images: np.ndarray, labels: np.ndarray, pack: bool = True
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            data = idx_bytes(array)
            name = f"{part}-{kind}-ubyte"
            (folder / (name + ".gz" if pack else name)).write_bytes(
                gzip.compress(data) if pack else data
            )


def usps_text(images: np.ndarray, labels: np.ndarray) -> bytes:
    values = images.reshape(len(images), -1) / 127.5 - 1
    lines = (
        f"{label + 1} " + " ".join(f"{i}:{v:.6g}" for i, v in enumerate(row, 1))
        for row, label in zip(values, labels, strict=True)
    )
    return "".join(line + " \n" for line in lines).encode()


def mat_bytes(images: np.ndarray, labels: np.ndarray, compress: bool = True) -> bytes:
    file = io.BytesIO()
    y = np.where(labels == 0, 10, labels)[:, None].astype(np.uint8)
    scipy.io.savemat(file, {"X": images.transpose(1, 2, 3, 0), "y": y}, do_compression=compress)
    return file.getvalue()


def npz_bytes(pixels: np.ndarray, labels: np.ndarray, compress: bool) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if compress else np.savez)(file, x_train=pixels, y_train=labels)
    return file.getvalue()


def picture(kind: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(make_images(1, (9, 7, 3))[0]).save(file, kind)
    return file.getvalue()


def write_folder(
    root: pathlib.Path,
    images: np.ndarray,
    labels: np.ndarray,
    names: Sequence[str] = "abcdefghij",
    *,
    ending: str = "png",
    **options: Any,
) -> None:
    for i, (image, label) in enumerate(zip(images, labels, strict=True)):
        path = root / names[label] / f"{i:04}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image.squeeze()).save(path, **options)


# The images and labels of `unsplit_folder`.
PIXELS, LABELS = make_images(50, (8, 8)), make_labels(50, 2)


def unsplit_folder(path: pathlib.Path) -> pathlib.Path:
    """A folder of two classes without an official split."""
    write_folder(path, PIXELS, LABELS)
    return path


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """`data` cut short, or with a few bytes changed (half of the time near the start), removed or
    put in.
    """
    kind = rng.integers(4)
    place = int(
        rng.integers(min(len(data), 200)) if rng.random() < 0.5 else rng.integers(len(data))
    )
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + rng.bytes(int(rng.integers(1, 9))) + data[place:]
    if kind == 2:
        return data[:place] + data[place + int(rng.integers(1, 9)) :]
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        changed[min(len(data) - 1, place + int(rng.integers(8)))] = int(
            rng.choice([0, 1, 127, 128, 255])
        )
    return bytes(changed)


def keys(images: Images) -> list[bytes]:
    return [image.tobytes() for image in images.images]


def assert_images(images: Images, pixels: np.ndarray, labels: np.ndarray) -> None:
    np.testing.assert_array_equal(images.images, pixels)
    np.testing.assert_array_equal(images.labels, labels)


def data_error(function: Callable[[], object], *parts: object) -> str:
    """Runs `function`, which must fail with a one-line `DataError` that has all `parts` in it."""
    with pytest.raises(DataError) as caught:
        function()
    message = str(caught.value)
    assert "\n" not in message and all(str(part) in message for part in parts), message
    return message


def png_bytes(image: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image.squeeze()).save(file, "PNG")
    return file.getvalue()


def csv_text(
    images: np.ndarray, labels: Sequence[object], header: bool = True, label: str = "label"
) -> str:
    """A row an image, the label first; images [M, H, W]."""
    flat = images.reshape(len(images), -1)
    names = ",".join([label, *(f"pixel{i}" for i in range(flat.shape[1]))])
    rows = [
        ",".join(map(str, [name, *row])) for name, row in zip(labels, flat.tolist(), strict=True)
    ]
    return "\n".join([names, *rows] if header else rows) + "\n"


def parquet_bytes(
    pictures: Sequence[bytes],
    labels: Sequence[object],
    names: Sequence[str] = (),
    image: str = "image",
) -> bytes:
    """As the Hub's library writes it: structures of bytes and path, class names in the metadata."""
    column = pa.array(
        [{"bytes": data, "path": None} for data in pictures],
        pa.struct({"bytes": pa.binary(), "path": pa.string()}),
    )
    table = pa.table({image: column, "label": pa.array(list(labels))})
    if names:
        features = {
            image: {"_type": "Image"},
            "label": {"names": list(names), "_type": "ClassLabel"},
        }
        text = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": text})
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
