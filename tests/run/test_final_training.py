"""Trainings to the end: their curve, interrupted or not, and their weights of classes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from builders import SMALL, chain

from jaxevo.config import replace
from jaxevo.networks.baselines import Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.final_training import FinalNetwork, FinalTrainer
from jaxevo.run.reporter import Silent
from jaxevo.training.data import TrainingData, balanced_weights

CONFIG = replace(SMALL, {"final_epochs": 4, "final_learning_rate": 0.02})
SEED = (0, 2)


@pytest.fixture(scope="module")
def evaluator(few_digits) -> Evaluator:
    train, validation = few_digits
    builder = NetworkBuilder(CONFIG.network, (8, 8, 1), 10)
    return Evaluator(CONFIG, builder, TrainingData.of(train, np.arange(64)), validation=validation)


def train(
    evaluator: Evaluator, path, model: Any = None, *, reporter: Any = None, **identity: Any
) -> FinalNetwork:
    trainer = FinalTrainer(evaluator.config, evaluator, reporter or Silent())
    model = model or chain(2)
    return trainer.train(model, SEED, path, stage="final training", identity=identity)


class Interrupting(Silent):
    """Interrupts after so many epochs."""

    def __init__(self, epochs: int):
        super().__init__()
        self.epochs = epochs

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        if done == self.epochs:
            raise KeyboardInterrupt


@pytest.mark.parametrize("model", [chain(2), Baseline("small_cnn")], ids=["genome", "small CNN"])
def test_the_curve_has_a_loss_and_an_accuracy_an_epoch(tmp_path, evaluator, few_digits, model):
    final = train(evaluator, tmp_path / "whole", model)
    losses, accuracies = zip(*final.curve, strict=True)
    assert len(losses) == 4 and losses[-1] < losses[0]
    predicted = final.predict(few_digits[1].images)
    assert accuracies[-1] == np.mean(predicted == few_digits[1].labels)
    # Interrupted it is the same, of all of its sessions.
    with pytest.raises(KeyboardInterrupt):
        train(evaluator, tmp_path / "resumed", model, reporter=Interrupting(1))
    resumed = train(evaluator, tmp_path / "resumed", model)
    assert resumed.curve == final.curve
    pairs = zip(jax.tree.leaves(resumed.weights), jax.tree.leaves(final.weights), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def test_a_checkpoint_of_another_training_is_left_alone(tmp_path, evaluator):
    train(evaluator, tmp_path, id=1)
    told: list[int] = []

    class Telling(Silent):
        def training(self, stage, done, total, *, note):
            told.append(done)

    train(evaluator, tmp_path, reporter=Telling(), id=1)
    assert told == []
    train(evaluator, tmp_path, reporter=Telling(), id=2)
    assert told == [1, 2, 3, 4]


def test_classes_are_weighed_as_in_the_search(tmp_path, evaluator, few_digits):
    train_images, validation = few_digits
    weights = balanced_weights(train_images.labels, 10)
    data = TrainingData.of(train_images, np.arange(64), weights)
    weighed = Evaluator(CONFIG, evaluator.builder, data, validation=validation)
    plain = train(evaluator, tmp_path / "plain").curve[0].loss
    assert train(weighed, tmp_path / "weighed").curve[0].loss != plain
    model = Baseline("small_cnn")
    plain = train(evaluator, tmp_path / "plain_cnn", model).curve[0].loss
    assert train(weighed, tmp_path / "weighed_cnn", model).curve[0].loss != plain
