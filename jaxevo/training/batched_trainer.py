"""Several candidates in one training step: the universal network's programs, mapped.

On an accelerator a step of one small network is mostly waiting. Mapped, the switch over operations
becomes a selection among all of their results, so this is for devices that have power to spare; on
a CPU it is slower. Candidates are divided among the devices. Letter: `L`, candidates a step.
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
from jaxevo.networks.builder import Weights
from jaxevo.seeds import Seed
from jaxevo.training.data import TrainingData
from jaxevo.training.epoch import TrainState, chunks, draw_epoch, predict_chunk, run_epoch
from jaxevo.training.programs import Program
from jaxevo.training.schedule import make_plan
from jaxevo.training.trainer import Trainer


class BatchedTrainer:
    """Trains `L` candidates at once, each as its `Trainer` would, but for rounding."""

    def __init__(self, single: Trainer, candidates: int):
        self.candidates = candidates
        self.batch_size = single.batch_size
        epoch = functools.partial(run_epoch, single.graphdef, single.batch_size)
        predict = functools.partial(predict_chunk, single.graphdef, single.batch_size)
        mapped_epoch = jax.vmap(epoch, in_axes=(0, 0, None, None, 0, None, 0, None))
        mapped_predict = jax.vmap(predict, in_axes=(0, 0, 0, None))
        self._epoch = Program(mapped_epoch, (0,), single.stopwatch)
        self._predict = Program(mapped_predict, (), single.stopwatch)
        # Divide the candidates among as many devices as divide their number.
        devices = jax.devices()
        number = max(n for n in range(1, len(devices) + 1) if candidates % n == 0)
        mesh = Mesh(np.array(devices[:number]), ("candidates",))
        self._divided = NamedSharding(mesh, PartitionSpec("candidates"))
        self._everywhere = NamedSharding(mesh, PartitionSpec())

    def train(
        self,
        starts: Sequence[tuple[TrainState, tuple[Any, ...]]],
        data: TrainingData,
        config: TrainingConfig,
        seeds: Sequence[Seed],
    ) -> tuple[tuple[Weights, Any], list[float]]:
        """Trains from at most `L` pairs of state and module inputs.

        Returns:
            Weights and inputs of all `L` candidates for `accuracies`, and each one's first loss
            that was not finite, or its last. Where fewer than `L` are given, the first ones stand
            for the rest.
        """
        # Fill up to L candidates, stack them, and lay them and the data on the devices.
        filled = [index % len(starts) for index in range(self.candidates)]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(starts[i] for i in filled))
        state, inputs = jax.device_put(stacked, self._divided)
        images, labels = jax.device_put((data.images, data.labels), self._everywhere)
        plan = make_plan(config, self.batch_size, len(data.subset), data.class_weights)
        steps, settings = jax.device_put(plan, self._everywhere)
        # Each epoch draws every candidate's own order and key.
        worst = np.zeros(self.candidates)
        for epoch in range(config.epochs):
            drawn = [
                draw_epoch(seeds[i], epoch, data.subset, self.batch_size, len(labels))
                for i in filled
            ]
            orders = np.stack([order for order, _ in drawn])
            keys = jnp.stack([key for _, key in drawn])
            orders, keys = jax.device_put((orders, keys), self._divided)
            state, losses = self._epoch(
                state, inputs, images, labels, orders, steps, keys, settings
            )
            worst = np.where(np.isfinite(worst), np.asarray(losses), worst)
        return (state.weights, inputs), worst.tolist()

    def accuracies(self, trained: tuple[Weights, Any], images: Images) -> list[float]:
        """The part of the images that each candidate classifies rightly."""
        weights, inputs = trained
        predictions = []
        for part, number in chunks(images.images, self.batch_size):
            predicted = self._predict(*weights, inputs, jax.device_put(part, self._everywhere))
            predictions.append(np.asarray(predicted)[:, :number])
        return (np.concatenate(predictions, axis=1) == images.labels).mean(1).tolist()
