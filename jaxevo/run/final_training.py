"""Trainings by the recipe of the final training, on all images that are not for validation."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxevo.config import SearchConfig
from jaxevo.networks.baselines import Architecture
from jaxevo.networks.builder import Weights
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.reporter import Reporter
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.engines import CompiledEngine, Engine, make_engine
from jaxevo.training.epoch import TrainState
from jaxevo.training.fit import Epoch, Prepared, fit


@dataclasses.dataclass(frozen=True)
class FinalNetwork:
    """A network that was trained to the end."""

    network: Any  # the model's own module
    prepared: Prepared  # of its engine
    weights: Weights  # as the engine has them
    seconds: float  # of all sessions that trained it
    curve: tuple[Epoch, ...]  # its scores are validation accuracies

    def predict(self, images: np.ndarray) -> np.ndarray:
        """The most likely class int32 `[M]` of images uint8 `[M, H, W, C]`."""
        prepared = self.prepared
        return prepared.trainer.predict(self.weights, prepared.inputs, images)


@dataclasses.dataclass(frozen=True)
class FinalTrainer:
    """Trains genomes and hand-designed networks alike.

    Attributes:
        config: The search's.
        evaluator: Its engine, data on the device and stopwatch are used.
        reporter: Is told of each epoch.
    """

    config: SearchConfig
    evaluator: Evaluator
    reporter: Reporter

    @functools.cached_property
    def engine(self) -> Engine:
        """The engine of genomes: the search's own if the batch sizes agree.

        With another batch size the search's programs would not fit, so another engine is made.
        """
        config = self.config
        batch_size = config.final_training.batch_size
        if batch_size == config.training.batch_size:
            return self.evaluator.engine
        builder = self.evaluator.builder
        max_nodes = config.evolution.max_nodes
        stopwatch = self.evaluator.stopwatch
        return make_engine(
            config.engine, builder, batch_size, max_nodes=max_nodes, stopwatch=stopwatch
        )

    def train(
        self,
        model: Architecture,
        seed: Seed,
        checkpoints: pathlib.Path,
        *,
        stage: str,
        identity: Mapping[str, Any],
    ) -> FinalNetwork:
        """Trains a model, with checkpoints between epochs, from which a later call goes on.

        Args:
            model: A genome or a hand-designed network.
            seed: Of the training.
            checkpoints: Folder of its checkpoints.
            stage: What the reporter is told.
            identity: Names the training beside its recipe; another one's checkpoints are not used.

        Raises:
            DivergedError: The loss or a weight is not finite any more.
            OSError: A checkpoint cannot be written.
        """
        config = self.config.final_training
        engine: Any = self.engine if isinstance(model, Genome) else self._compiled()
        self.reporter.stage(stage, 0, config.epochs)

        def on_epoch(epoch: int, loss: float) -> None:
            self.reporter.training(stage, epoch, config.epochs, note=f"loss {loss:.4f}")

        def measure(state: TrainState) -> float:
            with self.evaluator.stopwatch.part("evaluate"):
                validation = self.evaluator.validation
                measured = prepared.trainer.measure(state.weights, prepared.inputs, validation)
                return measured.accuracy

        with self.evaluator.stopwatch.part("train"):
            prepared = engine.prepare(model, seed)
            trained = fit(
                prepared,
                self.evaluator.data.whole(),
                config,
                seed=seed,
                checkpoints=Checkpoints(checkpoints),
                identity={**identity, "training": dataclasses.asdict(config)},
                measure=measure,
                on_epoch=on_epoch,
                message=self.reporter.message,
            )
        weights = trained.state.weights
        network = engine.network(model, weights)
        return FinalNetwork(network, prepared, weights, trained.seconds, trained.curve)

    def _compiled(self) -> CompiledEngine:
        """An engine that takes a hand-designed network."""
        batch_size = self.config.final_training.batch_size
        return CompiledEngine(self.evaluator.builder, batch_size, self.evaluator.stopwatch)
