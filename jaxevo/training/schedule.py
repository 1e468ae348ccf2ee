"""A training's settings as arguments of its compiled epoch, so that one program serves all."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxevo.config import TrainingConfig
from jaxevo.training.augmentation import Bounds


class Schedule(NamedTuple):
    """The learning rate at a step.

    It rises linearly over `warmup` steps from 0 to `rate`, and then falls over the others. With t
    of these T steps done it is `rate * decay ** (t / T)` (exponential: paper, section 4.2; how far
    it falls is our choice), or `rate * (1 + cos(pi t / T)) / 2`.
    """

    rate: jax.Array | float
    decay: jax.Array | float
    steps: jax.Array | int
    warmup: jax.Array | float = 0.0
    cosine: jax.Array | bool = False  # else exponentially

    def __call__(self, step: jax.Array | int) -> jax.Array:
        done = jnp.maximum(step - self.warmup, 0) / (self.steps - self.warmup)
        falling = jnp.where(self.cosine, (1 + jnp.cos(jnp.pi * done)) / 2, self.decay**done)
        return self.rate * jnp.where(step < self.warmup, step / self.warmup, falling)


class Plan(NamedTuple):
    """The settings of a training that its steps read."""

    schedule: Schedule
    label_smoothing: jax.Array | float
    bounds: Bounds
    weight_average: jax.Array | float
    class_weights: jax.Array | np.ndarray | None  # [classes]; None: all images count alike


def make_plan(
    config: TrainingConfig,
    batch_size: int,
    num_images: int,
    *,
    class_weights: np.ndarray | None = None,
) -> tuple[jax.Array, Plan]:
    """The steps of an epoch over `num_images` images, and the settings of the whole training."""
    steps = max(1, num_images // batch_size)
    total = steps * config.epochs
    cosine = config.schedule == "cosine"
    # The first step has rate 0. Where the rate rises within less than a step, it would be lost.
    warmup = config.warmup * total if config.warmup * total >= 1 else 0.0
    schedule = Schedule(config.learning_rate, config.rate_decay, total, warmup, cosine)
    settings = Plan(
        schedule,
        config.label_smoothing,
        Bounds(config.max_shift, config.max_rotation, config.max_scale),
        config.weight_average,
        class_weights,
    )
    return jnp.int32(steps), jax.tree.map(jnp.float32, settings)
