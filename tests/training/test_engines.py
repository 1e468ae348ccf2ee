"""Engines: memory stays flat, seeds share a program, names, and equal weights at the start."""

from __future__ import annotations

import dataclasses
import pathlib
import sys

import jax
import numpy as np
import pytest
from conftest import random_genomes

from jaxevo.config import ENGINES, NetworkConfig, TrainingConfig
from jaxevo.errors import InputError
from jaxevo.networks.builder import NetworkBuilder, split
from jaxevo.search_space.genome import Cell, Genome, Layout, Node, Op
from jaxevo.training.data import TrainingData
from jaxevo.training.engine_choice import choose_engine
from jaxevo.training.engines import CompiledEngine, UniversalEngine, make_engine
from jaxevo.training.fit import fit


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_programs_do_not_pile_up_over_8_compiled_candidates(few_digits):
    """At about 65,000 memory maps the process dies of a fault that nothing catches."""

    def maps() -> int:
        return len(pathlib.Path("/proc/self/maps").read_text().splitlines())

    builder = NetworkBuilder(NetworkConfig(channels=2, num_normal_cells=1), (8, 8, 1), 10)
    engine = CompiledEngine(builder, 32)
    data = TrainingData.of(few_digits[0], np.arange(32))
    config = TrainingConfig(epochs=1, batch_size=32)
    ops = [Op.IDENTITY, Op.CONV_3X3, Op.MAX_POOL_3X3, Op.AVG_POOL_3X3, Op.CONV_5X5]
    cells = [Cell((Node((0, 1), (a, b)),)) for a in ops for b in ops if a <= b]
    genomes = [Genome(cell, cells[0]) for cell in cells[:6]] + [Genome(cells[1], cells[0])] * 2
    counts = []
    for seed, genome in enumerate(genomes):
        prepared = engine.prepare(genome, (seed,))
        state = fit(prepared, data, config, seed=(seed,)).state
        prepared.trainer.logits(state.weights, (), few_digits[1].images)
        counts.append(maps())
    assert len(genomes) == 8
    assert counts[-1] < counts[3] * 1.05 + 20, counts


def test_the_compiled_engine_compiles_once_for_several_seeds():
    builder = NetworkBuilder(NetworkConfig(channels=3, num_normal_cells=1), (8, 8, 1), 10)
    engine = CompiledEngine(builder, 32)
    first, second = random_genomes(2, 1, 1, seed=5)
    assert engine.prepare(first, (0,)).trainer is engine.prepare(first, (1,)).trainer
    assert engine.prepare(second, (0,)).trainer is not engine.prepare(first, (0,)).trainer


@pytest.mark.parametrize("kind", [CompiledEngine, UniversalEngine])
@pytest.mark.parametrize("conv_kind", ["separable", "full"])
def test_a_layout_of_its_own_is_as_good_as_the_same_settings(kind, conv_kind, few_digits):
    # Weights and predictions are equal to the last bit: the network is the same one.
    def engine(settings: NetworkConfig):
        builder = NetworkBuilder(settings, (8, 8, 1), 10)
        return CompiledEngine(builder, 32) if kind is CompiledEngine else kind(builder, 32, 2)

    (genome,) = random_genomes(1, 1, 2, seed=5)
    own = dataclasses.replace(genome, layout=Layout(3, 2, conv_kind, 1))
    images = few_digits[0].images[:32]
    wide = engine(NetworkConfig(channels=4, num_normal_cells=1))
    narrow = engine(NetworkConfig(3, channel_multiplier=1, num_normal_cells=2, conv_kind=conv_kind))
    logits = []
    for maker, each in ((wide, own), (narrow, genome)):
        prepared = maker.prepare(each, (0, 1))
        weights = prepared.state.weights
        logits.append(prepared.trainer.logits(weights, prepared.inputs, images))
        network = maker.network(each, weights)
        logits.append(np.asarray(network.head[...]))
    np.testing.assert_array_equal(logits[0], logits[2])
    np.testing.assert_array_equal(logits[1], logits[3])
    # Beside it the same engine trains genomes without one.
    assert wide.prepare(genome, (0, 1)).trainer is not wide.prepare(own, (0, 1)).trainer


@pytest.mark.parametrize("conv_kind", ["separable", "full"])
def test_an_unknown_engine_is_refused(conv_kind: str):
    builder = NetworkBuilder(NetworkConfig(channels=2, conv_kind=conv_kind), (8, 8, 1), 10)
    words = f"engine=nonsense is not known; choose one of {', '.join(ENGINES)}"
    with pytest.raises(InputError, match=words):
        choose_engine("nonsense", builder.network)
    with pytest.raises(InputError, match=words):
        make_engine("nonsense", builder, 32, max_nodes=6)


def test_engines_by_name():
    builder = NetworkBuilder(NetworkConfig(channels=2, num_normal_cells=1), (8, 8, 1), 10)
    assert type(make_engine("universal", builder, 32, max_nodes=6)) is UniversalEngine
    assert type(make_engine("compiled", builder, 32, max_nodes=6)) is CompiledEngine
    assert isinstance(make_engine("auto", builder, 32, max_nodes=6), UniversalEngine)  # on a CPU


@pytest.mark.parametrize("conv_kind", ["separable", "full"])
def test_engines_start_with_the_same_weights_and_give_them_back(conv_kind: str):
    config = NetworkConfig(channels=2, num_normal_cells=1, conv_kind=conv_kind)
    builder = NetworkBuilder(config, (8, 8, 1), 10)
    (genome,) = random_genomes(1, 1, 2)
    networks = []
    for name in ("universal", "compiled"):
        engine = make_engine(name, builder, 32, max_nodes=2)
        networks.append(engine.network(genome, engine.prepare(genome, (3,)).state.weights))
    networks.append(builder.build(genome, (3,)))
    states = [jax.tree.leaves(split(network)[1:]) for network in networks]
    for leaves in zip(*states, strict=True):
        np.testing.assert_array_equal(leaves[0], leaves[2])
        np.testing.assert_array_equal(leaves[1], leaves[2])
