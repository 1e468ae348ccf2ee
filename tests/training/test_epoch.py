"""An epoch's loss, and its order of images."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from builders_training import BATCH

from jaxevo.training.epoch import cross_entropy, draw_epoch


def test_a_smoothed_label_is_spread_over_all_classes():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(0, 3, (6, 5)).astype(np.float32), rng.integers(0, 5, 6)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for smoothing in (0.0, 0.1, 0.9):
        targets = (1 - smoothing) * np.eye(5)[labels] + smoothing / 5
        expected = -(targets * log_probabilities).sum(-1)
        np.testing.assert_allclose(
            cross_entropy(jnp.array(logits), jnp.array(labels), smoothing), expected, rtol=1e-5
        )


def drawn_order(subset: np.ndarray, batch_size: int, length: int, seed: int = 0) -> np.ndarray:
    return draw_epoch((seed,), 0, subset, batch_size=batch_size, length=length)[0]


def test_an_epoch_takes_every_image_once_and_pads_for_one_program():
    subset = np.arange(100, 140)
    order = drawn_order(subset, BATCH, 300)
    assert order.shape == (300,)
    assert sorted(order[:40]) == list(subset)
    assert not np.array_equal(order[:40], subset)


def test_a_subset_smaller_than_a_batch_fills_one():
    order = drawn_order(np.array([7, 8, 9]), 4, 2)
    assert order.shape == (4,)
    assert set(order) == {7, 8, 9}


def test_every_epoch_of_every_seed_is_drawn_anew():
    subset = np.arange(40)
    draws = [
        draw_epoch((seed, 1), epoch, subset, batch_size=BATCH, length=40)
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert len({order.tobytes() for order, _ in draws}) == 4
    assert len({jax.random.key_data(key).tobytes() for _, key in draws}) == 4
    again, key = draw_epoch((0, 1), 0, subset, batch_size=BATCH, length=40)
    np.testing.assert_array_equal(again, draws[0][0])
    assert key == draws[0][1]
