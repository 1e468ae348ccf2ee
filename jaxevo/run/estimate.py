"""How long a search will take, from a few steps of two random candidates."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from jaxevo.config import SearchConfig
from jaxevo.run.evaluator import Evaluator
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.training.trainer import chunks

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


def estimate(config: SearchConfig, evaluator: Evaluator) -> Estimate:
    """Times a few steps of a small and of a large random candidate."""
    num_final = len(evaluator.labels)
    num_train = config.data.train_examples or num_final
    times = np.array([_time(config, evaluator, sample) for sample in range(_SAMPLES)])
    steps, evaluation, compiling = times.mean(0)
    epoch = max(1, num_train // config.training.batch_size) * steps
    each_compile = compiling if config.engine == "compiled" else 0.0
    candidate = config.training.epochs * epoch + evaluation + each_compile
    candidates = config.num_candidates
    final_epoch = max(1, num_final // config.final_training.batch_size) * steps
    once = times[:, 2].sum() if config.engine != "compiled" else 0.0  # for all candidates
    return Estimate(
        candidates=candidates,
        per_candidate=candidate,
        search=candidates * candidate + once,
        retrain=config.retrain_best * config.retrain_seeds * candidate,
        final=config.final_training.epochs * final_epoch,
    )


def _time(config: SearchConfig, evaluator: Evaluator, sample: int) -> tuple[float, float, float]:
    """Seconds of a training step, of measuring the accuracy, and of compiling."""
    evolution = config.evolution
    num_nodes = (evolution.min_nodes, evolution.max_nodes)[sample]
    rng = np.random.default_rng([config.seed, sample])
    genome = Genome(random_cell(rng, num_nodes), random_cell(rng, num_nodes))
    clock = evaluator.engine.compile_clock
    compiled_before = clock.seconds
    prepared = evaluator.engine.prepare(genome, (config.seed, sample))
    trainer = prepared.trainer
    subset = np.arange(min(_STEPS * trainer.batch_size, len(evaluator.labels)))
    one = dataclasses.replace(config.training, epochs=1)
    prepared.state = evaluator.train(prepared, one, (0,), subset)  # compiles
    begin = time.perf_counter()
    state = evaluator.train(prepared, one, (0,), subset)
    per_step = (time.perf_counter() - begin) / max(1, len(subset) // trainer.batch_size)
    chunk, _ = next(chunks(evaluator.validation.images, trainer.batch_size))
    trainer.predict(state.weights, prepared.inputs, chunk)  # compiles
    begin = time.perf_counter()
    trainer.predict(state.weights, prepared.inputs, chunk)
    calls = math.ceil(len(evaluator.validation) / len(chunk))
    return per_step, (time.perf_counter() - begin) * calls, clock.seconds - compiled_before
