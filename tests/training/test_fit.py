"""A training that diverges fails, whenever it does."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from jaxevo.config import TrainingConfig
from jaxevo.training.data import TrainingData
from jaxevo.training.fit import DivergedError, Prepared, fit


class FakeState(NamedTuple):
    """A state of one weight."""

    weights: np.ndarray


class FakeTrainer:
    """Gives states and losses that were made before."""

    def __init__(self, epochs: list[tuple[float, float]]):
        self._epochs = epochs

    def epochs(self, *arguments: Any, **settings: Any):
        for weight, loss in self._epochs:
            yield FakeState(np.array([weight])), loss


def trained(*epochs: tuple[float, float]) -> float:
    """The last weight of a training with these weights and losses."""
    prepared = Prepared(cast(Any, FakeTrainer(list(epochs))), cast(Any, None), ())
    state = fit(prepared, cast(TrainingData, None), TrainingConfig(), seed=(0,)).state
    return float(cast(Any, state).weights[0])


def test_the_last_state_is_given_back():
    assert trained((1.0, 0.5), (2.0, 0.25)) == 2.0


def test_a_loss_that_is_not_finite_ends_the_training():
    with pytest.raises(DivergedError, match="loss was nan in epoch 2"):
        trained((1.0, 0.5), (1.0, float("nan")), (1.0, 0.5))


def test_a_last_step_that_spoils_the_weights_is_a_failure():
    """The last loss is of the weights before the last step, so it may be finite."""
    with pytest.raises(DivergedError, match="a weight is not finite"):
        trained((1.0, 0.5), (float("inf"), 0.25))
