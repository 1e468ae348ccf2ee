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
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxevo.config import TrainingConfig
from jaxevo.datasets import Images
from jaxevo.networks.builder import Weights
from jaxevo.seeds import Seed
from jaxevo.training.data import TrainingData
from jaxevo.training.epoch import TrainState, chunks, draw_epoch, predict_chunk, run_epoch
from jaxevo.training.measurement import Measurement, measure
from jaxevo.training.programs import Program
from jaxevo.training.schedule import make_plan
from jaxevo.training.trainer import Trainer


def _run_epochs(graphdef: nnx.GraphDef, batch_size: int, *args: Any) -> Any:
    """`run_epoch` with a state, inputs, an order and a key for each candidate."""
    epoch = functools.partial(run_epoch, graphdef, batch_size)
    return jax.vmap(epoch, in_axes=(0, 0, None, None, 0, None, 0, None))(*args)


def _predict_chunks(graphdef: nnx.GraphDef, batch_size: int, *args: Any) -> Any:
    """`predict_chunk` with weights and inputs for each candidate."""
    predict = functools.partial(predict_chunk, graphdef, batch_size)
    return jax.vmap(predict, in_axes=(0, 0, 0, None))(*args)


class BatchedTrainer:
    """Trains `L` candidates at once, each as its `Trainer` would, but for rounding."""

    def __init__(self, single: Trainer, candidates: int):
        self.candidates = candidates
        self.batch_size = single.batch_size
        constants = (single.graphdef, single.batch_size)
        self._epoch = Program(_run_epochs, constants, (0,), stopwatch=single.stopwatch)
        self._predict = Program(_predict_chunks, constants, (), stopwatch=single.stopwatch)
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
        *,
        seeds: Sequence[Seed],
    ) -> tuple[tuple[Weights, Any], list[float]]:
        """Trains from at most `L` pairs of state and module inputs.

        Returns:
            Weights and inputs of all `L` candidates for `measure`, and each one's mean loss over
            the epochs. Where fewer than `L` are given, the first ones stand for the rest.
        """
        # Fill up to L candidates, stack them, and lay them and the data on the devices.
        filled = [index % len(starts) for index in range(self.candidates)]
        stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(starts[i] for i in filled))
        state, inputs = jax.device_put(stacked, self._divided)
        images, labels = jax.device_put((data.images, data.labels), self._everywhere)
        plan = make_plan(
            config, self.batch_size, len(data.subset), class_weights=data.class_weights
        )
        steps, settings = jax.device_put(plan, self._everywhere)
        # Each epoch draws every candidate's own order and key.
        total = np.zeros(self.candidates)
        for epoch in range(config.epochs):
            drawn = [
                draw_epoch(
                    seeds[i], epoch, data.subset, batch_size=self.batch_size, length=len(labels)
                )
                for i in filled
            ]
            orders = np.stack([order for order, _ in drawn])
            keys = jnp.stack([key for _, key in drawn])
            orders, keys = jax.device_put((orders, keys), self._divided)
            state, losses = self._epoch(
                state, inputs, images, labels, orders, steps, keys, settings
            )
            total += np.asarray(losses)
        return (state.weights, inputs), (total / config.epochs).tolist()

    def measure(self, trained: tuple[Weights, Any], images: Images) -> list[Measurement]:
        """Accuracy and cross entropy of each candidate on the images."""
        weights, inputs = trained
        parts = []
        for part, number in chunks(images.images, self.batch_size):
            logits = self._predict(*weights, inputs, jax.device_put(part, self._everywhere))
            parts.append(np.asarray(logits)[:, :number])
        return [measure(logits, images.labels) for logits in np.concatenate(parts, axis=1)]
