"""Several candidates in one step give what each gives alone, on one device and on two."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY, random_genomes

from jaxevo import config as configs
from jaxevo.config import SearchConfig, TrainingConfig
from jaxevo.config.presets import RECIPES
from jaxevo.errors import InputError
from jaxevo.run.evaluator import Evaluation, Evaluator, fit
from jaxevo.training.engines import Problem

SETTINGS = {
    "channels": 2,
    "num_normal_cells": 1,
    "max_nodes": 2,
    "epochs": 2,
    "batch_size": 16,
    "learning_rate": 0.01,
    "engine": "universal",
    "mating_pool": "survivors",
    "candidates_per_step": 4,
}
CONFIG: SearchConfig = configs.replace(SearchConfig(), SETTINGS)


GENOMES, SEEDS, SUBSET = random_genomes(3, 1, 2, seed=4), [(0, n) for n in range(3)], np.arange(64)


def make(train, validation) -> Evaluator:
    return Evaluator(CONFIG, Problem(CONFIG.network, (8, 8, 1), 10), train, validation)


def together(train, validation) -> list[Evaluation]:
    return make(train, validation).evaluate_several(GENOMES, SEEDS, SUBSET)


@pytest.fixture(scope="module")
def evaluator(few_digits) -> Evaluator:
    return make(*few_digits)


@pytest.fixture(scope="module")
def alone(evaluator) -> list[float]:
    return [evaluator.evaluate(g, seed, SUBSET).accuracy for g, seed in zip(GENOMES, SEEDS, strict=True)]


def test_each_of_several_candidates_comes_out_as_alone(evaluator, alone):
    several = evaluator.evaluate_several(GENOMES, SEEDS, SUBSET)
    assert [evaluation.failure for evaluation in several] == [None] * 3
    # two of 100 images whose logits are all but equal
    np.testing.assert_allclose([evaluation.accuracy for evaluation in several], alone, atol=0.02)
    assert len(set(alone)) > 1


def test_each_is_trained_by_a_recipe_as_alone(evaluator):
    modern, last = dataclasses.replace(CONFIG.training, **RECIPES["modern"]), {}
    losses = {config: train_together(evaluator, config) for config in (CONFIG.training, modern)}
    for genome, seed in zip(GENOMES, SEEDS, strict=True):

        def on_epoch(epoch, state, loss, seed=seed):
            last[seed] = loss

        data = evaluator.images, evaluator.labels
        fit(evaluator.engine.prepare(genome, seed), *data, modern, seed, SUBSET, on_epoch=on_epoch)
    np.testing.assert_allclose(losses[modern], list(last.values()), rtol=1e-3)
    assert np.abs(np.subtract(losses[modern], losses[CONFIG.training])).min() > 1e-2


def train_together(evaluator: Evaluator, config: TrainingConfig) -> list[float]:
    """The last epoch's loss of each."""
    prepared = [evaluator.engine.prepare(genome, seed) for genome, seed in zip(GENOMES, SEEDS, strict=True)]
    starts = [(each.state, each.inputs) for each in prepared]
    trainer = evaluator._together
    assert trainer is not None
    return trainer.train(starts, evaluator.images, evaluator.labels, config, SEEDS, SUBSET)[1][: len(GENOMES)]


def test_they_are_divided_among_two_devices(alone, launch_environment):
    program = f"""
import sys; sys.path.insert(0, {str(REPOSITORY / "tests")!r})
import json, jax, numpy as np
from jaxevo.datasets import load_search_data
from test_together import together
data = load_search_data("digits")
several = together(data.train.take(np.arange(200)), data.validation.take(np.arange(100)))
print(json.dumps([len(jax.devices()), *(evaluation.accuracy for evaluation in several)]))
"""
    environment = launch_environment | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    devices, *several = json.loads(done.stdout.splitlines()[-1])
    assert devices == 2
    np.testing.assert_allclose(several, alone, atol=0.02)


def test_several_at_once_need_candidates_that_do_not_wait_for_each_other():
    with pytest.raises(InputError, match="candidates_per_step=2 is not possible: .*mating_pool=survivors"):
        configs.replace(SearchConfig(), {"candidates_per_step": 2})
