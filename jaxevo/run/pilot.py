"""How long a candidate is to be trained until its fitness tells something of it.

As long as a network has not begun to learn, its loss is that of guessing, and says little of how
good it will become: on SVHN a training of 60 steps ordered genomes with Kendall's tau 0.2, one of
276 steps with 0.5 (docs/strategies.md). So two random candidates are trained first.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np

from jaxevo.config import TrainingConfig
from jaxevo.run.estimate import random_candidate
from jaxevo.run.evaluator import Evaluator
from jaxevo.training.data import TrainingData
from jaxevo.training.fit import Epoch, fit

LEARNED = 0.5  # of the loss of guessing: an epoch of less shows that learning has begun
BEYOND = 1.5  # times as long as until then, candidates are trained
# Of trainings that are made longer: where the rate falls from the start they would not begin.
SCHEDULE = {"schedule": "cosine", "warmup": 0.2}
LONGEST = 6  # times as long as it was, a training becomes at most
PATIENCE = 90.0  # seconds, after which a network is not trained further
_PILOTS = 2


@dataclasses.dataclass(frozen=True)
class Length:
    """How long candidates are trained.

    Attributes:
        train_examples: Images of an epoch; 0: all.
        epochs: Passes over them.
        tried: Images that the two networks were trained on, in the mean.
        learned: Whether both have begun to learn by then; otherwise one was not trained longer.
    """

    train_examples: int
    epochs: int
    tried: int
    learned: bool


def needed_length(evaluator: Evaluator, *, seen: int, patience: float = PATIENCE) -> Length | None:
    """The length of training that these images need; None: what a candidate sees is enough.

    More images come first, and more epochs where there are no more.

    Args:
        evaluator: Trains by the length of the preset.
        seen: Images that a candidate would see in all.
        patience: Seconds of each of the two trainings; where they do not suffice to see more,
            `seen` counts as enough.

    Raises whatever a training may raise.
    """
    training, data = evaluator.config.training, evaluator.data
    longest = LONGEST * training.epochs
    found = [
        _epochs_to_learn(evaluator, sample, longest, patience=patience) for sample in range(_PILOTS)
    ]
    mean = float(np.mean([epochs for epochs, _ in found]))
    tried = round(mean * len(data.subset))
    if tried <= seen:
        return None
    wanted = round(min(BEYOND * mean, longest) * len(data.subset))
    learned = all(learned for _, learned in found)
    return length_of(wanted, training.epochs, len(data.labels), tried=tried, learned=learned)


def length_of(wanted: int, epochs: int, available: int, *, tried: int, learned: bool) -> Length:
    """The length by which a candidate sees so many images, of those there are."""
    examples = min(available, math.ceil(wanted / epochs))
    every = examples == available
    return Length(0 if every else examples, math.ceil(wanted / examples), tried, learned)


def _epochs_to_learn(
    evaluator: Evaluator, sample: int, longest: int, *, patience: float
) -> tuple[int, bool]:
    """Epochs that a random candidate was trained for, and whether it has begun to learn by then.

    The first epoch is not timed, as it may compile.
    """
    config = evaluator.config
    guessing = loss_of_guessing(evaluator.data, evaluator.builder.num_classes)
    ends: list[float] = []

    def learned(curve: Sequence[Epoch]) -> bool:
        return curve[-1].loss <= LEARNED * guessing

    def enough(curve: Sequence[Epoch]) -> bool:
        ends.append(time.perf_counter())
        return learned(curve) or ends[-1] - ends[0] > patience

    prepared = evaluator.engine.prepare(random_candidate(config, sample), (config.seed, sample))
    steady = _steady(config.training, longest)
    trained = fit(prepared, evaluator.data, steady, seed=(config.seed, sample), stop_after=enough)
    return len(trained.curve), learned(trained.curve)


def _steady(training: TrainingConfig, epochs: int) -> TrainingConfig:
    """A training so many epochs long, whose rate rises first and does not fall."""
    steady = {"schedule": "exponential", "rate_decay": 1.0, "warmup": SCHEDULE["warmup"]}
    return dataclasses.replace(training, epochs=epochs, label_smoothing=0.0, **steady)


def loss_of_guessing(data: TrainingData, num_classes: int) -> float:
    """The mean loss of a network that knows nothing but how frequent the classes are, in nats."""
    counts = np.bincount(np.asarray(data.labels)[data.subset], minlength=num_classes)
    shares = counts * (1.0 if data.class_weights is None else data.class_weights)
    shares = shares[shares > 0] / shares.sum()
    return float(-(shares * np.log(shares)).sum())
