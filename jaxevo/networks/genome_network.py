"""The phenotype: a genome built as a Flax NNX module.

Cells are stacked N R N R N (paper, figure 1a). Each begins with a 1x1 convolution to D channels
whose result is both of its inputs; a node concatenates two operands of D channels; the states that
no node reads are the cell's output. Activations are `[C, H, W, N]` as in `ops`.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks import convolutions, ops
from jaxevo.search_space.complexity import network_settings, operand_is_projected
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Op
from jaxevo.seeds import Stream, generator


def dropout_mask(
    key: jax.Array | None, rate: float, node: jax.Array | int, *, shape: tuple[int, ...]
) -> jax.Array:
    """Zeros with probability `rate`, else `1 / (1 - rate)`, for the features of one state.

    The key depends on the state alone, so that both engines drop the same features.
    """
    if key is None:
        raise ValueError("training with dropout needs a dropout_key")
    keep = jax.random.bernoulli(jax.random.fold_in(key, node), 1 - rate, shape)
    return keep.astype(jnp.float32) / (1 - rate)


def image_batch(images: jax.Array, precision: str) -> jax.Array:
    """Converts uint8 `[N, H, W, C]` to `[C, H, W, N]` in [0, 1] of the precision's type.

    There is no other preprocessing.
    """
    return (images.transpose(3, 1, 2, 0).astype(jnp.float32) / 255).astype(precision)


def weights(rng: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> nnx.Param:
    """Normal weights of variance 1 / fan_in, drawn on the host.

    So nothing is compiled to begin a training.
    """
    return nnx.Param(rng.standard_normal(shape, np.float32) / np.float32(math.sqrt(fan_in)))


def constant(kind: type[nnx.Variable], value: float, *shape: int) -> nnx.Variable:
    """A float32 variable filled with one value, made on the host like `weights`."""
    return kind(np.full(shape, value, np.float32))


class BatchNorm(nnx.Module):
    """Batch norm over `[C, H, W, N]`.

    A call in training leaves the batch's statistics in the module, for `training` to average.
    """

    def __init__(self, channels: int):
        self.scale = constant(nnx.Param, 1, channels)
        self.bias = constant(nnx.Param, 0, channels)
        self.mean = constant(nnx.BatchStat, 0, channels)
        self.var = constant(nnx.BatchStat, 1, channels)

    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        if not train:
            return ops.normalize(
                x, self.scale[...], self.bias[...], mean=self.mean[...], variance=self.var[...]
            )
        y, mean, var = ops.batch_norm(x, self.scale[...], self.bias[...])
        self.mean.set_value(mean)
        self.var.set_value(var)
        return y


class Operand(nnx.Module):
    """An operation of a node on one state, with D channels out."""

    def __init__(
        self, rng: np.random.Generator, state: int, op: Op, *, channels: int, conv_kind: str
    ):
        self.op = op
        self.full = conv_kind == "full" and op.kernel_size > 0
        in_channels = channels if state < NUM_INPUTS else 2 * channels
        k = op.kernel_size
        if self.full:
            self.kernel = weights(rng, (channels, in_channels, k, k), in_channels * k * k)
        elif k:
            self.kernel = weights(rng, (in_channels, k, k), k * k)
        self.projected = operand_is_projected(state, op)
        if self.projected:
            if not self.full:
                self.weight = weights(rng, (channels, in_channels), in_channels)
            self.norm = BatchNorm(channels)

    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        if self.full:
            return self.norm(
                convolutions.full_convolution(jax.nn.relu(x), self.kernel[...].astype(x.dtype)),
                train,
            )
        x = ops.spatial(
            self.op, x, self.kernel[...].astype(x.dtype) if self.op.kernel_size else None
        )
        return (
            self.norm(convolutions.pointwise(x, self.weight[...].astype(x.dtype)), train)
            if self.projected
            else x
        )


class CellModule(nnx.Module):
    """A cell: `[C, H, W, N]` to the concatenation `[2D * unused, H, W, N]`.

    A reduction cell halves H and W; a ReLU, where there is one, comes before.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        cell: Cell,
        kind: str,
        *,
        in_channels: int,
        channels: int,
        config: NetworkConfig,
    ):
        self.inputs = tuple(node.inputs for node in cell.nodes)
        self.outputs = cell.unused_states()
        self.reduces = kind == "reduction"
        self.output_relu = config.output_relu
        self.projection = weights(rng, (channels, in_channels), in_channels)
        self.norm = BatchNorm(channels)
        operands = [operand for node in cell.nodes for operand in node.operands]
        self.operands = nnx.List(
            Operand(rng, state, op, channels=channels, conv_kind=config.conv_kind)
            for state, op in operands
        )

    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        x = self.norm(convolutions.pointwise(x, self.projection[...].astype(x.dtype)), train)
        states = [x, x]
        for k, inputs in enumerate(self.inputs):
            pair = [self.operands[2 * k + o](states[i], train) for o, i in enumerate(inputs)]
            states.append(jnp.concatenate(pair))
        x = jnp.concatenate([states[s] for s in self.outputs])
        x = jax.nn.relu(x) if self.output_relu else x
        return ops.halve(x) if self.reduces else x


class Network(nnx.Module):
    """The classifier of a genome.

    Raises `ValueError` if the images are too small for the reductions.
    """

    def __init__(
        self,
        genome: Genome,
        config: NetworkConfig,
        image_shape: tuple[int, int, int],
        *,
        num_classes: int,
        seed: int | tuple[int, ...],
    ):
        config = network_settings(genome, config)
        config.check_image(*image_shape[:2])
        rng = generator(Stream.WEIGHTS, seed)
        self.dropout_rate = config.dropout_rate
        self.precision = config.precision
        self.cells = nnx.List()
        width = image_shape[2]
        for kind, channels in config.stack():
            cell = genome.cell(kind)
            self.cells.append(
                CellModule(rng, cell, kind, in_channels=width, channels=channels, config=config)
            )
            width = 2 * channels * len(cell.unused_states())
        self.head = weights(rng, (num_classes, width), width)
        self.head_bias = constant(nnx.Param, 0, num_classes)

    def __call__(
        self, images: jax.Array, *, train: bool, dropout_key: jax.Array | None = None
    ) -> jax.Array:
        """Logits `[N, classes]` of uint8 images `[N, H, W, C]`.

        A `dropout_key` is given only in training.
        """
        x = image_batch(images, self.precision)
        for cell in self.cells:
            x = cell(x, train)
        features = x.astype(jnp.float32).mean((1, 2))
        if train and self.dropout_rate:
            states = self.cells[-1].outputs
            shape = (features.shape[0] // len(states), features.shape[1])
            masks = [
                dropout_mask(dropout_key, self.dropout_rate, s - NUM_INPUTS, shape=shape)
                for s in states
            ]
            features = features * jnp.concatenate(masks)
        return (self.head[...] @ features).T + self.head_bias[...]
