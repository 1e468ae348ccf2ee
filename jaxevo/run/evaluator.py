"""Evaluation of a genome: an engine trains it on the data, and its fitness is measured.

A training that fails gives a reason instead of a fitness, and the search goes on.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import traceback
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxevo.config import SearchConfig
from jaxevo.datasets import Images
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.records import Place
from jaxevo.run.trial import Rival, Trial
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.seeds import Seed
from jaxevo.stopwatch import Stopwatch
from jaxevo.training.batched_trainer import BatchedTrainer
from jaxevo.training.data import TrainingData, balanced_weights
from jaxevo.training.engines import UniversalEngine, make_engine
from jaxevo.training.fit import DivergedError, Epoch, fit
from jaxevo.training.measurement import Measurement

# What a candidate's training may raise without ending the search. XLA's errors, memory running out
# among them, are RuntimeErrors.
_FAILURES = (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError)


def class_weights(config: SearchConfig, labels: np.ndarray, num_classes: int) -> np.ndarray | None:
    """How much an image of each class counts in the trainings of a search; None: all alike.

    Args:
        config: The search's.
        labels: Of all training images, `[M]`.
        num_classes: Number of classes.
    """
    return balanced_weights(labels, num_classes) if config.class_weights == "balanced" else None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A candidate's result; either `accuracy` or `failure` is set."""

    accuracy: float | None
    failure: str | None = None
    details: str | None = None  # traceback of a failure
    # Seconds by part: compile, train, evaluate.
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    cross_entropy: float | None = None  # on the same images as the accuracy, in nats
    loss: float | None = None  # of the training, mean over its epochs; foretold if it ended early
    losses: tuple[float, ...] = ()  # of each epoch; empty where several train in a step
    place: Place | None = None  # None: this process

    def fitness(self, kind: str) -> float | None:
        """The fitness of this kind (`config.FITNESSES`); None for a failure.

        Likelihood and speed are exp of minus a mean loss, so they lie in (0, 1] like the accuracy.
        The sum of training losses ranks architectures: Ru et al. 2021, arXiv 2006.04492.
        """
        if kind == "accuracy":
            return self.accuracy
        loss = {"likelihood": self.cross_entropy, "speed": self.loss}[kind]
        return None if loss is None else math.exp(-loss)


class Evaluator:
    """Trains genomes on a subset of the training images and measures their validation accuracy.

    Args:
        config: The search's configuration.
        builder: Builds the networks.
        data: The training images on the device, and the subset that candidates are trained on.
        validation: The images that accuracy and cross entropy are measured on.
        stopwatch: Is told the seconds of compiling, training and evaluating.
        on_epoch: Told the epochs done of the training at hand, and the number of its epochs.
    """

    def __init__(
        self,
        config: SearchConfig,
        builder: NetworkBuilder,
        data: TrainingData,
        *,
        validation: Images,
        stopwatch: Stopwatch | None = None,
        on_epoch: Callable[[int, int], None] = lambda done, total: None,
    ):
        self.config = config
        self.builder = builder
        self.data = data
        self.validation = validation
        self.stopwatch = stopwatch or Stopwatch()
        self.on_epoch = on_epoch
        # The engine, and beside it a trainer of several candidates where that is asked for.
        batch_size = config.training.batch_size
        max_nodes = config.evolution.max_nodes
        together = config.candidates_per_step
        self.engine = make_engine(
            config.engine,
            builder,
            batch_size,
            max_nodes=max_nodes,
            candidates_per_step=together,
            stopwatch=self.stopwatch,
        )
        self._batched: BatchedTrainer | None = None
        if together > 1:
            if not isinstance(self.engine, UniversalEngine):
                raise ValueError(
                    f"candidates_per_step={together} needs the universal engine, not "
                    f"{config.engine}"
                )
            self._batched = BatchedTrainer(self.engine.trainer(builder.network), together)

    def expect(self, genome: Genome) -> None:
        """Takes note of the genome that will be evaluated after the next one."""
        self.engine.expect(genome, self.data)

    def warm_up(self) -> None:
        """Compiles the program that all genomes share, if there is one.

        Genomes with a layout of their own have a program for each layout.
        """
        if isinstance(self.engine, UniversalEngine) and not self.config.layout_genes:
            smallest = random_cell(np.random.default_rng(0), self.config.evolution.min_nodes)
            prepared = self.engine.prepare(Genome(smallest, smallest), (0,))
            prepared.trainer.compile(prepared.state, prepared.inputs, self.data)

    def evaluate_several(self, trials: Sequence[Trial]) -> list[Evaluation]:
        """Evaluates at most `candidates_per_step` genomes in one training.

        Should that training fail, each genome is evaluated by itself (`evaluate`).
        """
        if self._batched is not None:
            try:
                return self._evaluate_batch(self._batched, trials)
            except _FAILURES as error:  # out of memory, most likely: alone each may fit
                logger = logging.getLogger(__name__)
                logger.warning("trained one by one, as together: %s", error)
        return [self.evaluate(*trial) for trial in trials]

    def _evaluate_batch(self, batched: BatchedTrainer, trials: Sequence[Trial]) -> list[Evaluation]:
        with self.stopwatch.lap() as lap:
            with self.stopwatch.part("train"):
                prepared = [self.engine.prepare(trial.genome, trial.seed) for trial in trials]
                starts = [(each.state, each.inputs) for each in prepared]
                seeds = [trial.seed for trial in trials]
                trained, losses = batched.train(
                    starts, self.data, self.config.training, seeds=seeds
                )
            with self.stopwatch.part("evaluate"):
                measured = batched.measure(trained, self.validation)
        share = {part: seconds / len(trials) for part, seconds in lap.items()}
        results = list(zip(measured, losses, strict=True))[: len(trials)]
        evaluations = [_evaluation_of(scores, loss) for scores, loss in results]
        return [dataclasses.replace(each, seconds=share) for each in evaluations]

    def evaluate(self, genome: Genome, seed: Seed, rival: Rival | None = None) -> Evaluation:
        """Trains a genome and measures it; a failure is returned, not raised.

        A training that falls behind its rival's ends early, and its mean loss is foretold.
        """
        with self.stopwatch.lap() as lap:
            evaluation = self._evaluate(genome, seed, rival)
        return dataclasses.replace(evaluation, seconds=lap)

    def _evaluate(self, genome: Genome, seed: Seed, rival: Rival | None) -> Evaluation:
        try:
            scores, losses = self.train(genome, seed, rival)
            loss = float(np.mean(losses))
            if rival is not None and len(losses) < self.config.training.epochs:
                loss = rival.foretell(losses)
            return dataclasses.replace(_evaluation_of(scores, loss), losses=losses)
        except DivergedError as error:
            return Evaluation(None, str(error))
        except _FAILURES as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return Evaluation(None, reason, traceback.format_exc())

    def train(
        self, genome: Genome, seed: Seed, rival: Rival | None = None
    ) -> tuple[Measurement, tuple[float, ...]]:
        """Trains a genome; its scores, and the loss of each epoch. Raises what `fit` raises."""
        config, margin = self.config.training, self.config.evolution.racing

        def behind(curve: Sequence[Epoch]) -> bool:
            return rival is not None and rival.is_ahead([epoch.loss for epoch in curve], margin)

        with self.stopwatch.part("train"):
            prepared = self.engine.prepare(genome, seed)
            trained = fit(
                prepared,
                self.data,
                config,
                seed=seed,
                on_epoch=lambda epoch, loss: self.on_epoch(epoch, config.epochs),
                stop_after=behind,
            )
        with self.stopwatch.part("evaluate"):
            weights = trained.state.weights
            scores = prepared.trainer.measure(weights, prepared.inputs, self.validation)
        return scores, trained.losses


def _evaluation_of(scores: Measurement, loss: float) -> Evaluation:
    """The evaluation of these scores; a failure if the loss or the cross entropy is not finite."""
    for what, value in (("loss", loss), ("validation cross entropy", scores.cross_entropy)):
        if not math.isfinite(value):
            return Evaluation(None, f"the {what} was {value}; a lower learning rate may help")
    return Evaluation(scores.accuracy, cross_entropy=scores.cross_entropy, loss=loss)
