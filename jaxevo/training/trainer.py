"""Training and prediction of one module definition, compiled once for images of one shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from jaxevo.config import TrainingConfig
from jaxevo.datasets import Images
from jaxevo.networks.builder import Weights
from jaxevo.seeds import Seed
from jaxevo.stopwatch import Stopwatch
from jaxevo.training.data import TrainingData
from jaxevo.training.epoch import (
    ADAM,
    CHUNK_BATCHES,
    TrainState,
    chunks,
    draw_epoch,
    predict_chunk,
    run_epoch,
)
from jaxevo.training.measurement import Measurement, measure
from jaxevo.training.programs import Program
from jaxevo.training.schedule import make_plan


class Trainer:
    """Compiled epoch and prediction of one module definition.

    Args:
        graphdef: The module's definition.
        batch_size: `S`, images of a step.
        stopwatch: Is told the seconds of compiling.
    """

    def __init__(self, graphdef: nnx.GraphDef, batch_size: int, stopwatch: Stopwatch | None = None):
        self.graphdef = graphdef
        self.batch_size = batch_size
        self.stopwatch = stopwatch or Stopwatch()
        constants = (graphdef, batch_size)
        self._epoch = Program(run_epoch, constants, (0,), stopwatch=self.stopwatch)
        self._predict = Program(predict_chunk, constants, (), stopwatch=self.stopwatch)

    def compile(self, state: TrainState, inputs: tuple[Any, ...], data: TrainingData) -> None:
        """Compiles both programs, so that a training on data of these shapes begins at once."""
        # An epoch over the shapes alone: values of the settings are arguments of the program.
        steps, settings = make_plan(
            TrainingConfig(), self.batch_size, len(data.labels), class_weights=data.class_weights
        )
        everything = np.arange(len(data.labels))
        order, key = draw_epoch(
            (0,), 0, everything, batch_size=self.batch_size, length=len(data.labels)
        )
        arguments = (order, steps, key, settings)
        self._epoch.compile(state, inputs, data.images, data.labels, *arguments)
        # A chunk of predictions.
        chunk = np.zeros((self.batch_size * CHUNK_BATCHES, *data.images.shape[1:]), np.uint8)
        self._predict.compile(*state.weights, inputs, chunk)

    def start(self, params: nnx.State, stats: nnx.State) -> TrainState:
        """The state before the first step.

        Its arrays are copies, since the device gives up a state's buffers at every epoch.
        """
        (params, stats), average = (jax.tree.map(jnp.array, (params, stats)) for _ in range(2))
        return TrainState(params, stats, ADAM.init(params), jnp.zeros((), jnp.int32), average)

    def epochs(
        self,
        state: TrainState,
        inputs: tuple[Any, ...],
        data: TrainingData,
        *,
        config: TrainingConfig,
        seed: Seed,
        first_epoch: int = 0,
    ) -> Iterator[tuple[TrainState, float]]:
        """Trains; after each epoch yields the state and the mean loss.

        Args:
            state: Given up to the device; use only what is yielded.
            inputs: Further arguments of the module's call (an encoded genome, or none).
            data: Images on the device, and which of them are trained on.
            config: How to train; its batch size must be the trainer's.
            seed: The order of images, dropout and augmentation derive from it.
            first_epoch: Where to go on after an interruption.
        """
        steps, settings = make_plan(
            config, self.batch_size, len(data.subset), class_weights=data.class_weights
        )
        for epoch in range(first_epoch, config.epochs):
            order, key = draw_epoch(
                seed, epoch, data.subset, batch_size=self.batch_size, length=len(data.labels)
            )
            state, loss = self._epoch(
                state, inputs, data.images, data.labels, order, steps, key, settings
            )
            yield state, float(loss)

    def logits(self, weights: Weights, inputs: tuple[Any, ...], images: np.ndarray) -> np.ndarray:
        """Logits float32 `[M, classes]` of images uint8 `[M, H, W, C]`, M any number."""
        parts = [
            np.asarray(self._predict(*weights, inputs, part))[:number]
            for part, number in chunks(images, self.batch_size)
        ]
        return np.concatenate(parts)

    def predict(self, weights: Weights, inputs: tuple[Any, ...], images: np.ndarray) -> np.ndarray:
        """The most likely class int32 `[M]` of images uint8 `[M, H, W, C]`, M any number."""
        return self.logits(weights, inputs, images).argmax(-1).astype(np.int32)

    def measure(self, weights: Weights, inputs: tuple[Any, ...], images: Images) -> Measurement:
        """Accuracy and cross entropy on the images."""
        return measure(self.logits(weights, inputs, images.images), images.labels)
