"""The test images of a trained network, also of other data than those it was trained on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from jaxevo.datasets import (
    METHODS,
    InputForm,
    ReadOptions,
    TestData,
    load_scored_data,
    open_dataset,
    same_dataset,
    was_trained_on,
)
from jaxevo.datasets.values import BYTES
from jaxevo.errors import InputError
from jaxevo.run.words import known_note
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source


def load_tests(
    source: Source,
    form: InputForm,
    dataset: str,
    *,
    data_dir: str | None = None,
    options: ReadOptions | None = None,
    trained_before: bool = False,
) -> dict[str, TestData]:
    """Test images by the way they were resized.

    Images of other data and of another size come in both ways, as that decides much.

    Args:
        source: What the network was trained on.
        form: How any image becomes its input.
        dataset: The data to score.
        data_dir: Folder with published files.
        options: How the data's images are to be understood.
        trained_before: Images of the name that was trained on may have changed since. Where they
            come without a test split, another fifth would be the test: they are refused then.

    Raises:
        InputError: The images cannot be used, or have changed.
    """
    methods: Sequence[str] = (form.resize,)
    own = same_name = same_dataset(dataset, source.dataset)
    # Know images by their content under another name, or again.
    if trained_before or not same_name:
        same_images = was_trained_on(
            dataset, data_dir, form=form, train_digest=source.content.digest, options=options
        )
        own = own or same_images
        changed = same_name and not same_images and bool(source.content.digest)
        if changed and open_dataset(dataset, data_dir).whole:
            raise InputError(
                f"{dataset} has other images than those the network was trained on, of which its "
                "test images may be some: give test images of their own by another dataset"
            )
    if not own:
        # Both ways of resizing, unless the images have the size of the inputs already.
        sides = open_dataset(dataset, data_dir).train.pixels.measure(BYTES).sides
        methods = methods if sides == ((form.height, form.width),) else METHODS
    return {
        method: load_scored_data(
            dataset,
            data_dir,
            form=dataclasses.replace(form, resize=method),
            class_names=source.class_names,
            trained_on=dataset if own else source.dataset,
            options=options,
        )
        for method in methods
    }


def trained_on_note(classifier: Classifier, tests: Mapping[str, TestData]) -> str:
    """A sentence on test images of `load_tests` that a network was trained on; or empty.

    Its training images are known in its own form only.
    """
    own = tests[classifier.form.resize].images
    return known_note(*classifier.source.content.count_known(own))
