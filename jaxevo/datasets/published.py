"""The data sets known by name: found, identified by their content, and opened as a `Dataset`."""

from __future__ import annotations

import hashlib
import struct

import numpy as np

from jaxevo.datasets.array_pixels import ArrayPixels
from jaxevo.datasets.base import DataError
from jaxevo.datasets.dataset import Dataset, Part
from jaxevo.datasets.files import hash_file
from jaxevo.datasets.images import Images
from jaxevo.datasets.originals import locate
from jaxevo.datasets.prepared import count_published, load_published
from jaxevo.datasets.sources import SOURCES, PublishedSource


def open_published(source: PublishedSource, data_dir: str | None) -> Dataset:
    """Reads the training split; the test split is read when it is asked for."""
    train = _read(source, data_dir, "train")
    notes = (
        ()
        if _is_published(source, data_dir, train)
        else (f"unverified: these need not be {source.name}'s files",)
    )
    return Dataset(
        source.name,
        source.class_names,
        _part(source.name, train),
        test=lambda: _part(source.name, _read(source, data_dir, "test")),
        num_test=count_published(source, data_dir, "test"),
        notes=notes,
        published=True,
    )


def open_digits() -> Dataset:
    """Scikit-learn's 1,797 digits, stored as 0 to 16, with all values scaled to bytes."""
    from sklearn.datasets import load_digits  # here, as its import takes a second

    images, labels = load_digits(return_X_y=True)
    pixels = np.round(images.reshape(-1, 8, 8, 1) * (255 / 16)).astype(np.uint8)
    part = _part("digits", Images(pixels, labels.astype(np.int32)))
    return Dataset("digits", tuple("0123456789"), part, published=True)


def _part(name: str, images: Images) -> Part:
    return Part(ArrayPixels.of(name, images.images, published=True), images.labels)


def _read(source: PublishedSource, data_dir: str | None, split: str) -> Images:
    """Reads a split's files.

    Raises `DataError` if the files are known to be another data set's, which often have the same
    names.
    """
    images = load_published(source, data_dir, split)
    digest = content_digests(images)[0]
    for other in SOURCES.values():
        if digest and other.name != source.name and digest in other.contents.get(split, ())[:1]:
            place = locate(source, data_dir)[split][0].parent
            raise DataError(
                f"{place} holds {other.name}'s files, not {source.name}'s: use "
                f"dataset={other.name}, or put {source.name}'s into a folder {source.name}/"
            )
    return images


def content_digests(images: Images) -> tuple[str, str]:
    """MD5 of images and labels as unpacked IDX files, however they were packed.

    Both are empty for other shapes.
    """
    if images.images.shape[3] != 1:
        return "", ""
    parts = (images.images[..., 0], images.labels.astype(np.uint8))
    hashed = []
    for part in parts:
        digest = hashlib.md5(
            struct.pack(f">BBBB{part.ndim}I", 0, 0, 8, part.ndim, *part.shape),
            usedforsecurity=False,
        )
        digest.update(np.ascontiguousarray(part).data)
        hashed.append(digest.hexdigest())
    return hashed[0], hashed[1]


def _is_published(source: PublishedSource, data_dir: str | None, train: Images) -> bool:
    """True if the training images have the content that was published.

    Files with the published checksums count too.
    """
    if source.contents:
        return content_digests(train) == source.contents["train"]
    paths = locate(source, data_dir)["train"]
    checksums = [file.checksum.split(":") for file in source.files["train"] if file.checksum]
    return len(checksums) == len(paths) and all(
        hash_file(path, algorithm) == digits
        for path, (algorithm, digits) in zip(paths, checksums, strict=True)
    )
