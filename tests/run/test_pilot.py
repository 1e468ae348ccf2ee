"""The length of candidates' trainings, by hand-made curves of the two networks that are tried."""

from __future__ import annotations

import dataclasses
import itertools
import math
import types
from typing import Any

import numpy as np
import pytest

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import preset
from jaxevo.run import pilot
from jaxevo.run.pilot import Length, loss_of_guessing, needed_length
from jaxevo.training.data import TrainingData
from jaxevo.training.fit import Epoch

GUESSING = math.log(2)


def data_of(number: int, subset: int) -> TrainingData:
    """Images of two classes, as many of each, of which some are trained on."""
    labels = np.arange(number) % 2
    return TrainingData(np.zeros((number, 1, 1, 1)), labels, np.arange(subset))  # type: ignore[arg-type]


def evaluator_of(data: TrainingData) -> Any:
    config = replace(SearchConfig(), preset("quick", 5000) | {"label_smoothing": 0.1})
    engine = types.SimpleNamespace(prepare=lambda genome, seed: (genome, seed))
    builder = types.SimpleNamespace(num_classes=2)
    return types.SimpleNamespace(config=config, data=data, engine=engine, builder=builder)


def learning_after(monkeypatch, *epochs: float):
    """Networks whose loss falls to just below half of that of guessing in these epochs."""
    numbers = iter(epochs)

    def fit(prepared, data, config, *, seed, stop_after):
        curve = []
        number = next(numbers)
        assert (config.epochs, config.rate_decay, config.label_smoothing) == (18, 1.0, 0.0)
        for epoch in range(1, config.epochs + 1):
            curve.append(Epoch((0.51 if epoch < number else 0.49) * GUESSING, None))
            if stop_after(curve):
                break
        return types.SimpleNamespace(curve=tuple(curve))

    monkeypatch.setattr(pilot, "fit", fit)


@pytest.mark.parametrize(
    ("number", "epochs", "length"),
    [
        # Of two classes half are guessed: no more is needed, up to three epochs in the mean.
        (1000, (2, 2), None),
        (1000, (1, 5), None),
        # Eight epochs of 200 images in the mean, and half as many again are 2,400: 3 x 800.
        (1000, (10, 6), Length(800, 3, 1600, True)),
        # There are only 500 images: all of them, five times.
        (500, (10, 6), Length(0, 5, 1600, True)),
        (200, (3, 4), Length(0, 6, 700, True)),
        # At most six times as long as the preset's three epochs, whatever is needed.
        (5000, (16, 18), Length(1200, 3, 3400, True)),
        (5000, (math.inf, math.inf), Length(1200, 3, 3600, False)),
        (5000, (2, math.inf), Length(1000, 3, 2000, False)),
    ],
)
def test_length_by_hand(number, epochs, length, monkeypatch):
    learning_after(monkeypatch, *epochs)
    assert needed_length(evaluator_of(data_of(number, 200)), seen=600) == length


def test_a_length_that_was_lowered_may_be_too_short(monkeypatch):
    learning_after(monkeypatch, 2, 2)
    found = needed_length(evaluator_of(data_of(5000, 200)), seen=399)
    assert found == Length(200, 3, 400, True)


def test_a_network_is_not_trained_longer_than_there_is_patience(monkeypatch):
    """What it was trained for counts. Epochs take 15 seconds; the first, which compiles, is free."""
    ticks = itertools.count(step=15)
    monkeypatch.setattr(pilot.time, "perf_counter", lambda: next(ticks))
    learning_after(monkeypatch, 17, 17)
    found = needed_length(evaluator_of(data_of(5000, 200)), seen=600, patience=160)
    assert found == Length(1200, 3, 2400, False)
    learning_after(monkeypatch, 17, 17)
    assert needed_length(evaluator_of(data_of(5000, 200)), seen=600, patience=20) is None


def test_loss_of_guessing_by_hand():
    data = data_of(8, 8)
    assert loss_of_guessing(data, 2) == pytest.approx(math.log(2))
    assert loss_of_guessing(data, 5) == pytest.approx(math.log(2))  # classes without images
    # Images 0, 2, 4 are of class 0, image 1 is of class 1.
    uneven = data.with_subset(np.array([0, 1, 2, 4]))
    by_hand = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert loss_of_guessing(uneven, 2) == pytest.approx(by_hand)
    # Where all classes count alike, guessing is as hard as with equal numbers.
    weights = np.array([2 / 3, 2], np.float32)
    balanced = dataclasses.replace(uneven, class_weights=weights)
    assert loss_of_guessing(balanced, 2) == pytest.approx(math.log(2))
