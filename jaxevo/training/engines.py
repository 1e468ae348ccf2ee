"""Engines: each turns a model into a trainer with initial weights, and trained ones into a network.

`UniversalEngine` has one program for all genomes, `NativeEngine` the same with cells in C++, and
`CompiledEngine` one program for each model.
"""

from __future__ import annotations

import concurrent.futures
from typing import Any, Protocol

from jaxevo.config import NetworkConfig
from jaxevo.networks import native
from jaxevo.networks.baselines import Architecture
from jaxevo.networks.builder import NetworkBuilder, Weights, set_weights, split
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal import UniversalNetwork
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network, to_network
from jaxevo.search_space.complexity import network_settings
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed
from jaxevo.stopwatch import Stopwatch
from jaxevo.training.data import TrainingData
from jaxevo.training.engine_choice import choose_engine
from jaxevo.training.fit import Prepared
from jaxevo.training.trainer import Trainer


class Engine(Protocol):
    """Prepares genomes for training."""

    @property
    def stopwatch(self) -> Stopwatch:
        """Stopwatch that is told the seconds of compiling."""
        ...

    def prepare(self, genome: Genome, /, seed: Seed) -> Prepared:
        """A trainer and fresh weights, the same for every engine but for rounding."""
        ...

    def expect(self, genome: Genome, /, data: TrainingData) -> None:
        """May begin to compile the program of a genome, which `prepare` will get after this one."""
        ...

    def network(self, genome: Genome, /, weights: Weights) -> Network:
        """The genome's own network with what was trained."""
        ...


class CompiledEngine:
    """A program for each model; the next model's is compiled in a thread while this one trains.

    One model's program is kept at a time: thousands exhaust the process's memory maps, and it dies.
    """

    def __init__(
        self, builder: NetworkBuilder, batch_size: int, stopwatch: Stopwatch | None = None
    ):
        self.builder = builder
        self.batch_size = batch_size
        self.stopwatch = stopwatch or Stopwatch()
        self._last: tuple[Architecture, Trainer] | None = None
        self._compiler = concurrent.futures.ThreadPoolExecutor(1)
        # The model that is asked for next, and the one after it.
        self._ahead: dict[Architecture, concurrent.futures.Future[Trainer]] = {}

    def prepare(self, model: Architecture, seed: Seed) -> Prepared:
        """Builds the model's network.

        It is compiled when first used, and once for several seeds in a row.
        """
        graphdef, params, stats = split(self.builder.build(model, seed))
        if self._last is None or self._last[0] != model:
            self._last = None  # frees its memory for the next one
            trainer = self._take(model) or Trainer(graphdef, self.batch_size, self.stopwatch)
            self._last = model, trainer
        trainer = self._last[1]
        return Prepared(trainer, trainer.start(params, stats), ())

    def expect(self, model: Architecture, data: TrainingData) -> None:
        """Compiles the model's programs in a thread, unless they are there."""
        if model in self._ahead or (self._last and self._last[0] == model):
            return
        self._ahead[model] = self._compiler.submit(self._compile, model, data)
        if len(self._ahead) > 2:
            # The oldest was not asked for after all.
            self._ahead.pop(next(iter(self._ahead))).cancel()

    def _compile(self, model: Architecture, data: TrainingData) -> Trainer:
        """Compiles a model in the thread, whose time this engine's stopwatch does not count."""
        graphdef, params, stats = split(self.builder.build(model))
        trainer = Trainer(graphdef, self.batch_size)
        trainer.compile(trainer.start(params, stats), (), data)
        return trainer

    def _take(self, model: Architecture) -> Trainer | None:
        """Takes the thread's program, if the thread was told of this model.

        Waiting for it counts as compiling.
        """
        future = self._ahead.pop(model, None)
        if future is None:
            return None
        with self.stopwatch.part("compile"):
            return future.result()

    def network(self, model: Architecture, weights: Weights) -> Any:
        """The network with the trained weights."""
        network = self.builder.build(model)
        set_weights(network, weights)
        return network


class UniversalEngine:
    """One program for all genomes of at most `max_nodes` nodes a cell, if their layout is alike.

    Where the layout is a gene, there is a program for each layout.
    """

    network_type = UniversalNetwork

    def __init__(
        self,
        builder: NetworkBuilder,
        batch_size: int,
        max_nodes: int,
        *,
        stopwatch: Stopwatch | None = None,
    ):
        self.builder = builder
        self.batch_size = batch_size
        self.max_nodes = max_nodes
        self.stopwatch = stopwatch or Stopwatch()
        self._trainers: dict[NetworkConfig, Trainer] = {}

    def trainer(self, settings: NetworkConfig) -> Trainer:
        """The trainer of all genomes whose networks have these settings."""
        if settings not in self._trainers:
            graphdef = split(self._empty(settings)).graphdef
            self._trainers[settings] = Trainer(graphdef, self.batch_size, self.stopwatch)
        return self._trainers[settings]

    def _empty(self, settings: NetworkConfig) -> UniversalNetwork:
        return self.network_type(
            settings,
            self.max_nodes,
            self.builder.image_shape,
            num_classes=self.builder.num_classes,
        )

    def _settings(self, genome: Genome) -> NetworkConfig:
        return network_settings(genome, self.builder.network)

    def prepare(self, genome: Genome, seed: Seed) -> Prepared:
        """Fills the universal network with fresh weights of the genome's own."""
        settings = self._settings(genome)
        universal = self._empty(settings)
        # Initial weights are those of the genome's own network, copied into the slots.
        from_network(universal, self.builder.build(genome, seed), genome)
        _, params, stats = split(universal)
        inputs = (encode(genome, self.max_nodes),)
        trainer = self.trainer(settings)
        return Prepared(trainer, trainer.start(params, stats), inputs)

    def expect(self, genome: Genome, data: TrainingData) -> None:
        """Does nothing: one program serves all genomes of a layout."""

    def network(self, genome: Genome, weights: Weights) -> Network:
        """The genome's part of the trained weights."""
        universal = self._empty(self._settings(genome))
        network = self.builder.build(genome)
        set_weights(universal, weights)
        to_network(universal, network, genome)
        return network


class NativeEngine(UniversalEngine):
    """The universal engine with its cells computed by the native kernels: on CPUs, in float32."""

    network_type = native.NativeNetwork


def make_engine_for(
    name: str, model: Architecture, builder: NetworkBuilder, *, batch_size: int
) -> Any:
    """The named engine for one model; its cells have slots for this genome's nodes only."""
    if not isinstance(model, Genome):
        return CompiledEngine(builder, batch_size)
    max_nodes = max(cell.num_nodes for cell in model.cells)
    return make_engine(name, builder, batch_size, max_nodes=max_nodes)


def make_engine(
    name: str,
    builder: NetworkBuilder,
    batch_size: int,
    *,
    max_nodes: int,
    candidates_per_step: int = 1,
    stopwatch: Stopwatch | None = None,
) -> Engine:
    """Makes the engine of a name, for trainings of so many candidates a step.

    Raises `InputError` for an unknown name, or for a network that the engine cannot build.
    """
    chosen = choose_engine(name, builder.network, candidates_per_step)
    if chosen == "native":
        return NativeEngine(builder, batch_size, max_nodes, stopwatch=stopwatch)
    if chosen == "universal":
        return UniversalEngine(builder, batch_size, max_nodes, stopwatch=stopwatch)
    return CompiledEngine(builder, batch_size, stopwatch)
