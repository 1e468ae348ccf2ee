"""The universal network against the genomes' own: the same values, gradients, statistics and
dropout.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import numpy as np
import optax
import pytest
from builders_arrays import compile_operations
from conftest import random_genomes
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal import UniversalNetwork
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network, to_network
from jaxevo.search_space.genome import OPS, Cell, Genome, Node

MAX_NODES, SHAPE, CLASSES = 6, (5, 4, 2), 3
CONFIG = NetworkConfig(channels=2, num_normal_cells=2, dropout_rate=0.3)
FULL = dataclasses.replace(CONFIG, conv_kind="full")
RELU = dataclasses.replace(CONFIG, output_relu=True)
every_kind = pytest.mark.parametrize("config", [CONFIG, FULL, RELU], ids=["plain", "full", "relu"])
IMAGES = np.random.default_rng(0).integers(0, 256, (3, *SHAPE), np.uint8)
LABELS = np.array([0, 2, 1])


def loss(params, stats, graphdef, inputs):
    module = nnx.merge(graphdef, params, stats, copy=True)
    logits = module(IMAGES, *inputs, train=True, dropout_key=jax.random.key(7))
    value = optax.softmax_cross_entropy_with_integer_labels(logits, LABELS).mean()
    return value, nnx.state(module, nnx.BatchStat)


value_and_gradient = jax.value_and_grad(loss, has_aux=True)


@pytest.fixture(scope="module")
def universal_step():
    return jax.jit(value_and_gradient, static_argnums=2)


@pytest.fixture
def quick_ops(monkeypatch):
    """Operations compiled one by one and kept, so that hundreds of networks run without being
    compiled.
    """
    compile_operations(monkeypatch)


def with_all_operations() -> list[Genome]:
    """Genomes that use every operation on an input and on a hidden state, in both cells."""
    genomes = []
    for op in OPS:
        cell = Cell((Node((0, 1), (op, op)), Node((2, 0), (op, op))))
        genomes.append(Genome(cell, cell))
    return genomes


@pytest.mark.parametrize("number", [2, pytest.param(300, marks=pytest.mark.slow)])
@every_kind
def test_random_genomes_have_equal_loss_gradients_and_statistics(
    universal_step, quick_ops, config, number
):
    # The gradients are compared as the network that they make of the universal network's slots.
    for seed, genome in enumerate(random_genomes(number) + with_all_operations()):
        network = Network(genome, config, SHAPE, num_classes=CLASSES, seed=seed)
        universal = UniversalNetwork(config, MAX_NODES, SHAPE, num_classes=CLASSES)
        from_network(universal, network, genome)
        results = []
        for module, inputs, step in (
            (network, (), value_and_gradient),
            (universal, (encode(genome, MAX_NODES),), universal_step),
        ):
            graphdef, params, stats = nnx.split(module, nnx.Param, nnx.BatchStat)
            (value, stats), gradient = step(params, stats, graphdef, inputs)
            nnx.update(module, gradient, stats)
            results.append(value)
        carried = Network(genome, config, SHAPE, num_classes=CLASSES, seed=seed + 1)
        to_network(universal, carried, genome)
        np.testing.assert_allclose(
            results[1], results[0], rtol=1e-4, err_msg=genome.canonical_key()
        )
        for own, other in zip(
            jax.tree.leaves(nnx.state(network)), jax.tree.leaves(nnx.state(carried)), strict=True
        ):
            scale = 1e-3 * max(1.0, float(np.abs(own).max()))
            np.testing.assert_allclose(
                other, own, rtol=5e-3, atol=scale, err_msg=genome.canonical_key()
            )


@every_kind
def test_equal_predictions_in_evaluation(quick_ops, config):
    predict = nnx.jit(functools.partial(UniversalNetwork.__call__, train=False))
    for seed, genome in enumerate(random_genomes(30, seed=1)):
        network = Network(genome, config, SHAPE, num_classes=CLASSES, seed=seed)
        for stat in jax.tree.leaves(nnx.state(network, nnx.BatchStat)):
            stat += np.float32(0.25)
        universal = UniversalNetwork(config, MAX_NODES, SHAPE, num_classes=CLASSES)
        from_network(universal, network, genome)
        logits = predict(universal, IMAGES, encode(genome, MAX_NODES))
        np.testing.assert_allclose(logits, network(IMAGES, train=False), rtol=1e-3, atol=1e-4)


@every_kind
def test_slots_that_a_genome_does_not_use_have_no_gradient(universal_step, config):
    node = Node((0, 1), (OPS[1], OPS[0]))
    genome = Genome(Cell((node,)), Cell((node,)))
    universal = UniversalNetwork(config, MAX_NODES, SHAPE, num_classes=CLASSES)
    from_network(universal, Network(genome, config, SHAPE, num_classes=CLASSES, seed=0), genome)
    graphdef, params, stats = nnx.split(universal, nnx.Param, nnx.BatchStat)
    _, gradient = universal_step(params, stats, graphdef, (encode(genome, MAX_NODES),))
    name = "dense" if config is FULL else "depthwise"
    kernels = np.asarray(gradient["cells"][0][name][...])
    assert np.any(kernels[0, 0])
    assert not np.any(kernels[1:]) and not np.any(kernels[0, 1])
