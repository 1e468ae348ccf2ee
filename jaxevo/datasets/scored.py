"""Loading of images that a trained network is scored on, by a data set's name or path."""

from __future__ import annotations

import dataclasses

from jaxevo.datasets.class_names import map_classes
from jaxevo.datasets.contents import Content
from jaxevo.datasets.dataset import Dataset, ReadOptions, make_form
from jaxevo.datasets.images import Images
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.opening import Data, open_dataset, same_dataset
from jaxevo.datasets.resize import check_method
from jaxevo.datasets.summary import DataSummary, skipped_notes


@dataclasses.dataclass(frozen=True)
class TestData:
    """Images that a network is scored on, labelled by the positions of its own class names."""

    images: Images
    summary: DataSummary


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
    return dataclasses.replace(images, class_names=names, form=form)


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
    summary = opened.summarize(
        options.apply(form),
        (*opened.notes, *skipped_notes(skipped)),
        num_train=0,
        test_from=origin,
    )
    return TestData(images, dataclasses.replace(summary, num_test=len(images)))
