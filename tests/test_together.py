"""Several candidates in one step give what each gives alone, on one device and on two."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY, random_genomes

from jaxevo import config as configs
from jaxevo.config import RECIPES, SearchConfig
from jaxevo.errors import InputError
from jaxevo.evaluation import Evaluation, Evaluator, Problem

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


def make(train, validation, config: SearchConfig = CONFIG) -> Evaluator:
    return Evaluator(config, Problem(config.network, (8, 8, 1), 10), train, validation)


def together(train, validation) -> list[Evaluation]:
    return make(train, validation).evaluate_several(GENOMES, SEEDS, SUBSET)


@pytest.fixture(scope="module")
def alone(few_digits) -> list[float]:
    evaluator = make(*few_digits)
    return [evaluator.evaluate(g, seed, SUBSET).accuracy for g, seed in zip(GENOMES, SEEDS, strict=True)]


def test_each_of_several_candidates_comes_out_as_alone(few_digits, alone):
    several = together(*few_digits)
    assert [evaluation.failure for evaluation in several] == [None] * 3
    # two of 100 images whose logits are all but equal
    np.testing.assert_allclose([evaluation.accuracy for evaluation in several], alone, atol=0.02)
    assert len(set(alone)) > 1


def test_each_is_augmented_as_alone(few_digits, alone):
    evaluator = make(*few_digits, configs.replace(CONFIG, RECIPES["modern"] | {"weight_average": 0.0}))
    several = evaluator.evaluate_several(GENOMES, SEEDS, SUBSET)
    accuracies = [evaluator.evaluate(g, seed, SUBSET).accuracy for g, seed in zip(GENOMES, SEEDS, strict=True)]
    np.testing.assert_allclose([evaluation.accuracy for evaluation in several], accuracies, atol=0.02)
    assert accuracies != alone


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
