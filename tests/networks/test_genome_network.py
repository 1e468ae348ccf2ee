"""The network of a genome against a plain one written with XLA's convolutions."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from conftest import random_genomes
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.errors import InputError
from jaxevo.networks.genome_network import Network, dropout_mask
from jaxevo.search_space.genome import NUM_INPUTS, Genome, Op

NHWC = ("NHWC", "HWIO", "NHWC")


def conv(x, kernel, groups=1):
    return jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=groups
    )


def norm(x, module):
    scale, bias, mean, var = (
        getattr(module, name)[...] for name in ("scale", "bias", "mean", "var")
    )
    return (x - mean) / np.sqrt(var + 1e-5) * scale + bias


def window(x, kind):
    reducer, start = (jax.lax.max, -jnp.inf) if kind == Op.MAX_POOL_3X3 else (jax.lax.add, 0.0)

    def pool(v):
        return jax.lax.reduce_window(v, start, reducer, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")

    return pool(x) if kind == Op.MAX_POOL_3X3 else pool(x) / pool(jnp.ones_like(x))


def plain_operand(op: Op, state: int, x, module):
    if op.kernel_size and module.full:
        return norm(conv(jax.nn.relu(x), module.kernel[...].transpose(2, 3, 1, 0)), module.norm)
    if op.kernel_size:
        kernel = module.kernel[...].transpose(1, 2, 0)[:, :, None]
        x = conv(jax.nn.relu(x), kernel, groups=x.shape[-1])
    elif op != Op.IDENTITY:
        x = window(x, op)
    if op.kernel_size or state >= NUM_INPUTS:
        x = norm(x @ module.weight[...].T, module.norm)
    return x


def plain_network(network: Network, genome: Genome, images: np.ndarray, *, relu: bool):
    """Evaluation in the usual layout, cell by cell."""
    x = jnp.asarray(images, jnp.float32) / 255
    for index, module in enumerate(network.cells):
        cell = genome.reduction if index % 2 else genome.normal
        x = norm(x @ module.projection[...].T, module.norm)
        states = [x, x]
        for k, node in enumerate(cell.nodes):
            pair = [
                plain_operand(op, state, states[state], module.operands[2 * k + o])
                for o, (state, op) in enumerate(node.operands)
            ]
            states.append(jnp.concatenate(pair, -1))
        used = {state for node in cell.nodes for state in node.inputs}
        x = jnp.concatenate([states[s] for s in range(2, len(states)) if s not in used], -1)
        x = np.maximum(x, 0) if relu else x
        if index % 2:
            n, height, width, channels = x.shape
            x = x[:, : height // 2 * 2, : width // 2 * 2]
            x = x.reshape(n, height // 2, 2, width // 2, 2, channels).mean((2, 4))
    return x.mean((1, 2)) @ network.head[...].T + network.head_bias[...]


def shaken(network: Network, seed: int) -> Network:
    """With random statistics and batch norm parameters, which are trivial at the start."""
    rng = np.random.default_rng(seed)
    for kind in (nnx.Param, nnx.BatchStat):
        state = nnx.state(network, kind)
        nnx.update(
            network,
            jax.tree.map(lambda a: a + rng.uniform(0, 0.5, a.shape).astype(np.float32), state),
        )
    return network


@pytest.mark.parametrize(
    ("conv_kind", "relu"), [("separable", False), ("full", False), ("full", True)]
)
@pytest.mark.parametrize("seed", range(4))
def test_same_logits_as_a_plain_network(conv_kind: str, relu: bool, seed: int):
    (genome,) = random_genomes(1, 2, 4, seed)
    config = NetworkConfig(channels=3, num_normal_cells=2, conv_kind=conv_kind, output_relu=relu)
    network = shaken(Network(genome, config, (7, 6, 2), num_classes=5, seed=seed), seed)
    images = np.random.default_rng(seed).integers(0, 256, (4, 7, 6, 2), np.uint8)
    np.testing.assert_allclose(
        network(images, train=False),
        plain_network(network, genome, images, relu=relu),
        rtol=2e-3,
        atol=2e-3,
    )


def test_equal_seeds_give_equal_weights_and_definitions():
    (genome,) = random_genomes(1)
    config = NetworkConfig(channels=2)
    networks = [Network(genome, config, (8, 8, 1), num_classes=10, seed=seed) for seed in (1, 1, 2)]
    definitions, (state, same, other) = zip(*map(nnx.split, networks), strict=True)
    assert definitions[0] == definitions[1] == definitions[2]  # one program for all seeds
    np.testing.assert_array_equal(state["head"][...], same["head"][...])
    assert not np.array_equal(state["head"][...], other["head"][...])


def test_a_call_in_training_leaves_the_statistics_of_the_batch():
    (genome,) = random_genomes(1, 2, 2)
    network = Network(
        genome, NetworkConfig(channels=2, num_normal_cells=1), (4, 4, 1), num_classes=3, seed=0
    )
    images = np.random.default_rng(0).integers(0, 256, (5, 4, 4, 1), np.uint8)
    network(images, train=True, dropout_key=jax.random.key(0))
    projected = (images / 255.0) @ np.asarray(network.cells[0].projection[...]).T
    norm = network.cells[0].norm
    np.testing.assert_allclose(norm.mean[...], projected.mean((0, 1, 2)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(norm.var[...], projected.var((0, 1, 2)), rtol=1e-4, atol=1e-5)


def test_dropout_only_in_training():
    (genome,) = random_genomes(1, 2, 2)
    config = NetworkConfig(channels=2, num_normal_cells=1, dropout_rate=0.5)
    network = Network(genome, config, (4, 4, 1), num_classes=3, seed=0)
    images = np.random.default_rng(0).integers(0, 256, (1, 4, 4, 1), np.uint8)
    logits = [
        nnx.clone(network)(images, train=True, dropout_key=jax.random.key(key)) for key in range(2)
    ]
    assert not np.allclose(*logits)
    assert np.array_equal(network(images, train=False), network(images, train=False))


def test_dropout_keeps_the_mean_and_its_rate():
    n, rate = 40_000, 0.2
    mask = np.asarray(dropout_mask(jax.random.key(0), rate, 3, shape=(n // 4, 4)))
    assert set(np.unique(mask)) == {0, np.float32(1 / 0.8)}
    low, high = scipy.stats.binom.interval(0.9999, n, rate)
    assert low <= (mask == 0).sum() <= high
    assert not np.array_equal(mask, dropout_mask(jax.random.key(0), rate, 4, shape=(n // 4, 4)))


def test_an_image_too_small_for_the_reductions_is_refused():
    (genome,) = random_genomes(1)
    with pytest.raises(InputError, match="at least 4x4 pixels, these have 3x8"):
        Network(genome, NetworkConfig(), (3, 8, 1), num_classes=10, seed=0)


def test_bfloat16_changes_little_and_leaves_parameters_alone():
    (genome,) = random_genomes(1, 2, 3, seed=9)
    images = np.random.default_rng(0).integers(0, 256, (8, 8, 8, 1), np.uint8)
    logits = []
    for precision in ("float32", "bfloat16"):
        network = Network(
            genome,
            NetworkConfig(channels=4, num_normal_cells=2, precision=precision),
            (8, 8, 1),
            num_classes=10,
            seed=0,
        )
        logits.append(np.asarray(network(images, train=True, dropout_key=jax.random.key(0))))
        assert all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(nnx.state(network)))
    assert logits[1].dtype == np.float32
    assert 0 < np.abs(logits[0] - logits[1]).max() < 0.1 * np.abs(logits[0]).max()
