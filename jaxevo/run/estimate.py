"""Estimate of a search's duration, from a few steps of two random candidates."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from jaxevo.run.evaluator import Evaluator
from jaxevo.run.words import format_duration
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.training.epoch import chunks
from jaxevo.training.fit import fit

_STEPS = 6
_SAMPLES = 2


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Seconds; `search` if no candidate repeats another, which is the most it should be."""

    candidates: int
    per_candidate: float
    search: float
    retrain: float
    final: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.search + self.retrain + self.final

    def __str__(self) -> str:
        return (
            f"estimate: {format_duration(self.total)} at most: {self.candidates} candidates of "
            f"about {format_duration(self.per_candidate)} (isomorphic ones cost nothing), "
            f"{format_duration(self.retrain)} for training the best again, "
            f"{format_duration(self.final)} for the final training"
        )


def estimate(evaluator: Evaluator) -> Estimate:
    """Times a few steps of a small and of a large random candidate.

    Raises whatever a training may raise.
    """
    config = evaluator.config
    # Seconds of a step, of measuring the accuracy, and of compiling, for each sample.
    times = np.array([_time(evaluator, sample) for sample in range(_SAMPLES)])
    step, evaluation, compiling = times.mean(0)
    # What one candidate takes; with the compiled engine it is compiled for itself.
    num_final = len(evaluator.data.labels)
    num_train = config.data.train_examples or num_final
    epoch = max(1, num_train // config.training.batch_size) * step
    compiled = config.engine == "compiled"
    candidate = config.training.epochs * epoch + evaluation + (compiling if compiled else 0.0)
    final_epoch = max(1, num_final // config.final_training.batch_size) * step
    once = 0.0 if compiled else times[:, 2].sum()
    return Estimate(
        candidates=config.num_candidates,
        per_candidate=candidate,
        search=config.num_candidates * candidate + once,
        retrain=config.num_retrainings * candidate,
        final=config.num_final_trainings * config.final_training.epochs * final_epoch,
    )


def describe_estimate(evaluator: Evaluator) -> str:
    """The estimate in words, or why there is none."""
    try:
        with evaluator.stopwatch.part("other"):
            return str(estimate(evaluator))
    except (ArithmeticError, MemoryError, RuntimeError) as error:
        return f"no estimate: {error}"


def _time(evaluator: Evaluator, sample: int) -> tuple[float, float, float]:
    """Seconds of a training step, of measuring the accuracy, and of compiling."""
    config = evaluator.config
    # A random genome of the smallest or the largest size.
    num_nodes = (config.evolution.min_nodes, config.evolution.max_nodes)[sample]
    rng = np.random.default_rng([config.seed, sample])
    genome = Genome(random_cell(rng, num_nodes), random_cell(rng, num_nodes))
    with evaluator.stopwatch.lap() as lap:
        # The first use compiles, the second is timed.
        prepared = evaluator.engine.prepare(genome, (config.seed, sample))
        batch_size = prepared.trainer.batch_size
        subset = np.arange(min(_STEPS * batch_size, len(evaluator.data.labels)))
        data = evaluator.data.with_subset(subset)
        one_epoch = dataclasses.replace(config.training, epochs=1)
        prepared.state = fit(prepared, data, one_epoch, (0,)).state
        begin = time.perf_counter()
        state = fit(prepared, data, one_epoch, (0,)).state
        per_step = (time.perf_counter() - begin) / max(1, len(subset) // batch_size)
        chunk, _ = next(chunks(evaluator.validation.images, batch_size))
        prepared.trainer.predict(state.weights, prepared.inputs, chunk)
        begin = time.perf_counter()
        prepared.trainer.predict(state.weights, prepared.inputs, chunk)
        per_call = time.perf_counter() - begin
    calls = math.ceil(len(evaluator.validation) / len(chunk))
    return per_step, per_call * calls, lap.get("compile", 0.0)
