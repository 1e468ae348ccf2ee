"""Sizes: worked out on paper, equal to the built network's, and those of the design."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from conftest import random_genomes
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.errors import InputError
from jaxevo.networks.genome_network import Network
from jaxevo.search_space.complexity import measure
from jaxevo.search_space.genome import Cell, Genome, Node, Op


def cell(*nodes: tuple[int, Op, int, Op]) -> Cell:
    return Cell(tuple(Node((i, j), (a, b)) for i, a, j, b in nodes))


# One node: a 3x3 convolution beside the input itself.
ONE = cell((0, Op.CONV_3X3, 1, Op.IDENTITY))
# Two nodes, the second reads the first twice: its pooling gets a projection, since a hidden state
# has 2D channels.
CHAIN = cell((0, Op.CONV_5X5, 0, Op.MAX_POOL_3X3), (2, Op.CONV_3X3, 2, Op.AVG_POOL_3X3))
# Two nodes side by side: both are unused, so 4D channels go out.
WIDE = cell((0, Op.CONV_7X7, 1, Op.AVG_POOL_3X3), (1, Op.IDENTITY, 0, Op.MAX_POOL_3X3))


def test_paper_sized_network_by_hand():
    # ONE everywhere, D=24, images of 28x28x1, 10 classes; cells N R N R N with D = 24, 24, 48, 48,
    # 96. Each cell: a projection in*D with batch norm 2D; depthwise 9D, pointwise D*D, batch norm
    # 2D; 2D channels out. in 1,   D 24:  24 + 48 +  216 +  576 +  48 =    912 in 48,  D 24: 1152 +
    # 48 + 216 +  576 +  48 =  2,040 in 48,  D 48: 2304 + 96 + 432 + 2304 +  96 =  5,232 in 96,  D
    # 48: 4608 + 96 + 432 + 2304 +  96 =  7,536 in 96,  D 96: 9216 + 192 + 864 + 9216 + 192 = 19,680
    # Classifier: 192 * 10 + 10 = 1,930.
    parameters = 912 + 2_040 + 5_232 + 7_536 + 19_680 + 1_930
    # Multiply-adds: every weight of a convolution once a pixel. A reduction cell still works on the
    # large image: 28x28 = 784: (24 + 216 + 576) + (1152 + 216 + 576) = 816 + 1,944 = 2,760 14x14 =
    # 196: (2304 + 432 + 2304) + (4608 + 432 + 2304) = 5,040 + 7,344 = 12,384 7x7 = 49: 9216 + 864 +
    # 9216 = 19,296 and the classifier's 1,920.
    multiply_adds = 784 * 2_760 + 196 * 12_384 + 49 * 19_296 + 1_920
    size = measure(Genome(ONE, ONE), NetworkConfig(), (28, 28, 1), num_classes=10)
    assert (
        (size.parameters, size.multiply_adds) == (parameters, multiply_adds) == (37_330, 5_538_528)
    )


def test_hidden_states_by_hand():
    # CHAIN then ONE then CHAIN (N R N), D=2 then 4, images of 5x5x3, 4 classes.
    # CHAIN, in 3, D 2: projection 6 + norm 4; 5x5: 50 + 4 + norm 4; max pooling of an input:
    # nothing; of the 4 channels of node 0, 3x3: 36 + 8 + norm 4; average pooling with its
    # projection: 8 + norm 4. 10 + 58 + 48 + 12 = 128; only node 1 is unused: 4 channels. ONE, in 4,
    # D 2: 8 + 4 + 18 + 4 + 4 = 38; 4 channels. CHAIN, in 4, D 4: 16 + 8; 100 + 16 + 8; 72 + 32 + 8;
    # 32 + 8: 24 + 124 + 112 + 40 = 300; 8 channels. Classifier: 8 * 4 + 4 = 36.
    config = NetworkConfig(channels=2, num_normal_cells=2)
    size = measure(Genome(CHAIN, ONE), config, (5, 5, 3), num_classes=4)
    assert size.parameters == 128 + 38 + 300 + 36 == 502
    # 5x5 pixels: CHAIN 6 + 54 + 44 + 8 = 112 and ONE 8 + 22 = 30; halved to 2x2: CHAIN 16 + 116 +
    # 104 + 32 = 268.
    assert size.multiply_adds == 25 * (112 + 30) + 4 * 268 + 32


def test_full_convolutions_by_hand():
    # WIDE, twice (N N), D=3, images of 8x8x1, 2 classes, dense kernels.
    # in 1: projection 3 + norm 6; 7x7: 49 * 3 * 3 = 441 + norm 6; pooling and identity of inputs:
    # nothing. 456. in 12 (two unused nodes of 6 channels): projection 36 + norm 6 + 447 = 489.
    # Classifier: 12 * 2 + 2 = 26.
    config = NetworkConfig(channels=3, num_normal_cells=1, normal_repeats=2, conv_kind="full")
    size = measure(Genome(WIDE, ONE), config, (8, 8, 1), num_classes=2)
    assert size.parameters == 456 + 489 + 26 == 971
    assert size.multiply_adds == 64 * (3 + 441 + 36 + 441) + 24


@pytest.mark.parametrize("conv_kind", ["separable", "full"])
def test_counts_are_those_of_the_built_network(conv_kind: str):
    rng = np.random.default_rng(0)
    for genome in random_genomes(50, min_nodes=1, max_nodes=6):
        cells, repeats, channels, multiplier = (
            int(rng.integers(1, most + 1)) for most in (3, 2, 4, 3)
        )
        config = NetworkConfig(channels, multiplier, cells, repeats, conv_kind=conv_kind)
        height, width = (int(rng.integers(4, 12)) for _ in range(2))
        shape, classes = (height, width, int(rng.choice([1, 3]))), int(rng.integers(2, 12))
        network = Network(genome, config, shape, num_classes=classes, seed=0)
        built = sum(leaf.size for leaf in jax.tree.leaves(nnx.state(network, nnx.Param)))
        assert measure(genome, config, shape, num_classes=classes).parameters == built


def test_sizes_are_those_of_the_design():
    # Section 2: with cells of 5 and 6 nodes and D=24, separable convolutions give 0.20 to 0.37 M
    # parameters (median 0.27 M), full ones 1.4 to 5.4 M. Nine in ten of our 300 lie there.
    pairs = zip(random_genomes(300, 5, 5), random_genomes(300, 6, 6), strict=True)
    genomes = [Genome(five.normal, six.reduction) for five, six in pairs]
    for kind, least, median, most in (("separable", 0.20, 0.27, 0.37), ("full", 1.4, 3.0, 5.4)):
        config = NetworkConfig(conv_kind=kind)
        millions = [
            measure(genome, config, (28, 28, 1), num_classes=10).parameters / 1e6
            for genome in genomes
        ]
        quantiles = np.quantile(millions, [0.05, 0.5, 0.95])
        assert (
            least < quantiles[0]
            and quantiles[1] == pytest.approx(median, rel=0.1)
            and quantiles[2] < most
        )


def test_too_small_images_are_refused():
    with pytest.raises(
        InputError, match="its 2 reductions need images of at least 4x4 pixels, these have 3x9"
    ):
        measure(Genome(ONE, ONE), NetworkConfig(), (3, 9, 1), num_classes=10)
