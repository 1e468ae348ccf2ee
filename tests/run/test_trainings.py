"""Trainings by a pool are those of this process."""

from __future__ import annotations

import numpy as np
import pytest
from builders import SMALL
from conftest import random_genomes

from jaxevo import config as configs
from jaxevo.config import WorkerConfig
from jaxevo.datasets import SearchData
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluation, Evaluator, class_weights
from jaxevo.run.open_pool import open_pool
from jaxevo.run.pool import JobFailed, Outcome
from jaxevo.run.records import Place
from jaxevo.run.share import Share
from jaxevo.run.trainings import Trainings, TrainingSetup, share_images
from jaxevo.run.trial import Trial
from jaxevo.training.data import TrainingData

GENOMES = random_genomes(3, max_nodes=3, seed=5)
SEED = (0, 0, 1)
SHARE = Share(1, None)


class Pool:
    """Holds arrays, and gives every job the same outcome."""

    def __init__(self, outcome: Outcome | None = None):
        self.outcome = outcome
        self.jobs = []

    def share(self, arrays):
        self.arrays = arrays
        return self

    def load(self):
        return self.arrays

    def submit(self, job):
        self.jobs.append(job)

    def result(self, key):
        assert key == self.jobs[0].key
        return self.outcome


def test_it_trains_as_this_process_does(digits):
    settings = {"class_weights": "balanced", "epochs": 2, "learning_rate": 0.01}
    config = configs.replace(SMALL, settings)
    train, subset = digits.train.take(np.arange(100)), np.arange(90)
    data = SearchData("digits", train, digits.validation, digits.class_names)
    builder = NetworkBuilder(config.network, data.image_shape, data.num_classes)
    by_class = class_weights(config, train.labels, 10)
    data_here = TrainingData.of(train, subset, by_class)
    here = Evaluator(config, builder, data_here, validation=data.validation)
    with open_pool(WorkerConfig(workers=1)) as pool:
        setup = TrainingSetup(config, data.num_classes, share_images(pool, data, subset), SHARE)
        trainings = Trainings(pool, setup)
        for k, genome in enumerate(GENOMES):
            trainings.submit(Trial(genome, (0, 0, k)))
            assert trainings.result((0, 0, k)).accuracy == here.evaluate(genome, (0, 0, k)).accuracy


class Failing:
    """Stands for an evaluator whose training raises what another process may not."""

    def warm_up(self):
        pass

    def evaluate(self, genome, seed, rival):
        return Evaluation(None, "MemoryError: no", "Traceback")


class FailingSetup(TrainingSetup):
    def evaluator(self):
        return Failing()


def test_an_exception_of_a_training_is_told_the_pool_that_tries_again_elsewhere():
    function = FailingSetup(SMALL, 10, Pool(), SHARE).build()
    with pytest.raises(JobFailed) as raised:
        function(GENOMES[0], SEED, None)
    assert (raised.value.words, raised.value.details) == ("MemoryError: no", "Traceback")


@pytest.mark.parametrize(
    ("outcome", "evaluation"),
    [
        (
            Outcome({"accuracy": 0.5, "loss": 0.25}, where="n1/7", attempt=2, lost=3),
            Evaluation(0.5, loss=0.25, place=Place("n1/7", 2, 3)),
        ),
        (
            Outcome(None, "it died, twice", seconds=3.0, where="n1/7", attempt=2),
            Evaluation(None, "it died, twice", seconds={"train": 3.0}, place=Place("n1/7", 2)),
        ),
        (
            Outcome(None, "a word", "Traceback", 2.0, where="n1/7"),
            Evaluation(None, "a word", "Traceback", {"train": 2.0}, place=Place("n1/7")),
        ),
    ],
)
def test_an_outcome_is_an_evaluation(outcome, evaluation):
    pool = Pool(outcome)
    trainings = Trainings(pool, None)
    trainings.submit(Trial(GENOMES[0], SEED))
    assert trainings.result(SEED) == evaluation
    assert pool.jobs[0].arguments == (GENOMES[0], SEED, None)
