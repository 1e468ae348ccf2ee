"""From a data set's name or path to images: the three functions that the rest of the program calls."""

from __future__ import annotations

import dataclasses
import os
import pathlib

import numpy as np

from jaxevo.datasets import folder, npz
from jaxevo.datasets.base import MAX_SIDE, DataError, Images, SearchData
from jaxevo.datasets.prepared import load_published
from jaxevo.datasets.resize import check_method, resize_images
from jaxevo.datasets.sources import SOURCES
from jaxevo.datasets.splits import fixed_test_part, split_off, stratified_subset

NAMES = ("digits", *SOURCES)
_ALIASES = {"svhn": "svhn_cropped"}


def same_dataset(first: str, second: str) -> bool:
    """Whether two names or paths mean the same data."""

    def canonical(dataset: str) -> str:
        name = _ALIASES.get(dataset, dataset)
        return name if name in NAMES else os.path.realpath(os.path.expanduser(dataset))

    return canonical(first) == canonical(second)


def load_search_data(
    dataset: str,
    data_dir: str | None = None,
    *,
    validation_fraction: float = 0.1,
    train_examples: int = 0,
    image_size: int = 0,
    resize: str = "stretch",
    seed: int = 0,
) -> SearchData:
    """Loads the training split and divides it into training and validation images.

    Args:
        dataset: One of `NAMES`, a folder of class folders of images, or an `.npz` file.
        data_dir: Folder with the published files, as `<data_dir>/<name>/<file>`; without them they are downloaded.
        validation_fraction: Part of the training split that only measures fitness; the same whatever `train_examples`.
        train_examples: Take a stratified subset of this many of the other images; 0 takes all.
        image_size: Resize to this many pixels a side; 0 leaves the images as they are.
        resize: How; see `resize_images`.
        seed: Decides which images go where.

    Returns:
        The images; the test split is neither in them nor looked at.

    Raises:
        DataError: The data cannot be had or not be divided like that.
    """
    if not 0 < validation_fraction < 1:
        raise DataError(f"validation_fraction={validation_fraction} is not possible: it lies in (0, 1)")
    for name, value in (("train_examples", train_examples), ("seed", seed)):
        if value < 0:
            raise DataError(f"{name}={value} is not possible: the smallest value is 0")
    whole = _read_split(dataset, data_dir, "train", _square(image_size), resize)
    labels = whole.images.labels
    rest, validation = split_off(labels, validation_fraction, seed, f"the validation part of {dataset}")
    if train_examples:
        rest = rest[stratified_subset(labels[rest], train_examples, seed)]
    name = _ALIASES.get(dataset, dataset)
    return SearchData(name, whole.finish(rest), whole.finish(validation), whole.class_names)


def load_train_data(
    dataset: str, data_dir: str | None = None, *, image_size: int = 0, resize: str = "stretch"
) -> tuple[Images, tuple[str, ...]]:
    """Loads the whole training split, validation images included, and the class names; for a final training."""
    whole = _read_split(dataset, data_dir, "train", _square(image_size), resize)
    return whole.finish(), whole.class_names


def load_test_data(
    dataset: str,
    data_dir: str | None = None,
    *,
    image_shape: tuple[int, int, int] | None = None,
    resize: str = "stretch",
    class_names: tuple[str, ...] | None = None,
) -> Images:
    """Loads the test split: the only function that reads it.

    Args:
        dataset: As for `load_search_data`; may be other data than the network was trained on.
        data_dir: As for `load_search_data`.
        image_shape: Height, width and channels that the network takes; `None` leaves the images as they are.
        resize: How; see `resize_images`.
        class_names: The network's classes, to check that the data have as many.

    Returns:
        The images [M, *image_shape].
    """
    whole = _read_split(dataset, data_dir, "test", image_shape[:2] if image_shape else None, resize)
    if class_names is not None and len(class_names) != len(whole.class_names):
        raise DataError(
            f"{dataset} has {len(whole.class_names)} classes and the network {len(class_names)}: "
            "test it on data with the same classes"
        )
    return whole.finish(channels=image_shape[2] if image_shape else 0)


@dataclasses.dataclass(frozen=True)
class _Whole:
    """A whole split as it was read, and the resizing that is still to be done."""

    images: Images
    class_names: tuple[str, ...]
    size: tuple[int, int] | None
    method: str

    def finish(self, indices: np.ndarray | None = None, channels: int = 0) -> Images:
        """The images at `indices` (all of them without), resized; 0 channels leaves their number as it is."""
        part = self.images if indices is None else self.images.take(indices)
        height, width, own = part.images.shape[1:]
        if self.size is None and channels in (0, own):
            return part
        new_height, new_width = self.size or (height, width)
        shape = (new_height, new_width, channels or own)
        return Images(resize_images(part.images, shape, self.method), part.labels)


def _square(image_size: int) -> tuple[int, int] | None:
    if not 0 <= image_size <= MAX_SIDE:
        raise DataError(f"image_size={image_size} is not possible: use 0 (as they are) to {MAX_SIDE} pixels")
    return (image_size, image_size) if image_size else None


def _read_split(dataset: str, data_dir: str | None, split: str, size: tuple[int, int] | None, method: str) -> _Whole:
    check_method(method)
    name = _ALIASES.get(dataset, dataset)
    if name == "digits":
        return _Whole(*_read_digits(split), size, method)
    if name in SOURCES:
        return _Whole(load_published(SOURCES[name], data_dir, split), SOURCES[name].class_names, size, method)
    path = pathlib.Path(os.path.expanduser(dataset))
    if os.path.isdir(path):
        listing = folder.list_split(path, split)
        # Resized while reading, as the images may differ in size; boxing them once more would change them.
        return _Whole(folder.read_listing(listing, size, method), listing.class_names, None, "stretch")
    if path.suffix == ".npz" and os.path.isfile(path):
        return _Whole(*_read_npz(path, split), size, method)
    raise DataError(
        f"dataset={dataset} is not known: use {', '.join(NAMES)}, a folder with a folder of images for each class, "
        "or an .npz file"
    )


def _read_digits(split: str) -> tuple[Images, tuple[str, ...]]:
    from sklearn.datasets import load_digits  # here, as its import takes a second

    images, labels = load_digits(return_X_y=True)
    pixels = np.round(images.reshape(-1, 8, 8, 1) * (255 / 16)).astype(np.uint8)
    return _without_official_split(Images(pixels, labels.astype(np.int32)), split, "digits"), tuple("0123456789")


def _read_npz(path: pathlib.Path, split: str) -> tuple[Images, tuple[str, ...]]:
    has_test = "x_test" in npz.array_names(path)
    part = split if has_test else "train"
    images, labels = npz.read_part(path, part)
    known = np.unique(npz.read_labels(path, "train") if part == "test" else labels)
    if len(known) < 2:
        raise DataError(f"{path} has {len(known)} class in y_train: images of at least 2 are needed")
    data = Images(images, npz.number_classes(path, labels, known))
    if not has_test:
        data = _without_official_split(data, split, str(path))
    return data, tuple(map(str, known.tolist()))


def _without_official_split(images: Images, split: str, name: str) -> Images:
    train, test = fixed_test_part(images.labels, name)
    return images.take(test if split == "test" else train)
