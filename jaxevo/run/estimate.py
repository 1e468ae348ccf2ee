"""Estimate of a search's duration, from a few steps of two random candidates."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from jaxevo.config import CONV_KINDS, SearchConfig, replace
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.remaining import Pace, Remaining
from jaxevo.run.sizing import DataSize, mean_multiply_adds
from jaxevo.run.words import format_duration
from jaxevo.search_space.genome import Genome, Layout
from jaxevo.search_space.variation import random_cell
from jaxevo.seeds import Stream, generator
from jaxevo.training.epoch import chunks
from jaxevo.training.fit import fit

_STEPS = 6
_SAMPLES = 2
_LONG = 2 * 3600.0  # seconds, after which the estimate says how to shorten the search


def describe_estimate(evaluator: Evaluator, remaining: Remaining) -> str:
    """The estimate in words, or why there is none.

    `remaining` is given the pace that was measured.
    """
    try:
        with evaluator.stopwatch.part("other"):
            remaining.sample = measured_pace(evaluator)
    except (ArithmeticError, MemoryError, RuntimeError) as error:
        return f"no estimate: {error}"
    text = (
        f"estimate: about {format_duration(remaining.total())}: "
        f"{format_duration(remaining.search())} for {evaluator.config.num_candidates} candidates "
        f"of about {format_duration(remaining.training())} (isomorphic ones cost nothing), "
        f"{format_duration(remaining.choice())} for training the best again, "
        f"{format_duration(remaining.final())} for the final training and its test"
    )
    long = remaining.total() > _LONG
    return f"{text}; --preset=quick or --time_limit=SECONDS makes it shorter" if long else text


def measured_pace(evaluator: Evaluator) -> Pace:
    """Times a few steps of a small and of a large random candidate.

    Where a search's networks are of other sizes, as layouts are genes or sizes are bounded, the
    time is in proportion to multiply-adds. Raises whatever a training may raise.
    """
    config = evaluator.config
    genomes = [_genome(config, sample) for sample in range(_SAMPLES)]
    times = np.array([_time(evaluator, genome, k) for k, genome in enumerate(genomes)])
    step, evaluation, compiling = map(float, times.mean(0))
    if config.layout_genes or config.max_parameters or config.max_multiply_adds:
        builder = evaluator.builder
        size = DataSize(*builder.image_shape, 0, builder.num_classes)
        timed = np.mean([builder.complexity(genome).multiply_adds for genome in genomes])
        # The images already have the size that the configuration asks for.
        share = mean_multiply_adds(replace(config, {"image_size": 0}), size) / float(timed)
        step, evaluation = step * share, evaluation * share
    # With the compiled engine a candidate is compiled for itself.
    each = config.engine == "compiled"
    return Pace(step / config.training.batch_size, evaluation, compiling if each else 0.0)


def _genome(config: SearchConfig, sample: int) -> Genome:
    """A random genome of the smallest or the largest number of nodes.

    Where the kind of convolutions is a gene, each has one of the two.
    """
    num_nodes = (config.evolution.min_nodes, config.evolution.max_nodes)[sample]
    rng = generator(Stream.ESTIMATE, (config.seed, sample))
    genome = Genome(random_cell(rng, num_nodes), random_cell(rng, num_nodes))
    if not config.evolution.vary_conv_kind:
        return genome
    network = config.network
    layout = Layout(network.channels, network.num_normal_cells, CONV_KINDS[sample])
    return dataclasses.replace(genome, layout=layout)


def _time(evaluator: Evaluator, genome: Genome, sample: int) -> tuple[float, float, float]:
    """Seconds of a training step, of measuring the accuracy, and of compiling."""
    config = evaluator.config
    with evaluator.stopwatch.lap() as lap:
        # The first use compiles, the second is timed.
        prepared = evaluator.engine.prepare(genome, (config.seed, sample))
        batch_size = prepared.trainer.batch_size
        subset = np.arange(min(_STEPS * batch_size, len(evaluator.data.labels)))
        data = evaluator.data.with_subset(subset)
        one_epoch = dataclasses.replace(config.training, epochs=1)
        prepared.state = fit(prepared, data, one_epoch, seed=(0,)).state
        begin = time.perf_counter()
        state = fit(prepared, data, one_epoch, seed=(0,)).state
        per_step = (time.perf_counter() - begin) / max(1, len(subset) // batch_size)
        chunk, _ = next(chunks(evaluator.validation.images, batch_size))
        prepared.trainer.logits(state.weights, prepared.inputs, chunk)
        begin = time.perf_counter()
        prepared.trainer.logits(state.weights, prepared.inputs, chunk)
        per_call = time.perf_counter() - begin
    calls = math.ceil(len(evaluator.validation) / len(chunk))
    return per_step, per_call * calls, lap.get("compile", 0.0)
