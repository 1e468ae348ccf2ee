"""Weights on their way between the universal network and a genome's own."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from conftest import random_genomes
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal import UniversalNetwork
from jaxevo.networks.universal_weights import from_network, to_network
from jaxevo.search_space.genome import OPS, Cell, Genome, Node

MAX_NODES, SHAPE, CLASSES = 6, (5, 4, 2), 3
CONFIG = NetworkConfig(channels=2, num_normal_cells=2, dropout_rate=0.3)
FULL = dataclasses.replace(CONFIG, conv_kind="full")
both_kinds = pytest.mark.parametrize("config", [CONFIG, FULL], ids=["separable", "full"])


@both_kinds
def test_weights_survive_the_way_there_and_back(config):
    for seed, genome in enumerate(random_genomes(20, seed=2)):
        network, other = (
            Network(genome, config, SHAPE, num_classes=CLASSES, seed=seed + n) for n in (0, 1000)
        )
        universal = UniversalNetwork(config, MAX_NODES, SHAPE, num_classes=CLASSES)
        from_network(universal, network, genome)
        to_network(universal, other, genome)
        jax.tree.map(np.testing.assert_array_equal, nnx.state(network), nnx.state(other))


@both_kinds
def test_slots_that_a_genome_does_not_use_keep_their_weights(config):
    node = Node((0, 1), (OPS[1], OPS[0]))
    genome = Genome(Cell((node,)), Cell((node,)))
    universal = UniversalNetwork(config, MAX_NODES, SHAPE, num_classes=CLASSES)
    unused = universal.cells[0].kernels
    unused.set_value(unused[...] + 5.0)
    from_network(universal, Network(genome, config, SHAPE, num_classes=CLASSES, seed=0), genome)
    kernels = np.asarray(universal.cells[0].kernels[...])
    # A 3x3 convolution of the input: the first half of the channels, the middle of the kernel.
    used = np.zeros(kernels.shape, bool)
    used[0, 0, ..., :2, 2:5, 2:5] = True
    np.testing.assert_array_equal(kernels == 5.0, ~used)
