"""The compiled engine keeps memory flat and compiles once for several seeds; what `auto` means."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest
from conftest import random_genomes

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.run.evaluator import fit, on_device
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.training.engines import CompiledEngine, Problem, choose_engine


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_programs_do_not_pile_up_over_8_compiled_candidates(few_digits):
    """At about 65,000 memory maps the process dies of a fault that nothing catches."""
    maps = lambda: len(pathlib.Path("/proc/self/maps").read_text().splitlines())  # noqa: E731
    problem = Problem(NetworkConfig(channels=2, num_normal_cells=1), (8, 8, 1), 10)
    engine = CompiledEngine(problem, 32)
    data = on_device(few_digits[0])
    config = TrainingConfig(epochs=1, batch_size=32)
    ops = [Op.IDENTITY, Op.CONV_3X3, Op.MAX_POOL_3X3, Op.AVG_POOL_3X3, Op.CONV_5X5]
    cells = [Cell((Node((0, 1), (a, b)),)) for a in ops for b in ops if a <= b]
    genomes = [Genome(cell, cells[0]) for cell in cells[:6]] + [Genome(cells[1], cells[0])] * 2
    counts = []
    for seed, genome in enumerate(genomes):
        prepared = engine.prepare(genome, (seed,))
        state = fit(prepared, *data, config, (seed,), np.arange(32))
        prepared.trainer.predict(state.weights, (), few_digits[1].images)
        counts.append(maps())
    assert len(genomes) == 8
    assert counts[-1] < counts[3] * 1.05 + 20, counts


def test_the_compiled_engine_compiles_once_for_several_seeds():
    problem = Problem(NetworkConfig(channels=3, num_normal_cells=1), (8, 8, 1), 10)
    engine = CompiledEngine(problem, 32)
    first, second = random_genomes(2, 1, 1, seed=5)
    assert engine.prepare(first, (0,)).trainer is engine.prepare(first, (1,)).trainer
    assert engine.prepare(second, (0,)).trainer is not engine.prepare(first, (0,)).trainer


def test_what_auto_means_on_a_cpu():
    assert choose_engine("auto", "separable") == "universal"
    assert choose_engine("auto", "full") == "compiled"
    assert choose_engine("compiled", "separable") == "compiled"
