"""Trainings of candidates as jobs of a pool.

JAX is imported in the worker after its memory has been limited, so not at the top of this module.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxevo.config import SearchConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.run.pool import Function, Job, JobFailed, Outcome, Pool, Setup, Shared
from jaxevo.run.records import Place
from jaxevo.run.share import Share
from jaxevo.run.trial import Rival, Trial
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed

if TYPE_CHECKING:
    from jaxevo.run.evaluator import Evaluation, Evaluator


def share_images(pool: Pool, data: SearchData, subset: np.ndarray) -> Shared:
    """Shares the images that candidates are trained and validated on.

    Args:
        pool: Whose workers will load them.
        data: All images.
        subset: Which of the training images to train on, int `[N]`.
    """
    return pool.share(
        {
            "train_images": data.train.images,
            "train_labels": data.train.labels,
            "validation_images": data.validation.images,
            "validation_labels": data.validation.labels,
            "subset": subset,
        }
    )


@dataclasses.dataclass(frozen=True)
class TrainingSetup:
    """Data and settings of a search, from which a worker makes its evaluator.

    Attributes:
        config: The search's.
        num_classes: Number of classes.
        images: From `share_images`.
        share: Of the machine, that a worker has.
    """

    config: SearchConfig
    num_classes: int
    images: Shared
    share: Share

    def build(self) -> Function:
        """`Evaluator.evaluate` on these images, from its arguments to an `Evaluation`.

        Programs are compiled before the first candidate's time begins to run.
        """
        evaluator = self.evaluator()
        evaluator.warm_up()

        def evaluate(genome: Genome, seed: Seed, rival: Rival | None) -> dict[str, Any]:
            evaluation = evaluator.evaluate(genome, seed, rival)
            if evaluation.details is not None:  # an exception, so another process may fare better
                raise JobFailed(evaluation.failure or "", evaluation.details)
            return dataclasses.asdict(evaluation)

        return evaluate

    def evaluator(self) -> Evaluator:
        """The evaluator that trains in this process as the search's own does."""
        from jaxevo.networks.builder import NetworkBuilder
        from jaxevo.run.evaluator import Evaluator, class_weights
        from jaxevo.training.data import TrainingData

        self.share.take()
        arrays = self.images.load()
        train = Images(arrays["train_images"], arrays["train_labels"])
        validation = Images(arrays["validation_images"], arrays["validation_labels"])
        weights = class_weights(self.config, train.labels, self.num_classes)
        data = TrainingData.of(train, arrays["subset"], weights)
        builder = NetworkBuilder.for_images(self.config.network, train.images, self.num_classes)
        return Evaluator(self.config, builder, data, validation=validation)


class Trainings:
    """Has a pool train candidates.

    A training is known by its seed, which no other shares.

    Args:
        pool: Carries them out.
        setup: Its function goes from genome, seed and rival to an `Evaluation` as a dict.
    """

    def __init__(self, pool: Pool, setup: Setup):
        self.pool, self.setup = pool, setup

    def submit(self, trial: Trial) -> None:
        """Submits a training, unless it is under way already."""
        self.pool.submit(Job(trial.seed, self.setup, tuple(trial)))

    def withdraw(self) -> None:
        """Forgets the trainings that have not begun."""
        self.pool.withdraw()

    def result(self, seed: Seed) -> Evaluation:
        """Waits for the result of a submitted training. Raises `WorkerError`."""
        return _evaluation(self.pool.result(seed))


def _evaluation(outcome: Outcome) -> Evaluation:
    from jaxevo.run.evaluator import Evaluation

    place = Place(outcome.where, outcome.attempt, outcome.lost)
    if outcome.value is not None:
        return Evaluation(**{**outcome.value, "place": place})
    seconds = {"train": outcome.seconds}
    return Evaluation(None, outcome.failure, outcome.details, seconds=seconds, place=place)
