"""One Flax module for every genome: the genome is an input, so a search compiles once.

Parameters exist for B_max nodes of two operands, each a slot large enough for any operation. The
passes of a cell are in `universal_cell`, which also has the letters.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks import convolutions
from jaxevo.networks.genome_network import BatchNorm, constant, dropout_mask, image_batch
from jaxevo.networks.universal_cell import Moments, Outlet, forward, train_cell
from jaxevo.networks.universal_encoding import EncodedCell, EncodedGenome
from jaxevo.networks.universal_operands import MAX_KERNEL, Slots


class UniversalCell(nnx.Module):
    """The slots of a cell, and the weights `[B, E, 2D]` with which its readers read it."""

    def __init__(
        self,
        outlet: Outlet,
        channels: int,
        num_slots: int,
        *,
        reader_channels: int,
        conv_kind: str = "separable",
    ):
        self.outlet = outlet
        self.full = conv_kind == "full"
        slots, taps = (num_slots, 2), (MAX_KERNEL, MAX_KERNEL)
        if self.full:
            self.dense = constant(nnx.Param, 0, *slots, channels, 2 * channels, *taps)
        else:
            self.depthwise = constant(nnx.Param, 0, *slots, 2 * channels, *taps)
        self.pointwise = constant(nnx.Param, 0, *slots, channels, 2 * channels)
        self.scale, self.bias = (
            constant(nnx.Param, 1, *slots, channels),
            constant(nnx.Param, 0, *slots, channels),
        )
        self.mean, self.var = (
            constant(nnx.BatchStat, 0, *slots, channels),
            constant(nnx.BatchStat, 1, *slots, channels),
        )
        self.readers = constant(nnx.Param, 0, num_slots, reader_channels, 2 * channels)

    @property
    def kernels(self) -> nnx.Variable:
        """The convolutions' kernels, as `Slots` has them."""
        return self.dense if self.full else self.depthwise

    def __call__(self, x: jax.Array, cell: EncodedCell, train: bool) -> jax.Array:
        kernels, weights = self.kernels[...].astype(x.dtype), self.pointwise[...].astype(x.dtype)
        slots, readers = (
            Slots(kernels, weights, self.scale[...], self.bias[...]),
            self.readers[...].astype(x.dtype),
        )
        if not train:
            return forward(
                self.outlet,
                slots,
                readers,
                running_moments=Moments(self.mean[...], self.var[...]),
                x=x,
                cell=cell,
            )[0]
        out, moments = train_cell(self.outlet, slots, readers, x, cell)  # type: ignore[misc]
        self.mean.set_value(moments.mean)
        self.var.set_value(moments.var)
        return out


class UniversalNetwork(nnx.Module):
    """The classifier of every genome.

    Value and gradients are those of `Network` for the same weights, see `from_network`.
    """

    cell_type = UniversalCell

    def __init__(
        self,
        config: NetworkConfig,
        max_nodes: int,
        image_shape: tuple[int, int, int],
        *,
        num_classes: int,
    ):
        config.check_image(*image_shape[:2])
        stack = config.stack()
        self.dropout_rate, self.precision = config.dropout_rate, config.precision
        self.kinds = tuple(kind for kind, _ in stack)
        self.entry = constant(nnx.Param, 0, stack[0][1], image_shape[2])
        self.norms = nnx.List(BatchNorm(channels) for _, channels in stack)
        self.cells = nnx.List()
        # The readers of a cell are the next cell's channels; of the last cell, the classes.
        readers = [*(channels for _, channels in stack[1:]), num_classes]
        for index, ((kind, channels), reader_channels) in enumerate(
            zip(stack, readers, strict=True)
        ):
            kind = "classifier" if index == len(stack) - 1 else kind
            self.cells.append(
                self.cell_type(
                    Outlet(kind, config.output_relu),
                    channels,
                    max_nodes,
                    reader_channels=reader_channels,
                    conv_kind=config.conv_kind,
                )
            )
        self.head_bias = constant(nnx.Param, 0, num_classes)

    def __call__(
        self,
        images: jax.Array,
        genome: EncodedGenome,
        *,
        train: bool,
        dropout_key: jax.Array | None = None,
    ) -> jax.Array:
        """Logits `[N, classes]` of uint8 `images` `[N, H, W, C]`.

        A `dropout_key` is given only in training.
        """
        x = image_batch(images, self.precision)
        # A 1x1 convolution to the first cell's channels, then cell after cell.
        x = convolutions.pointwise(x, self.entry[...].astype(x.dtype))
        for kind, norm, cell in zip(self.kinds, self.norms, self.cells, strict=True):
            x = cell(norm(x, train), getattr(genome, kind), train)
        # Dropout of the means of the last cell's states, each node with a draw of its own.
        if train and self.dropout_rate:
            draw = functools.partial(
                dropout_mask, dropout_key, self.dropout_rate, shape=x.shape[1:]
            )
            x = x * jax.vmap(lambda b: draw(node=b))(jnp.arange(x.shape[0]))
        # The classifier: a product with the mean of each unused state.
        return jnp.einsum("bec,bcn->ne", self.cells[-1].readers[...], x) + self.head_bias[...]
