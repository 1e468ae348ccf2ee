"""Several candidates in one step give what each gives alone, on one device and on two."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from builders_training import BUILDER, SEEDS, THREE, TRAINING, train_three, universal_engine
from conftest import REPOSITORY

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import RECIPES
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.trial import Trial
from jaxevo.training.batched_trainer import BatchedTrainer
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import UniversalEngine
from jaxevo.training.fit import fit

SUBSET = np.arange(96)


@pytest.fixture(scope="module")
def engine() -> UniversalEngine:
    return universal_engine()


@pytest.fixture(scope="module")
def batched(engine: UniversalEngine) -> BatchedTrainer:
    return BatchedTrainer(engine.trainer(BUILDER.network), 4)


@pytest.fixture(scope="module")
def data(few_digits) -> TrainingData:
    return TrainingData.of(few_digits[0].take(np.arange(100)), SUBSET)


@pytest.fixture(scope="module")
def alone(engine, data, few_digits) -> list[float]:
    accuracies = []
    for genome, seed in zip(THREE, SEEDS, strict=True):
        prepared = engine.prepare(genome, seed)
        weights = fit(prepared, data, TRAINING, seed=seed).state.weights
        accuracies.append(
            prepared.trainer.measure(weights, prepared.inputs, few_digits[1]).accuracy
        )
    return accuracies


def test_each_of_several_candidates_comes_out_as_alone(engine, batched, data, few_digits, alone):
    accuracies, losses = train_three(engine, batched, data, few_digits[1])
    assert np.isfinite(losses).all()
    # two of 100 images whose logits are all but equal
    np.testing.assert_allclose(accuracies, alone, atol=0.02)
    assert len(set(alone)) > 1


@pytest.mark.parametrize("places", [(2, 0, 1), (1,), (2, 1)])
def test_place_and_company_change_no_bit(engine, batched, data, few_digits, places):
    """A run that is resumed in the middle of a step groups its candidates in another way."""
    everyone = train_three(engine, batched, data, few_digits[1])
    some = train_three(engine, batched, data, few_digits[1], places=places)
    for all_values, values in zip(everyone, some, strict=True):
        np.testing.assert_array_equal(values, [all_values[place] for place in places])


def losses_alone(engine, data, config) -> list[float]:
    """The mean loss of each genome, trained by itself."""
    pairs = zip(THREE, SEEDS, strict=True)
    return [
        np.mean(fit(engine.prepare(genome, seed), data, config, seed=seed).losses)
        for genome, seed in pairs
    ]


def test_each_is_trained_by_a_recipe_as_alone(engine, batched, data, few_digits):
    modern = dataclasses.replace(TRAINING, **RECIPES["modern"])
    _, losses = train_three(engine, batched, data, few_digits[1], TRAINING)
    _, modern_losses = train_three(engine, batched, data, few_digits[1], modern)
    np.testing.assert_allclose(modern_losses, losses_alone(engine, data, modern), rtol=1e-3)
    assert np.abs(np.subtract(modern_losses, losses)).max() > 1e-2


@pytest.mark.slow
def test_each_is_trained_with_class_weights_as_alone(engine, data, few_digits):
    weighted = dataclasses.replace(data, class_weights=np.linspace(0.5, 3, 10, dtype=np.float32))
    engine = universal_engine()  # with programs of its own: weights are one argument more
    _, losses = train_three(
        engine, BatchedTrainer(engine.trainer(BUILDER.network), 4), weighted, few_digits[1]
    )
    np.testing.assert_allclose(losses, losses_alone(engine, weighted, TRAINING), rtol=1e-3)


def test_a_loss_that_was_not_finite_once_is_told(engine, batched, data, few_digits):
    diverging = dataclasses.replace(TRAINING, learning_rate=1e38)
    _, losses = train_three(engine, batched, data, few_digits[1], diverging)
    assert not np.isfinite(losses).any()


def test_an_evaluator_trains_so_many_in_one_step(data, few_digits, alone):
    settings = {"engine": "universal", "mating_pool": "survivors", "candidates_per_step": 4}
    settings |= {"channels": 2, "num_normal_cells": 1, "max_nodes": 3}
    config = replace(SearchConfig(), settings | dataclasses.asdict(TRAINING))
    trials = [Trial(genome, seed) for genome, seed in zip(THREE, SEEDS, strict=True)]
    evaluator = Evaluator(config, BUILDER, data, validation=few_digits[1])
    evaluations = evaluator.evaluate_several(trials)
    assert [evaluation.failure for evaluation in evaluations] == [None] * 3
    accuracies = [evaluation.accuracy for evaluation in evaluations]
    np.testing.assert_allclose(accuracies, alone, atol=0.02)
    # The step's time is shared alike.
    assert {"train", "evaluate"} <= evaluations[0].seconds.keys()
    assert evaluations[0].seconds == evaluations[1].seconds == evaluations[2].seconds


TWO_DEVICES = f"""
import sys; sys.path.insert(0, {str(REPOSITORY / "tests")!r})
import json, jax, numpy as np
from builders_training import train_three, universal_engine
from jaxevo.datasets import load_search_data
from jaxevo.training.batched_trainer import BatchedTrainer
from jaxevo.training.data import TrainingData
digits = load_search_data("digits")
engine = universal_engine()
data = TrainingData.of(digits.train.take(np.arange(100)), np.arange(96))
validation = digits.validation.take(np.arange(100))
batched = BatchedTrainer(engine.trainer(BUILDER.network), 4)
accuracies, _ = train_three(engine, batched, data, validation)
print(json.dumps([len(jax.devices()), *accuracies]))
"""


@pytest.mark.slow
def test_they_are_divided_among_two_devices(alone, launch_environment):
    environment = launch_environment | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    command = [sys.executable, "-c", TWO_DEVICES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    devices, *several = json.loads(done.stdout.splitlines()[-1])
    assert devices == 2
    np.testing.assert_allclose(several, alone, atol=0.02)
