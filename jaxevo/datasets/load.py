"""Loading of images to search and to train on, by a data set's name or path."""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxevo.datasets.base import MAX_SIDE, DataError
from jaxevo.datasets.contents import Content, count_duplicates
from jaxevo.datasets.dataset import Dataset, ReadOptions, make_form
from jaxevo.datasets.images import Images, SearchData
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.opening import Data, open_dataset
from jaxevo.datasets.resize import check_method
from jaxevo.datasets.splits import split_off, stratified_subset
from jaxevo.datasets.summary import DataSummary, skipped_notes


@dataclasses.dataclass(frozen=True)
class TrainData:
    """The whole training split, validation images included, for a final training."""

    images: Images
    class_names: tuple[str, ...]
    form: InputForm
    summary: DataSummary
    content: Content  # of the training split without validation images of its own


def load_search_data(
    dataset: Data,
    data_dir: str | None = None,
    *,
    validation_fraction: float = 0.1,
    train_examples: int = 0,
    image_size: int = 0,
    resize: str = "stretch",
    seed: int = 0,
    options: ReadOptions | None = None,
) -> SearchData:
    """Loads the training split, divided into training and validation images.

    Data with validation images of their own are not divided.

    Args:
        dataset: See `open_dataset`.
        data_dir: See `open_dataset`.
        validation_fraction: Part of the training split that nothing is trained on; the same
            whatever `train_examples`.
        train_examples: Take a stratified subset of this many of the other images; 0 takes all.
        image_size: Resize to this many pixels a side; 0 leaves the images as they are if they are
            alike and small.
        resize: How; see `resize_images`.
        seed: Decides which images go where.
        options: What a person says about the images.

    Returns:
        The images; the test split is neither in them nor looked at.

    Raises:
        DataError: The data cannot be had or not be divided like that.
    """
    # Refuse impossible numbers before anything is read.
    if not 0 < validation_fraction < 1:
        raise DataError(
            f"validation_fraction={validation_fraction} is not possible: it lies in (0, 1)"
        )
    for name, value in (("train_examples", train_examples), ("seed", seed)):
        if value < 0:
            raise DataError(f"{name}={value} is not possible: the smallest value is 0")
    options = options or ReadOptions()
    _check_sizes(image_size, resize)
    opened = open_dataset(dataset, data_dir).divided()
    read = _read_train(opened, image_size, resize, options=options)
    # Take the data's own validation split, or split one off the training images.
    rest, notes = np.arange(len(read.images)), list(read.notes)
    if opened.validation is not None:
        validation, skipped = opened.validation.read(read.form, options)
        notes += skipped_notes(skipped)
        origin = "the data's own"
    else:
        what = f"the validation part of {opened.name}"
        rest, off = split_off(
            read.images.labels, validation_fraction, seed, what=what, class_names=opened.class_names
        )
        validation, origin = (
            read.images.take(off),
            f"{validation_fraction:.0%} of the training images",
        )
    # Count repeated images before the subset is drawn: its size does not change the number.
    repeated = count_duplicates(validation, read.images.take(rest))
    if train_examples:
        rest = rest[stratified_subset(read.images.labels[rest], train_examples, seed)]
    if repeated:
        notes.append(
            f"{repeated} validation images are training images too, which flatters their accuracy"
        )
    # Put the images together with a summary of the data.
    train = read.images.take(rest)
    summary = opened.summarize(
        read.form,
        tuple(notes),
        num_train=len(train),
        num_validation=len(validation),
        validation_from=origin,
    )
    content = Content.of(read.images)
    return SearchData(
        opened.name, train, validation, opened.class_names, read.form, summary, content
    )


def load_training_data(
    dataset: Data,
    data_dir: str | None = None,
    *,
    image_size: int = 0,
    resize: str = "stretch",
    options: ReadOptions | None = None,
) -> TrainData:
    """Loads the whole training split, validation images included; for a final training."""
    options = options or ReadOptions()
    _check_sizes(image_size, resize)
    opened = open_dataset(dataset, data_dir).divided()
    read = _read_train(opened, image_size, resize, options=options)
    images = read.images
    notes = read.notes
    if opened.validation is not None:
        validation, skipped = opened.validation.read(read.form, options)
        # Validation images of the data's own are trained on too.
        images = Images(
            np.concatenate([images.images, validation.images]),
            np.concatenate([images.labels, validation.labels]),
        )
        notes = (
            *notes,
            *skipped_notes(skipped),
            f"{len(validation):,} validation images are trained on too",
        )
    summary = opened.summarize(read.form, notes, num_train=len(images))
    return TrainData(images, opened.class_names, read.form, summary, Content.of(read.images))


def load_train_data(
    dataset: Data, data_dir: str | None = None, *, image_size: int = 0, resize: str = "stretch"
) -> tuple[Images, tuple[str, ...]]:
    """`load_training_data`'s images and class names."""
    data = load_training_data(dataset, data_dir, image_size=image_size, resize=resize)
    return data.images, data.class_names


@dataclasses.dataclass(frozen=True)
class _ReadTrain:
    images: Images
    form: InputForm
    notes: tuple[str, ...]


def _read_train(
    opened: Dataset, image_size: int, resize: str, *, options: ReadOptions
) -> _ReadTrain:
    measured = opened.train.pixels.measure(options.pixel_range)
    form, note = make_form(measured, image_size, resize)
    form = options.apply(form)
    images, skipped = opened.train.read(form, options)
    # A class all of whose images were passed over cannot be learned.
    lost = np.setdiff1d(opened.train.labels, images.labels)
    if lost.size:
        raise DataError(
            f"{opened.name} has no readable training image of class {opened.class_names[lost[0]]}"
        )
    sizes = (note,) if note else ()
    notes = (*sizes, *measured.notes, *opened.notes, *skipped_notes(skipped))
    return _ReadTrain(images, form, notes)


def _check_sizes(image_size: int, resize: str) -> None:
    if not 0 <= image_size <= MAX_SIDE:
        raise DataError(
            f"image_size={image_size} is not possible: use 0 (as they are) to {MAX_SIDE} pixels"
        )
    check_method(resize)
