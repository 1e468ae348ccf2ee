"""Operations against XLA's own, in value and in gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxevo.networks import ops
from jaxevo.search_space.genome import OPS, Op

# C, H, W, N: odd sizes, single pixels, a batch of one, and more rows than are unrolled.
SHAPES = [(3, 5, 7, 2), (2, 1, 1, 1), (4, 8, 8, 3), (2, 40, 3, 2), (1, 2, 9, 4)]
LAYOUT = ("CHWN", "OIHW", "CHWN")


def normal(rng: np.random.Generator, *shape: int) -> jax.Array:
    return jnp.asarray(rng.standard_normal(shape, np.float32))


def assert_same(function, reference, *args: jax.Array) -> None:
    """Equal values, and equal gradients for a random output gradient."""

    @jax.jit
    def values_and_gradients(g, *args):
        pairs = (jax.vjp(each, *args) for each in (function, reference))
        return [(y, *pullback(g)) for y, pullback in pairs]

    shape = jax.eval_shape(reference, *args).shape
    results = values_and_gradients(normal(np.random.default_rng(1), *shape), *args)
    for found, wanted in zip(*results, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=2e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", [3, 5, 7])
def test_depthwise_is_a_grouped_convolution(shape, k):
    rng = np.random.default_rng(k)

    def reference(x, kernel):
        return jax.lax.conv_general_dilated(
            x,
            kernel[:, None],
            (1, 1),
            "SAME",
            dimension_numbers=LAYOUT,
            feature_group_count=shape[0],
        )

    assert_same(ops.depthwise, reference, normal(rng, *shape), normal(rng, shape[0], k, k))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_convolutions_are_the_librarys_where_there_is_no_cpu(dtype, monkeypatch):
    """The form by platform: the same numbers, as one convolution instead of shifted sums."""
    rng = np.random.default_rng(0)
    x, kernel = normal(rng, 3, 5, 7, 2).astype(dtype), normal(rng, 3, 5, 5)
    here = ops.depthwise(x, kernel)

    def text() -> str:
        return str(
            jax.make_jaxpr(jax.grad(lambda x, k: ops.depthwise(x, k).sum(), (0, 1)))(x, kernel)
        )

    assert "conv_general_dilated" not in text()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "conv_general_dilated" in text()
    there = ops.depthwise(x, kernel)
    assert there.dtype == here.dtype
    accuracy = 1e-5 if dtype == jnp.float32 else 0.1
    np.testing.assert_allclose(
        there.astype(jnp.float32), here.astype(jnp.float32), rtol=accuracy, atol=accuracy
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_pointwise_is_a_1x1_convolution(shape):
    rng = np.random.default_rng(0)

    def reference(x, weight):
        return jax.lax.conv_general_dilated(
            x, weight[:, :, None, None], (1, 1), "SAME", dimension_numbers=LAYOUT
        )

    assert_same(ops.pointwise, reference, normal(rng, *shape), normal(rng, 5, shape[0]))


@pytest.mark.parametrize(
    ("shape", "k", "stride"), [(SHAPES[0], 3, 1), (SHAPES[0], 7, 2), (SHAPES[1], 3, 2)]
)
@pytest.mark.parametrize("limit", [0, 1 << 25])
def test_full_convolution_in_both_of_its_forms(shape, k, stride, limit, monkeypatch):
    monkeypatch.setattr(ops, "_MAX_SHIFTED", limit)
    rng, padding = np.random.default_rng(k), (k // 2, k // 2)

    def reference(x, kernel):
        padded = jnp.pad(x, ((0, 0), padding, padding, (0, 0)))
        return jax.lax.conv_general_dilated(
            padded, kernel, (stride, stride), "VALID", dimension_numbers=LAYOUT
        )

    @jax.jit
    def function(x, kernel):
        return ops.full_convolution(x, kernel, stride)

    assert_same(function, reference, normal(rng, *shape), normal(rng, 5, shape[0], k, k))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ties", [False, True])
def test_max_pool_and_its_choice_among_equals(shape, ties):
    x = normal(np.random.default_rng(0), *shape)
    x = jnp.round(jax.nn.relu(x)) if ties else x

    def reference(x):
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")

    assert_same(ops.max_pool, reference, x)


@pytest.mark.parametrize("shape", SHAPES)
def test_avg_pool_counts_only_pixels_that_exist(shape):
    def total(x):
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME")

    x = normal(np.random.default_rng(0), *shape)
    assert_same(ops.avg_pool, lambda x: total(x) / total(jnp.ones_like(x)), x)


def test_avg_pool_by_hand():
    x = jnp.arange(9.0).reshape(1, 3, 3, 1)
    corner, middle = (0 + 1 + 3 + 4) / 4, 36 / 9
    assert ops.avg_pool(x)[0, 0, 0, 0] == corner
    assert ops.avg_pool(x)[0, 1, 1, 0] == middle


@pytest.mark.parametrize(("height", "width"), [(4, 4), (5, 7), (2, 3)])
def test_halve_floors_odd_sizes(height, width):
    x = normal(np.random.default_rng(0), 2, height, width, 3)
    y = ops.halve(x)
    assert y.shape == (2, height // 2, width // 2, 3)
    np.testing.assert_allclose(y[1, 0, 0], x[1, :2, :2].mean((0, 1)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_and_its_statistics(shape):
    rng = np.random.default_rng(0)
    x, scale, bias = normal(rng, *shape) * 3 + 1, normal(rng, shape[0]), normal(rng, shape[0])

    def reference(x, scale, bias):
        mean, var = x.mean((1, 2, 3), keepdims=True), x.var((1, 2, 3), keepdims=True)
        return (x - mean) / jnp.sqrt(var + ops.EPSILON) * scale[:, None, None, None] + bias[
            :, None, None, None
        ]

    assert_same(lambda *args: ops.batch_norm(*args)[0], reference, x, scale, bias)
    _, mean, var = ops.batch_norm(x, scale, bias)
    np.testing.assert_allclose(mean, x.mean((1, 2, 3)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(var, x.var((1, 2, 3)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        ops.normalize(x, scale, bias, mean=mean, variance=var),
        reference(x, scale, bias),
        rtol=1e-3,
        atol=2e-4,
    )


@pytest.mark.parametrize("op", OPS)
def test_every_operation_keeps_shape_and_type_in_bfloat16(op: Op):
    x = normal(np.random.default_rng(0), 3, 5, 4, 2)
    kernel = (
        normal(np.random.default_rng(1), 3, op.kernel_size, op.kernel_size)
        if op.kernel_size
        else None
    )
    short = ops.spatial(
        op, x.astype(jnp.bfloat16), None if kernel is None else kernel.astype(jnp.bfloat16)
    )
    assert short.shape == x.shape
    assert short.dtype == jnp.bfloat16
    np.testing.assert_allclose(
        short.astype(jnp.float32), ops.spatial(op, x, kernel), rtol=0.1, atol=0.2
    )
