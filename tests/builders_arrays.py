"""Functions of arrays against others that compute the same."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxevo.networks import convolutions, ops

# C, H, W, N: odd sizes, single pixels, a batch of one, and more rows than are unrolled.
SHAPES = [(3, 5, 7, 2), (2, 1, 1, 1), (4, 8, 8, 3), (2, 40, 3, 2), (1, 2, 9, 4)]


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


def compile_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Operations are compiled one by one and kept, where they are looked up."""
    names = {
        convolutions: ("depthwise", "full_convolution", "pointwise"),
        ops: ("depthwise", "max_pool", "avg_pool", "batch_norm", "halve"),
    }
    for module, listed in names.items():
        for name in listed:
            monkeypatch.setattr(module, name, jax.jit(getattr(module, name)))
