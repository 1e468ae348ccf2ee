"""The operations of the search space as pure functions.

Their gradients are written for how XLA compiles them on a CPU. `convolutions` has those.

Arrays are `[C, H, W, N]`: C channels, H and W pixels, N images of a batch. With the batch innermost
a shift by a pixel is an offset of whole vectors, a product over channels is one long matrix
product, and a concatenation over channels is a plain copy. `benchmarks/README.md` has the
measurements behind each form.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from jaxevo.networks.convolutions import depthwise
from jaxevo.search_space.genome import Op

EPSILON = 1e-5  # of batch norm


def _neighbours(x: jax.Array, axis: int, value: float) -> tuple[jax.Array, jax.Array]:
    """`x[i - 1]` and `x[i + 1]` along an axis, `value` beyond the border."""
    size = x.shape[axis]
    widths = [(0, 0)] * x.ndim
    widths[axis] = (1, 1)
    padded = jnp.pad(x, widths, constant_values=value)
    return jax.lax.slice_in_dim(padded, 0, size, axis=axis), jax.lax.slice_in_dim(
        padded, 2, size + 2, axis=axis
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def _max_of_three(x: jax.Array, axis: int) -> jax.Array:
    before, after = _neighbours(x, axis, -jnp.inf)
    return jnp.maximum(jnp.maximum(before, x), after)


def _max_of_three_forward(x: jax.Array, axis: int) -> tuple[jax.Array, jax.Array]:
    return _max_of_three(x, axis), x


def _max_of_three_backward(axis: int, x: jax.Array, g: jax.Array) -> tuple[jax.Array]:
    """The first of equal maxima gets the whole gradient, as in `jax.lax.reduce_window`."""
    before, after = _neighbours(x, axis, -jnp.inf)
    first = (before >= x) & (before >= after)
    second = ~first & (x >= after)
    zero = jnp.zeros((), g.dtype)
    to_before = jnp.where(first, g, zero)
    to_after = jnp.where(first | second, zero, g)
    return (
        jnp.where(second, g, zero)
        + _neighbours(to_before, axis, 0)[1]
        + _neighbours(to_after, axis, 0)[0],
    )


_max_of_three.defvjp(_max_of_three_forward, _max_of_three_backward)


def max_pool(x: jax.Array) -> jax.Array:
    """3x3 maximum at stride 1; the border's windows are cut off."""
    return _max_of_three(_max_of_three(x, 2), 1)


def _box_sum(x: jax.Array) -> jax.Array:
    for axis in (2, 1):
        before, after = _neighbours(x, axis, 0)
        x = before + x + after
    return x


@jax.custom_vjp
def avg_pool(x: jax.Array) -> jax.Array:
    """3x3 average at stride 1 over the pixels that exist."""
    return _box_sum(x) / _window_sizes(x)


def _window_sizes(x: jax.Array) -> jax.Array:
    return _box_sum(jnp.ones((1, x.shape[1], x.shape[2], 1), x.dtype))


avg_pool.defvjp(lambda x: (avg_pool(x), None), lambda _, g: (_box_sum(g / _window_sizes(g)),))


def halve(x: jax.Array) -> jax.Array:
    """2x2 average at stride 2, after a reduction cell; an odd last row or column is left out."""
    channels, height, width, n = x.shape
    x = x[:, : height // 2 * 2, : width // 2 * 2].reshape(
        channels, height // 2, 2, width // 2, 2, n
    )
    return (x[:, :, 0, :, 0] + x[:, :, 0, :, 1] + x[:, :, 1, :, 0] + x[:, :, 1, :, 1]) * 0.25


def _per_channel(v: jax.Array) -> jax.Array:
    return v[:, None, None, None]


@jax.custom_vjp
def batch_norm(
    x: jax.Array, scale: jax.Array, bias: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Normalises with the statistics of the batch.

    Returns the output, the mean `[C]` and the variance `[C]` (float32, without gradient).
    """
    return _batch_norm_forward(x, scale, bias)[0]


def _batch_norm_forward(x: jax.Array, scale: jax.Array, bias: jax.Array) -> tuple:
    wide = x.astype(jnp.float32)
    mean = wide.mean((1, 2, 3))
    variance = jnp.square(wide - _per_channel(mean)).mean((1, 2, 3))
    y = normalize(x, scale, bias, mean=mean, variance=variance)
    return (y, mean, variance), (x, scale, mean, jax.lax.rsqrt(variance + EPSILON))


def _batch_norm_backward(
    residuals: tuple, cotangents: tuple
) -> tuple[jax.Array, jax.Array, jax.Array]:
    x, scale, mean, inverse = residuals
    g = cotangents[0].astype(jnp.float32)
    normalized = (x.astype(jnp.float32) - _per_channel(mean)) * _per_channel(inverse)
    bias_gradient = g.sum((1, 2, 3))
    scale_gradient = (g * normalized).sum((1, 2, 3))
    m = x.size // x.shape[0]
    centred = g - _per_channel(bias_gradient / m) - normalized * _per_channel(scale_gradient / m)
    return (centred * _per_channel(scale * inverse)).astype(x.dtype), scale_gradient, bias_gradient


batch_norm.defvjp(_batch_norm_forward, _batch_norm_backward)


def normalize(
    x: jax.Array, scale: jax.Array, bias: jax.Array, *, mean: jax.Array, variance: jax.Array
) -> jax.Array:
    """Normalises `[C, H, W, N]` with given statistics `[C]`."""
    factor = scale * jax.lax.rsqrt(variance + EPSILON)
    shift = bias - mean * factor
    return (x.astype(jnp.float32) * _per_channel(factor) + _per_channel(shift)).astype(x.dtype)


def spatial(op: Op, x: jax.Array, kernel: jax.Array | None) -> jax.Array:
    """The part of an operation before its 1x1 convolution.

    `kernel` `[C, k, k]` is given for convolutions only.
    """
    if op.kernel_size:
        assert kernel is not None
        return depthwise(jax.nn.relu(x), kernel)
    return {Op.IDENTITY: lambda v: v, Op.MAX_POOL_3X3: max_pool, Op.AVG_POOL_3X3: avg_pool}[op](x)
