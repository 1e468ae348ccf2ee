"""Convolutions as pure functions, in the forms that are fast on each backend.

On a CPU their gradients are written for how XLA compiles them. Elsewhere they are XLA's own, which
a library such as cuDNN computes; XLA lays their arrays out as that library wants them. Arrays are
`[C, H, W, N]`, as in `ops`. `benchmarks/README.md` has the measurements behind each form.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

_MAX_UNROLLED_ROWS = 32  # taller images are summed in blocks of rows, so that programs stay small
# Numbers in the shifted copies of an image, which are kept until the gradient is computed.
_MAX_SHIFTED = 1 << 25


def _pad(x: jax.Array, rows: int, columns: int, *, value: float = 0.0) -> jax.Array:
    return jnp.pad(x, ((0, 0), (rows, rows), (columns, columns), (0, 0)), constant_values=value)


def _on_cpu() -> bool:
    return jax.default_backend() == "cpu"


def depthwise(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """Convolves each channel `[C, H, W, N]` with its own `kernel` `[C, k, k]`, k odd.

    Zero padding keeps the size.
    """
    return (depthwise_by_shifts if _on_cpu() else depthwise_of_library)(x, kernel)


def depthwise_of_library(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`depthwise` as XLA's own convolution: on a CPU a loop that uses no vectors."""
    return jax.lax.conv_general_dilated(
        x,
        kernel[:, None].astype(x.dtype),
        (1, 1),
        "SAME",
        dimension_numbers=("CHWN", "OIHW", "CHWN"),
        feature_group_count=x.shape[0],
    )


@jax.custom_vjp
def depthwise_by_shifts(x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`depthwise` as a sum of shifted images."""
    height = x.shape[1]
    width = x.shape[2]
    k = kernel.shape[1]
    padded = _pad(x, k // 2, k // 2)
    # The sum is in float32, also for images in bfloat16.
    padded, kernel = (padded.astype(jnp.float32), kernel.astype(jnp.float32))
    y = jnp.zeros(x.shape, jnp.float32)
    for i in range(k):
        for j in range(k):
            y += padded[:, i : i + height, j : j + width] * kernel[:, i, j, None, None, None]
    return y.astype(x.dtype)


def _depthwise_kernel_gradient(x: jax.Array, g: jax.Array, k: int) -> jax.Array:
    """Gradient `[C, k, k]` of the kernel, for input `x` and output gradient `g`.

    For each column of the kernel the products are added up over the rows of the image into
    `[C, k, W * N]`, which compiles to the same quick loop as the convolution itself; the product
    with ones that follows sums the rest. A plain `sum` would be fused with the loop and lose its
    vectors.
    """
    # Pad the rows to whole blocks; products with the zeros add nothing.
    channels, height, width, n = x.shape
    block = min(height, _MAX_UNROLLED_ROWS)
    blocks = -(-height // block)
    extra = blocks * block - height
    padded = _pad(x, k // 2, k // 2)
    padded = jnp.pad(padded, ((0, 0), (0, extra), (0, 0), (0, 0)))
    g = jnp.pad(g, ((0, 0), (0, extra), (0, 0), (0, 0)))
    padded, g, ones = (
        padded.astype(jnp.float32),
        g.astype(jnp.float32),
        jnp.ones(width * n, jnp.float32),
    )

    def of_rows(start: jax.Array | int) -> jax.Array:
        xs = jax.lax.dynamic_slice_in_dim(padded, start, block + k - 1, 1)
        gs = jax.lax.dynamic_slice_in_dim(g, start, block, 1)
        columns = []
        for j in range(k):
            products = [xs[:, h : h + k, j : j + width] * gs[:, h : h + 1] for h in range(block)]
            total = functools.reduce(jnp.add, products)
            columns.append(total.reshape(channels * k, width * n) @ ones)
        return jnp.stack(columns, axis=1).reshape(channels, k, k)

    # Add up the blocks of rows.
    if blocks == 1:
        return of_rows(0)
    return jax.lax.fori_loop(
        0,
        blocks,
        lambda b, total: total + of_rows(b * block),
        jnp.zeros((channels, k, k), jnp.float32),
    )


def _depthwise_forward(
    x: jax.Array, kernel: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return depthwise_by_shifts(x, kernel), (x, kernel)


def _depthwise_backward(
    residuals: tuple[jax.Array, jax.Array], g: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, kernel = residuals
    gradient = _depthwise_kernel_gradient(x, g, kernel.shape[1])
    return depthwise_by_shifts(g, kernel[:, ::-1, ::-1]), gradient.astype(kernel.dtype)


depthwise_by_shifts.defvjp(_depthwise_forward, _depthwise_backward)


def full_convolution(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """A dense convolution of `[C, H, W, N]` with `kernel` `[D, C, k, k]`, k odd.

    The image is padded with k // 2 zeros on each side.

    On a CPU it is one matrix product over all shifted copies of the image, unless these are too
    many: XLA's own convolutions are ten times as slow inside of a loop, and an epoch is one.
    """
    k = kernel.shape[2]
    # XLA's own convolution, on other backends, for large images and for an open number of them.
    unknown = not isinstance(x.shape[3], int)
    if unknown or not _on_cpu() or x.size * k**2 / stride**2 > _MAX_SHIFTED:
        strides = (stride, stride)
        padding = [(k // 2, k // 2)] * 2
        return jax.lax.conv_general_dilated(
            x, kernel, strides, padding, dimension_numbers=("CHWN", "OIHW", "CHWN")
        )
    # One matrix product over the shifted copies.
    padded = _pad(x, k // 2, k // 2)
    rows, columns = ((side - 1) // stride * stride + 1 for side in x.shape[1:3])
    shifted = [
        padded[:, i : i + rows : stride, j : j + columns : stride]
        for i in range(k)
        for j in range(k)
    ]
    return pointwise(
        jnp.concatenate(shifted), kernel.transpose(0, 2, 3, 1).reshape(kernel.shape[0], -1)
    )


@jax.custom_vjp
def pointwise(x: jax.Array, weight: jax.Array) -> jax.Array:
    """The 1x1 convolution of `[C, H, W, N]` with `weight` `[D, C]`: `[D, H, W, N]`."""
    return (weight @ x.reshape(x.shape[0], -1)).reshape(weight.shape[0], *x.shape[1:])


def _pointwise_forward(
    x: jax.Array, weight: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return pointwise(x, weight), (x, weight)


def _pointwise_backward(
    residuals: tuple[jax.Array, jax.Array], g: jax.Array
) -> tuple[jax.Array, jax.Array]:
    x, weight = residuals
    gradient = g.reshape(g.shape[0], -1) @ x.reshape(x.shape[0], -1).T
    return pointwise(g, weight.T), gradient


pointwise.defvjp(_pointwise_forward, _pointwise_backward)
