"""The same network with Flax's own layers, in NHWC: our operations are compared with it."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.search_space.complexity import operand_is_projected
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Op
from jaxevo.training.epoch import BATCH_NORM_MOMENTUM


def _conv(in_channels: int, channels: int, k: int, groups: int, rngs: nnx.Rngs) -> nnx.Conv:
    return nnx.Conv(
        in_channels, channels, (k, k), feature_group_count=groups, use_bias=False, rngs=rngs
    )


def _norm(channels: int, rngs: nnx.Rngs) -> nnx.BatchNorm:
    return nnx.BatchNorm(channels, momentum=BATCH_NORM_MOMENTUM, rngs=rngs)


class PlainOperand(nnx.Module):
    """One operation of a node on one state."""

    def __init__(self, state: int, op: Op, channels: int, rngs: nnx.Rngs):
        self.op = op
        in_channels = channels if state < NUM_INPUTS else 2 * channels
        if op.kernel_size:
            self.depthwise = _conv(in_channels, in_channels, op.kernel_size, in_channels, rngs)
        self.projected = operand_is_projected(state, op)
        if self.projected:
            self.pointwise = _conv(in_channels, channels, 1, 1, rngs)
            self.norm = _norm(channels, rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        if self.op.kernel_size:
            x = self.depthwise(jax.nn.relu(x))
        elif self.op == Op.MAX_POOL_3X3:
            x = nnx.max_pool(x, (3, 3), (1, 1), "SAME")
        elif self.op == Op.AVG_POOL_3X3:
            x = nnx.avg_pool(x, (3, 3), (1, 1), "SAME", count_include_pad=False)
        return self.norm(self.pointwise(x)) if self.projected else x


class PlainCell(nnx.Module):
    """A cell in NHWC."""

    def __init__(self, cell: Cell, kind: str, in_channels: int, channels: int, rngs: nnx.Rngs):
        self.projection, self.norm = _conv(in_channels, channels, 1, 1, rngs), _norm(channels, rngs)
        self.inputs, self.outputs = tuple(node.inputs for node in cell.nodes), cell.unused_states()
        operands = [operand for node in cell.nodes for operand in node.operands]
        self.operands = nnx.List(PlainOperand(state, op, channels, rngs) for state, op in operands)
        self.reduces = kind == "reduction"

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.norm(self.projection(x))
        states = [x, x]
        for k, inputs in enumerate(self.inputs):
            pair = [self.operands[2 * k + o](states[i]) for o, i in enumerate(inputs)]
            states.append(jnp.concatenate(pair, axis=-1))
        x = jnp.concatenate([states[s] for s in self.outputs], axis=-1)
        return nnx.avg_pool(x, (2, 2), (2, 2)) if self.reduces else x


class PlainNetwork(nnx.Module):
    """As `jaxevo.networks.genome_network.Network`; called in the same way."""

    def __init__(
        self,
        genome: Genome,
        config: NetworkConfig,
        image_shape: tuple[int, int, int],
        num_classes: int,
        seed: int,
    ):
        rngs = nnx.Rngs(seed)
        self.cells = nnx.List()
        width = image_shape[2]
        for kind, channels in config.stack():
            cell = genome.cell(kind)
            self.cells.append(PlainCell(cell, kind, width, channels, rngs))
            width = 2 * channels * len(cell.unused_states())
        self.dropout = nnx.Dropout(config.dropout_rate)
        self.head = nnx.Linear(width, num_classes, rngs=rngs)

    def __call__(
        self, images: jax.Array, *, train: bool, dropout_key: jax.Array | None = None
    ) -> jax.Array:
        """Logits of uint8 images `[N, H, W, C]`."""
        (self.train if train else self.eval)()
        x = images.astype(jnp.float32) / 255
        for cell in self.cells:
            x = cell(x)
        rngs = None if dropout_key is None else nnx.Rngs(dropout=dropout_key)
        return self.head(self.dropout(x.mean((1, 2)), rngs=rngs))


class PlainTraining:
    """Adam on one network, a call of a jitted step for each batch, as Flax's examples train: in a
    loop on the device XLA for the CPU runs these convolutions many times slower still.
    """

    def __init__(self, network: PlainNetwork, rate: Any = 1e-3):
        graphdef, self.params, self.stats = nnx.split(network, nnx.Param, nnx.BatchStat)
        optimizer = optax.adam(rate)
        self.moments = optimizer.init(self.params)

        def loss_fn(params, stats, images, labels, key):
            module = nnx.merge(graphdef, params, stats, copy=True)
            logits = module(images, train=True, dropout_key=key)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
            return loss, nnx.state(module, nnx.BatchStat)

        @functools.partial(jax.jit, donate_argnums=(0, 1, 2))
        def step(params, stats, moments, images, labels, key):
            (loss, stats), gradient = jax.value_and_grad(loss_fn, has_aux=True)(
                params, stats, images, labels, key
            )
            updates, moments = optimizer.update(gradient, moments, params)
            return optax.apply_updates(params, updates), stats, moments, loss

        self._step = step
        self._predict = jax.jit(
            lambda *state, images: nnx.merge(graphdef, *state)(images, train=False).argmax(-1)
        )

    def step(
        self, images: jax.typing.ArrayLike, labels: jax.typing.ArrayLike, key: jax.Array
    ) -> jax.Array:
        """Trains on a batch; its loss."""
        self.params, self.stats, self.moments, loss = self._step(
            self.params, self.stats, self.moments, images, labels, key
        )
        return loss

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Part of the images that is classified rightly."""
        return float(
            np.mean(np.asarray(self._predict(self.params, self.stats, images=images)) == labels)
        )
