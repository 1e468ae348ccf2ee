"""Seeds, and the generators made from them: no two uses of randomness in a run share it.

A seed is a tuple of integers. Each use has a stream of its own (`Stream`), so that what is drawn
for one says nothing of what is drawn for another.
"""

from __future__ import annotations

import enum

import numpy as np

Seed = tuple[int, ...]

# The way in which generators come from seeds. A run keeps the number in its folder, and goes on
# only with the same one. 1 (until version 0.3.0) gave one generator to several uses.
STREAMS = 2
# The same of searches with a model of fitness whose layouts are genes: since version 0.11 the model
# sees more of them, and so draws otherwise.
GUIDED_LAYOUT_STREAMS = 3


class Stream(enum.IntEnum):
    """A use of randomness."""

    CANDIDATE = 1  # a genome: seed of the run, id, attempt
    WEIGHTS = 2  # initial weights: seed of the training
    EPOCH = 3  # order of images, dropout, augmentation: seed of the training, epoch
    SUBSET = 4  # the images trained on: seed of the run
    ESTIMATE = 5  # genomes that are timed: seed of the run, number


class Purpose(enum.IntEnum):
    """The purpose of a training, the second number of its seed."""

    SEARCH = 0
    RETRAINING = 1
    FINAL = 2
    KEPT = 3
    BASELINE = 4


def search_seed(seed: int, individual_id: int) -> Seed:
    """Seed of a candidate's training in the search."""
    return (seed, Purpose.SEARCH, individual_id)


def retraining_seed(seed: int, individual_id: int, repeat: int) -> Seed:
    """Seed of a fresh training of one of the best; `repeat` counts from 0."""
    return (seed, Purpose.RETRAINING, individual_id, repeat)


def final_seed(seed: int) -> Seed:
    """Seed of the winner's final training."""
    return (seed, Purpose.FINAL)


def kept_seed(seed: int, individual_id: int) -> Seed:
    """Seed of the final training of another individual that is kept beside the winner."""
    return (seed, Purpose.KEPT, individual_id)


def baseline_seed(seed: int) -> Seed:
    """Seed of the hand-designed network that is trained for comparison."""
    return (seed, Purpose.BASELINE)


def generator(stream: Stream, seed: int | Seed) -> np.random.Generator:
    """The generator of one use.

    Args:
        stream: The use.
        seed: Integers of at least 0.
    """
    numbers = (seed,) if isinstance(seed, int) else seed
    # NumPy takes [5] and [5, 0] for the same seed, so the length is part of it.
    return np.random.default_rng([stream, len(numbers), *numbers])
