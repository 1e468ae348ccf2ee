"""The rate of learning: how it falls, by itself and after a warm-up."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jaxevo.config import TrainingConfig
from jaxevo.training.schedule import Schedule, make_plan


def test_the_rate_decays_exponentially_from_its_start_to_the_given_fraction():
    schedule = Schedule(1e-3, 0.01, 100)
    found = [float(schedule(jnp.int32(step))) for step in (0, 50, 100)]
    np.testing.assert_allclose(found, [1e-3, 1e-4, 1e-5], rtol=1e-5)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        # warm-up over 2 of 10 steps, then half a cosine: 0.4 * (1 + cos(pi * (t - 2) / 8)) / 2
        (
            "cosine",
            {
                0: 0.0,
                1: 0.2,
                2: 0.4,
                4: 0.4 * (2 + 2**0.5) / 4,
                6: 0.2,
                8: 0.4 * (2 - 2**0.5) / 4,
                10: 0.0,
            },
        ),
        # the same, then 0.4 * 0.0001 ** ((t - 2) / 8)
        ("exponential", {0: 0.0, 1: 0.2, 2: 0.4, 4: 0.04, 6: 0.004, 8: 0.0004, 10: 0.00004}),
    ],
)
def test_after_the_warm_up_the_rate_falls_by_the_schedule(schedule, rates):
    config = TrainingConfig(
        epochs=5, learning_rate=0.4, rate_decay=1e-4, schedule=schedule, warmup=0.2
    )
    steps, settings = make_plan(config, 16, 2 * 16 + 3)
    assert int(steps) == 2
    found = [float(settings.schedule(jnp.int32(step))) for step in rates]
    np.testing.assert_allclose(found, list(rates.values()), rtol=1e-4, atol=1e-7)


def test_a_warm_up_of_less_than_a_step_is_none():
    """The only step of a training would have rate 0."""
    config = TrainingConfig(epochs=1, learning_rate=0.4, schedule="cosine", warmup=0.05)
    _, settings = make_plan(config, 16, 16)
    assert float(settings.schedule(jnp.int32(0))) == pytest.approx(0.4)


def test_a_subset_smaller_than_a_batch_is_one_step():
    steps, _ = make_plan(TrainingConfig(), 16, 3)
    assert int(steps) == 1
