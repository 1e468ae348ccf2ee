"""Seeds of trainings: no two trainings of a run share their randomness.

A seed is a tuple of integers. NumPy draws the initial weights from it, and from it with the epoch's
number the order of images and the key of dropout and augmentation.
"""

from __future__ import annotations

import enum

Seed = tuple[int, ...]


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
