"""Loading of images by a data set's name or path, for the rest of the program."""

from __future__ import annotations

import dataclasses

import numpy as np

from jaxevo.datasets.base import MAX_SIDE, DataError
from jaxevo.datasets.class_names import map_classes
from jaxevo.datasets.contents import Content, count_duplicates
from jaxevo.datasets.dataset import Dataset, ReadOptions, make_form
from jaxevo.datasets.images import Images, SearchData
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.opening import Data, open_dataset, same_dataset
from jaxevo.datasets.resize import check_method
from jaxevo.datasets.splits import TEST_FRACTION, split_off, stratified_subset
from jaxevo.datasets.summary import DataSummary


@dataclasses.dataclass(frozen=True)
class TrainData:
    """The whole training split, validation images included, for a final training."""

    images: Images
    class_names: tuple[str, ...]
    form: InputForm
    summary: DataSummary
    content: Content  # of the training split without validation images of its own


@dataclasses.dataclass(frozen=True)
class TestData:
    """Images that a network is scored on, labelled by the positions of its own class names."""

    images: Images
    summary: DataSummary


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
        notes += _skipped(skipped)
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
    summary = _summary(
        opened,
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
            *_skipped(skipped),
            f"{len(validation):,} validation images are trained on too",
        )
    summary = _summary(opened, read.form, notes, num_train=len(images))
    return TrainData(images, opened.class_names, read.form, summary, Content.of(read.images))


def load_train_data(
    dataset: Data, data_dir: str | None = None, *, image_size: int = 0, resize: str = "stretch"
) -> tuple[Images, tuple[str, ...]]:
    """`load_training_data`'s images and class names."""
    data = load_training_data(dataset, data_dir, image_size=image_size, resize=resize)
    return data.images, data.class_names


def load_test_data(
    dataset: Data,
    data_dir: str | None = None,
    *,
    image_shape: tuple[int, int, int] | None = None,
    resize: str = "stretch",
    class_names: tuple[str, ...] | None = None,
    form: InputForm | None = None,
    options: ReadOptions | None = None,
) -> Images:
    """Loads the test split, in the form of the data's own training images unless one is given.

    Args:
        dataset: See `open_dataset`.
        data_dir: See `open_dataset`.
        image_shape: Height, width and channels of the inputs; `None`: as the training images are.
        resize: How; see `resize_images`.
        class_names: The network's classes in the order of its outputs; `None`: the data's own.
        form: How any image becomes an input; then neither `image_shape` nor `resize` counts.
        options: What a person says about the images.
    """
    options = options or ReadOptions()
    opened = open_dataset(dataset, data_dir).divided()
    if form is None:
        check_method(resize)
        # The form that the data's own training images give.
        form, _ = make_form(opened.train.pixels.measure(options.pixel_range), 0, resize)
        if image_shape:
            height, width, channels = image_shape
            form = dataclasses.replace(form, height=height, width=width, channels=channels)
    names = class_names or opened.class_names
    images = _read_test(opened, form, names, options=options).images
    return dataclasses.replace(images, class_names=names)


def load_scored_data(
    dataset: Data,
    data_dir: str | None = None,
    *,
    form: InputForm,
    class_names: tuple[str, ...],
    trained_on: str,
    train_digest: str = "",
    options: ReadOptions | None = None,
) -> TestData:
    """Loads the images that a trained network is scored on.

    That is the test split. Data that come without one are scored whole, unless the network was
    trained on a part of them: then on the rest.

    Args:
        dataset: See `open_dataset`.
        data_dir: See `open_dataset`.
        form: The network's.
        class_names: The network's, in the order of its outputs.
        trained_on: The data set that the network was trained on.
        train_digest: `Content.digest` of its training images, by which they are known under another
            path.
        options: What a person says about the images.
    """
    options = options or ReadOptions()
    opened = open_dataset(dataset, data_dir)
    # The test split, or of data that the network was trained on a part of, the rest.
    if not opened.whole or same_dataset(opened.name, trained_on):
        return _read_test(opened.divided(), form, class_names, options=options)
    if was_trained_on(dataset, data_dir, form=form, train_digest=train_digest, options=options):
        return _read_test(opened.divided(), form, class_names, options=options)
    # Data without a split are scored whole.
    whole = opened.train
    entire = dataclasses.replace(opened, test=lambda: whole, num_test=len(whole))
    return _read_test(entire, form, class_names, options=options, origin="all of them")


def was_trained_on(
    dataset: Data,
    data_dir: str | None = None,
    *,
    form: InputForm,
    train_digest: str,
    options: ReadOptions | None = None,
) -> bool:
    """True if data without an official split are those of a network, under whatever path.

    Args:
        dataset: See `open_dataset`.
        data_dir: See `open_dataset`.
        form: The network's own: in another one its training images have another digest.
        train_digest: `Content.digest` of its training images.
        options: What a person says about the images.
    """
    opened = open_dataset(dataset, data_dir)
    if not train_digest or not opened.whole:
        return False
    # Read the training part in the network's own form, whatever the options say, and compare its
    # digest.
    own = dataclasses.replace(options or ReadOptions(), pixel_range=None, background="")
    images, _ = opened.divided().train.read(form, own)
    return Content.of(images).digest == train_digest


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
    notes = (*sizes, *measured.notes, *opened.notes, *_skipped(skipped))
    return _ReadTrain(images, form, notes)


def _read_test(
    opened: Dataset,
    form: InputForm,
    class_names: tuple[str, ...],
    *,
    options: ReadOptions,
    origin: str = "",
) -> TestData:
    positions = map_classes(
        opened.class_names, class_names, opened.name, class_map=options.class_map
    )
    images, skipped = opened.read_test().read(form, options)
    images = Images(images.images, positions[images.labels])
    summary = _summary(
        opened,
        options.apply(form),
        (*opened.notes, *_skipped(skipped)),
        num_train=0,
        test_from=origin,
    )
    return TestData(images, dataclasses.replace(summary, num_test=len(images)))


def _summary(
    opened: Dataset,
    form: InputForm,
    notes: tuple[str, ...],
    *,
    num_train: int,
    num_validation: int = 0,
    validation_from: str = "",
    test_from: str = "",
) -> DataSummary:
    own = f"a fixed {TEST_FRACTION:.0%} of the images" if opened.fixed_test else "the data's own"
    return DataSummary(
        opened.name,
        num_train,
        num_validation,
        opened.num_test,
        opened.class_names,
        validation_from,
        test_from or own,
        form,
        notes,
    )


def _skipped(names: tuple[str, ...]) -> tuple[str, ...]:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        (f"passed over: {len(names)} files that cannot be read ({', '.join(names[:3])}{more})",)
        if names
        else ()
    )


def _check_sizes(image_size: int, resize: str) -> None:
    if not 0 <= image_size <= MAX_SIDE:
        raise DataError(
            f"image_size={image_size} is not possible: use 0 (as they are) to {MAX_SIDE} pixels"
        )
    check_method(resize)
