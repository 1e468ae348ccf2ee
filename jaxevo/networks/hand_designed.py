"""Networks that people designed: ResNet18 and a small CNN, of any width.

Activations are `[C, H, W, N]` as in `ops`.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jaxevo.networks import convolutions, ops
from jaxevo.networks.genome_network import BatchNorm, constant, image_batch, weights
from jaxevo.search_space.complexity import Complexity


class ConvBatchNorm(nnx.Module):
    """A dense convolution without bias, padded so that stride 1 keeps the size, then batch norm."""

    def __init__(
        self,
        rng: np.random.Generator,
        in_channels: int,
        channels: int,
        *,
        kernel_size: int,
        stride: int = 1,
    ):
        fan_in = in_channels * kernel_size**2 // 2 or 1  # half: ReLU follows (He et al. 2015)
        self.kernel = weights(rng, (channels, in_channels, kernel_size, kernel_size), fan_in)
        self.norm = BatchNorm(channels)
        self.stride = stride

    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        """`[C, H, W, N]` to `[D, ceil(H / stride), ceil(W / stride), N]`."""
        return self.norm(
            convolutions.full_convolution(x, self.kernel[...].astype(x.dtype), self.stride), train
        )


class Block(nnx.Module):
    """Two 3x3 convolutions and a shortcut.

    The shortcut is a 1x1 convolution where size or channels change.
    """

    def __init__(self, rng: np.random.Generator, in_channels: int, channels: int, *, stride: int):
        self.first = ConvBatchNorm(rng, in_channels, channels, kernel_size=3, stride=stride)
        self.second = ConvBatchNorm(rng, channels, channels, kernel_size=3)
        self.projected = in_channels != channels or stride > 1
        if self.projected:
            self.shortcut = ConvBatchNorm(rng, in_channels, channels, kernel_size=1, stride=stride)

    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        """`[C, H, W, N]` to `[D, ceil(H / stride), ceil(W / stride), N]`."""
        y = self.second(jax.nn.relu(self.first(x, train)), train)
        return jax.nn.relu(y + (self.shortcut(x, train) if self.projected else x))


class _Classifier(nnx.Module):
    """The head, and how images come in; the part between is a subclass's `features`."""

    def _init_head(
        self, rng: np.random.Generator, width: int, num_classes: int, *, precision: str
    ) -> None:
        self.head = weights(rng, (num_classes, width), width)
        self.head_bias = constant(nnx.Param, 0, num_classes)
        self.precision = precision

    def __call__(
        self, images: jax.Array, *, train: bool, dropout_key: jax.Array | None = None
    ) -> jax.Array:
        """Logits `[N, classes]` of uint8 `images` `[N, H, W, C]`. There is no dropout."""
        features = (
            self.features(image_batch(images, self.precision), train)
            .astype(jnp.float32)
            .mean((1, 2))
        )
        return (self.head[...] @ features).T + self.head_bias[...]

    def features(self, x: jax.Array, train: bool) -> jax.Array:
        raise NotImplementedError


class ResNet18(_Classifier):
    """He et al. 2016, with the stem for large images (7x7 at stride 2, 3x3 maximum at stride 2).

    Only that stem gives the 11.18 M parameters of the paper's table for ten classes.
    """

    min_side = 1
    # Of the stages: two blocks each, halved in size before all but the first.
    channels = (64, 128, 256, 512)

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        precision: str,
        *,
        channels: Sequence[int],
        rng: np.random.Generator,
    ):
        width = channels[0]
        self.stem = ConvBatchNorm(rng, image_shape[2], width, kernel_size=7, stride=2)
        self.blocks = nnx.List()
        for stage, stage_width in enumerate(channels):
            self.blocks += [
                Block(rng, width, stage_width, stride=2 if stage else 1),
                Block(rng, stage_width, stage_width, stride=1),
            ]
            width = stage_width
        self._init_head(rng, width, num_classes, precision=precision)

    def features(self, x: jax.Array, train: bool) -> jax.Array:
        """`[C, H, W, N]` to `[D, H / 32, W / 32, N]`, rounded up; D of the last stage."""
        x = ops.max_pool(jax.nn.relu(self.stem(x, train)))[:, ::2, ::2]
        for block in self.blocks:
            x = block(x, train)
        return x

    @staticmethod
    def complexity(
        image_shape: tuple[int, int, int], num_classes: int, channels: Sequence[int]
    ) -> Complexity:
        """Size of the network by arithmetic, before anything is allocated."""
        height, width, in_channels = image_shape
        height, width = -(-height // 2), -(-width // 2)
        parts = [_convolution(in_channels, channels[0], 7, height=height, width=width)]
        height, width, in_channels = -(-height // 2), -(-width // 2), channels[0]
        for stage, stage_width in enumerate(channels):
            if stage:
                height, width = -(-height // 2), -(-width // 2)
                parts.append(_convolution(in_channels, stage_width, 1, height=height, width=width))
            for inputs in (in_channels, stage_width, stage_width, stage_width):
                parts.append(_convolution(inputs, stage_width, 3, height=height, width=width))
            in_channels = stage_width
        return _total(parts, in_channels, num_classes)


class SmallCNN(_Classifier):
    """Three 3x3 convolutions with batch norm and ReLU: 19 k parameters.

    Each of the first two is followed by a 2x2 average.
    """

    min_side = 4  # else nothing is left after two averages
    channels = (16, 32, 48)

    def __init__(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        precision: str,
        *,
        channels: Sequence[int],
        rng: np.random.Generator,
    ):
        self.convolutions = nnx.List()
        width = image_shape[2]
        for layer_width in channels:
            self.convolutions.append(ConvBatchNorm(rng, width, layer_width, kernel_size=3))
            width = layer_width
        self._init_head(rng, width, num_classes, precision=precision)

    def features(self, x: jax.Array, train: bool) -> jax.Array:
        """`[C, H, W, N]` to `[D, H / 4, W / 4, N]`, rounded down; D of the last layer."""
        first, second, third = self.convolutions
        x = ops.halve(jax.nn.relu(first(x, train)))
        x = ops.halve(jax.nn.relu(second(x, train)))
        return jax.nn.relu(third(x, train))

    @staticmethod
    def complexity(
        image_shape: tuple[int, int, int], num_classes: int, channels: Sequence[int]
    ) -> Complexity:
        """Size of the network by arithmetic, before anything is allocated."""
        height, width, in_channels = image_shape
        parts = []
        for layer_width in channels:
            parts.append(_convolution(in_channels, layer_width, 3, height=height, width=width))
            height, width, in_channels = height // 2, width // 2, layer_width
        return _total(parts, in_channels, num_classes)


def _convolution(
    in_channels: int, channels: int, kernel_size: int, *, height: int, width: int
) -> Complexity:
    """Size of a convolution with its batch norm; height and width are the output's."""
    kernel = in_channels * channels * kernel_size**2
    return Complexity(kernel + 2 * channels, kernel * height * width)


def _total(convolutions: list[Complexity], width: int, num_classes: int) -> Complexity:
    """Sum of the convolutions and the head over `width` features."""
    parameters = sum(each.parameters for each in convolutions) + (width + 1) * num_classes
    return Complexity(
        parameters, sum(each.multiply_adds for each in convolutions) + width * num_classes
    )
