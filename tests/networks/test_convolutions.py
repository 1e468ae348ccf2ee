"""Convolutions against XLA's own, in value and in gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from builders_arrays import SHAPES, assert_same, normal

from jaxevo.networks import convolutions

LAYOUT = ("CHWN", "OIHW", "CHWN")


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

    assert_same(convolutions.depthwise, reference, normal(rng, *shape), normal(rng, shape[0], k, k))


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_convolutions_are_the_librarys_where_there_is_no_cpu(dtype, monkeypatch):
    """The form by platform: the same numbers, as one convolution instead of shifted sums."""
    rng = np.random.default_rng(0)
    x, kernel = normal(rng, 3, 5, 7, 2).astype(dtype), normal(rng, 3, 5, 5)
    here = convolutions.depthwise(x, kernel)

    def text() -> str:
        return str(
            jax.make_jaxpr(jax.grad(lambda x, k: convolutions.depthwise(x, k).sum(), (0, 1)))(
                x, kernel
            )
        )

    assert "conv_general_dilated" not in text()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "conv_general_dilated" in text()
    there = convolutions.depthwise(x, kernel)
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

    assert_same(convolutions.pointwise, reference, normal(rng, *shape), normal(rng, 5, shape[0]))


@pytest.mark.parametrize(
    ("shape", "k", "stride"), [(SHAPES[0], 3, 1), (SHAPES[0], 7, 2), (SHAPES[1], 3, 2)]
)
@pytest.mark.parametrize("limit", [0, 1 << 25])
def test_full_convolution_in_both_of_its_forms(shape, k, stride, limit, monkeypatch):
    monkeypatch.setattr(convolutions, "_MAX_SHIFTED", limit)
    rng, padding = np.random.default_rng(k), (k // 2, k // 2)

    def reference(x, kernel):
        padded = jnp.pad(x, ((0, 0), padding, padding, (0, 0)))
        return jax.lax.conv_general_dilated(
            padded, kernel, (stride, stride), "VALID", dimension_numbers=LAYOUT
        )

    @jax.jit
    def function(x, kernel):
        return convolutions.full_convolution(x, kernel, stride)

    assert_same(function, reference, normal(rng, *shape), normal(rng, 5, shape[0], k, k))
