"""Who sees which image: the one place where training, validation and test images are told apart.

All functions take labels ([M] integers) and give sorted indices into them, so that images keep
their order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.seeds import Stream, generator

TEST_FRACTION = 0.2
_TEST_SEED = 20  # never the run's: data without an official split always has the same test images


def split_off(
    labels: np.ndarray,
    fraction: float,
    seed: int,
    *,
    what: str,
    class_names: Sequence[str] = (),
    remedy: str = "choose another validation_fraction or add images",
) -> tuple[np.ndarray, np.ndarray]:
    """A seeded, stratified partition with every class on both sides.

    Args:
        labels: [M].
        fraction: Part to split off, in (0, 1).
        seed: Decides which images.
        what: Names the data and the part in error messages.
        class_names: Name the labels in error messages.
        remedy: What a person can do where the images are too few.

    Returns:
        Indices of the rest and of the part split off.
    """
    from sklearn.model_selection import train_test_split  # here, as its import takes a second

    # Refuse divisions that leave a side without some class.
    classes, counts = np.unique(labels, return_counts=True)
    part = math.ceil(len(labels) * fraction)
    if len(counts) == 0 or counts.min() < 2:
        names = [str(class_names[label] if class_names else label) for label in classes]
        name = names[counts.argmin()] if names else "any"
        raise DataError(
            f"{what}: class {name} has fewer than 2 images to divide: add images or leave the "
            "class out"
        )
    if min(part, len(labels) - part) < len(classes):
        raise DataError(
            f"{what}: {part} of {len(labels)} images (a fraction of {fraction}) cannot be split "
            f"off when there are {len(classes)} classes, each side needs at least one a class: "
            f"{remedy}"
        )
    rest, off = train_test_split(
        np.arange(len(labels)), test_size=part, stratify=labels, random_state=seed % 2**32
    )
    return _complete(labels, np.array(rest), np.array(off))


def _complete(
    labels: np.ndarray, rest: np.ndarray, off: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Both sides sorted, with every class in each.

    Rounding leaves small classes out of a side, which gets one image of them in exchange for
    another.
    """
    sides = [np.sort(rest), np.sort(off)]
    for lacking, other in ((0, 1), (1, 0)):
        for label in np.setdiff1d(labels, labels[sides[lacking]]):
            gets = sides[other][labels[sides[other]] == label][0]
            present, counts = np.unique(labels[sides[lacking]], return_counts=True)
            gives = sides[lacking][labels[sides[lacking]] == present[counts.argmax()]][0]
            sides[lacking] = np.sort(np.append(sides[lacking][sides[lacking] != gives], gets))
            sides[other] = np.sort(np.append(sides[other][sides[other] != gets], gives))
    return sides[0], sides[1]


def fixed_test_part(
    labels: np.ndarray, name: str, class_names: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of the training and the test images of data that come without an official split."""
    return split_off(
        labels,
        TEST_FRACTION,
        _TEST_SEED,
        what=f"the test part of {name}",
        class_names=class_names,
        remedy="add images, or give test images of your own (docs/data.md)",
    )


def training_subset(labels: np.ndarray, train_examples: int, seed: int) -> np.ndarray:
    """The images trained on: a stratified subset of `train_examples`, or all for 0."""
    return (
        stratified_subset(labels, train_examples, seed)
        if train_examples
        else np.arange(len(labels))
    )


def stratified_subset(labels: np.ndarray, size: int, seed: int) -> np.ndarray:
    """A seeded, stratified subset of `size` images.

    A smaller subset is part of a larger one of the same seed.
    """
    num_classes = len(np.unique(labels))
    if size > len(labels):
        raise DataError(
            f"train_examples={size} is not possible: {len(labels)} images are left to train on; "
            "use 0 for all of them"
        )
    if size < num_classes:
        raise DataError(
            f"train_examples={size} is not possible: use at least 1 for each of the {num_classes} "
            "classes"
        )
    order = generator(Stream.SUBSET, seed).permutation(len(labels))
    # Each image's rank in its class as a fraction of the class: taking the lowest first draws from
    # all classes evenly, and the first of every class (rank 0) comes before any second.
    rank = np.empty(len(labels))
    for label in np.unique(labels):
        members = order[labels[order] == label]
        rank[members] = np.arange(len(members)) / len(members)
    chosen = order[np.argsort(rank[order], kind="stable")[:size]]
    return np.sort(chosen)
