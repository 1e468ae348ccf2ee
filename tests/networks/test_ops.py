"""Operations against XLA's own, in value and in gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders_arrays import SHAPES, assert_same, normal

from jaxevo.networks import ops
from jaxevo.search_space.genome import OPS, Op


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
