"""Several candidates in one training step: the universal network's programs, mapped over candidates.

On an accelerator a step of one small network is mostly waiting. Mapped, the switch over operations becomes a selection
among all of their results, so this is for devices that have power to spare; on a CPU it is slower. Candidates are
divided among the devices. Letter: `L`, candidates a step.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxevo.config import TrainingConfig
from jaxevo.datasets import Images
from jaxevo.training import trainer as training
from jaxevo.training.trainer import Program, TrainState


class Trainer:
    """Trains `L` candidates at once, each as `training.Trainer` would, but for rounding."""

    def __init__(self, single: training.Trainer, candidates: int):
        self.candidates, self.batch_size = candidates, single.batch_size
        epoch = functools.partial(training.run_epoch, single.graphdef, single.batch_size)
        predict = functools.partial(training.predict_chunk, single.graphdef, single.batch_size)
        mapped = jax.vmap(epoch, in_axes=(0, 0, None, None, 0, None, 0, None))
        self._epoch = Program(mapped, donate_argnums=(0,), clock=single.compile_clock)
        self._predict = Program(
            jax.vmap(predict, in_axes=(0, 0, 0, None)), donate_argnums=(), clock=single.compile_clock
        )
        devices = jax.devices()
        number = max(n for n in range(1, len(devices) + 1) if candidates % n == 0)
        mesh = Mesh(np.array(devices[:number]), ("candidates",))
        self._divided = NamedSharding(mesh, PartitionSpec("candidates"))
        self._everywhere = NamedSharding(mesh, PartitionSpec())

    def train(
        self,
        starts: Sequence[tuple[TrainState, tuple[Any, ...]]],
        images: jax.Array,
        labels: jax.Array,
        config: TrainingConfig,
        seeds: Sequence[tuple[int, ...]],
        subset: np.ndarray,
    ) -> tuple[tuple[Any, Any], list[float]]:
        """Trains from at most `L` pairs of state and module inputs.

        Returns:
            Weights and inputs of all `L` candidates for `accuracies`, and each one's first loss that was not finite, or
            its last. Where fewer than `L` are given, the first ones stand for the rest.
        """
        filled = [index % len(starts) for index in range(self.candidates)]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(starts[index] for index in filled))
        state, inputs = jax.device_put(stacked, self._divided)
        images, labels = jax.device_put((images, labels), self._everywhere)
        steps, settings = jax.device_put(training.plan(config, self.batch_size, len(subset)), self._everywhere)
        worst = np.zeros(self.candidates)
        for epoch in range(config.epochs):
            drawn = [training.draw_epoch(seeds[index], epoch, subset, self.batch_size, len(labels)) for index in filled]
            orders, keys = np.stack([order for order, _ in drawn]), jnp.stack([key for _, key in drawn])
            orders, keys = jax.device_put((orders, keys), self._divided)
            state, losses = self._epoch(state, inputs, images, labels, orders, steps, keys, settings)
            worst = np.where(np.isfinite(worst), np.asarray(losses), worst)
        return (state.weights, inputs), worst.tolist()

    def accuracies(self, trained: tuple[Any, Any], images: Images) -> list[float]:
        """Part of the images that each candidate classifies rightly."""
        weights, inputs = trained
        predictions = []
        for part, number in training.chunks(images.images, self.batch_size):
            predicted = self._predict(*weights, inputs, jax.device_put(part, self._everywhere))
            predictions.append(np.asarray(predicted)[:, :number])
        return (np.concatenate(predictions, axis=1) == images.labels).mean(1).tolist()
