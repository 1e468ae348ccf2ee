"""From a genome to its fitness: an engine's training on the data, timed, and what happens when that fails.

Whatever goes wrong with a candidate becomes a reason, instead of the end of the search.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import time
import traceback
from collections.abc import Callable, Iterator, Sequence

import jax
import numpy as np

from jaxevo.config import SearchConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.search_space.genome import Genome
from jaxevo.training import batched_trainer as together
from jaxevo.training.engines import Prepared, Problem, Seed, UniversalEngine, make_engine
from jaxevo.training.trainer import CompileClock, TrainState


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A candidate's result; either `accuracy` or `failure` is set."""

    accuracy: float | None
    failure: str | None
    details: str | None  # traceback of a failure
    seconds: dict[str, float]  # compile, train, evaluate


class DivergedError(ArithmeticError):
    """The loss is not finite any more."""


def on_device(images: Images) -> tuple[jax.Array, jax.Array]:
    """Pixels and labels where they are trained on."""
    return jax.device_put((images.images, images.labels))


# What a candidate's training may raise without ending the search; XLA's errors, memory running out among them, are
# RuntimeErrors.
_FAILURES = (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError)


class _Clock:
    """Seconds of a candidate by part; those of compiling are kept apart from the part in which they fell."""

    def __init__(self, compiling: CompileClock):
        self.seconds = {"compile": 0.0, "train": 0.0, "evaluate": 0.0}
        self.compiling = compiling

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds up what happens within, also when it fails; compiling done before, for an estimate, is not within."""
        begin, before = time.perf_counter(), self.compiling.seconds
        try:
            yield
        finally:
            within = self.compiling.seconds - before
            self.seconds["compile"] += self.compiling.charge()
            self.seconds[name] += max(0.0, time.perf_counter() - begin - within)


EpochCallback = Callable[[int, TrainState, float], None]


class Evaluator:
    """Trains genomes on the training images and measures their accuracy on the validation images.

    Args:
        config: The search's configuration; `engine` must not be `auto`.
        problem: What networks are built for.
        train: All training images; they stay on the device.
        validation: The images that fitness is measured on.
    """

    def __init__(self, config: SearchConfig, problem: Problem, train: Images, validation: Images):
        self.config, self.problem = config, problem
        self.validation = validation
        self.images, self.labels = on_device(train)
        self.engine = make_engine(config.engine, problem, config.training.batch_size, config.evolution.max_nodes)
        self._together = None
        if config.candidates_per_step > 1:
            assert isinstance(self.engine, UniversalEngine)  # the configuration has been checked
            self._together = together.Trainer(self.engine.trainer, config.candidates_per_step)

    def expect(self, genome: Genome) -> None:
        """Is told which genome will be evaluated after the next one."""
        self.engine.expect(genome, self.images, self.labels)

    def evaluate_several(
        self, genomes: Sequence[Genome], seeds: Sequence[Seed], subset: np.ndarray
    ) -> list[Evaluation]:
        """`evaluate` for at most `candidates_per_step` genomes, in one training; should that fail, one by one."""
        if self._together is not None:
            try:
                return self._evaluate_together(genomes, seeds, subset)
            except _FAILURES as error:  # out of memory, most likely: alone each may fit
                logging.getLogger(__name__).warning("trained one by one, as together: %s", error)
        return [self.evaluate(genome, seed, subset) for genome, seed in zip(genomes, seeds, strict=True)]

    def _evaluate_together(
        self, genomes: Sequence[Genome], seeds: Sequence[Seed], subset: np.ndarray
    ) -> list[Evaluation]:
        assert self._together is not None
        clock = _Clock(self.engine.compile_clock)
        with clock.part("train"):
            prepared = [self.engine.prepare(genome, seed) for genome, seed in zip(genomes, seeds, strict=True)]
            starts = [(each.state, each.inputs) for each in prepared]
            training = self.config.training
            weights, losses = self._together.train(starts, self.images, self.labels, training, seeds, subset)
        with clock.part("evaluate"):
            accuracies = self._together.accuracies(weights, self.validation)
        each = {part: seconds / len(genomes) for part, seconds in clock.seconds.items()}
        return [
            Evaluation(accuracy, None, None, each)
            if math.isfinite(loss)
            else Evaluation(None, f"the loss was {loss}; a lower learning rate may help", None, each)
            for accuracy, loss in zip(accuracies, losses, strict=True)
        ][: len(genomes)]

    def evaluate(self, genome: Genome, seed: Seed, subset: np.ndarray) -> Evaluation:
        """Fitness of a genome after the search's training on a subset of the images; never raises for a candidate."""
        clock = _Clock(self.engine.compile_clock)
        try:
            accuracy = self._evaluate(genome, seed, subset, clock)
        except DivergedError as error:
            return Evaluation(None, str(error), None, clock.seconds)
        except _FAILURES as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return Evaluation(None, reason, traceback.format_exc(), clock.seconds)
        return Evaluation(accuracy, None, None, clock.seconds)

    def _evaluate(self, genome: Genome, seed: Seed, subset: np.ndarray, clock: _Clock) -> float:
        with clock.part("train"):
            prepared = self.engine.prepare(genome, seed)
            state = self.train(prepared, self.config.training, seed, subset)
        with clock.part("evaluate"):
            images, labels = self.validation.images, self.validation.labels
            return prepared.trainer.accuracy(state.weights, prepared.inputs, images, labels)

    def train(self, prepared: Prepared, config: TrainingConfig, seed: Seed, subset: np.ndarray) -> TrainState:
        """`fit` on the training images."""
        return fit(prepared, self.images, self.labels, config, seed, subset)


def fit(
    prepared: Prepared,
    images: jax.Array,
    labels: jax.Array,
    config: TrainingConfig,
    seed: Seed,
    subset: np.ndarray,
    first_epoch: int = 0,
    on_epoch: EpochCallback | None = None,
) -> TrainState:
    """Trains from `prepared.state` on `images[subset]`; `on_epoch` is told the number of epochs done, state and loss.

    Raises `DivergedError` as soon as an epoch's loss is not finite.
    """
    state = prepared.state
    epochs = prepared.trainer.epochs(state, prepared.inputs, images, labels, subset, config, seed, first_epoch)
    for epoch, (state, loss) in enumerate(epochs, first_epoch + 1):  # noqa: B007
        if not math.isfinite(loss):
            raise DivergedError(f"the loss was {loss} in epoch {epoch}; a lower learning rate may help")
        if on_epoch is not None:
            on_epoch(epoch, state, loss)
    return state
