"""How a genome becomes something that a `Trainer` can train, and what was trained the genome's own `Network`.

`UniversalEngine` has one program for all genomes, `CompiledEngine` one for each.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from typing import Any, Protocol

import jax
import numpy as np
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal import UniversalNetwork, encode, from_network, to_network
from jaxevo.search_space import complexity
from jaxevo.search_space.genome import Genome
from jaxevo.training import checkpoints as checkpoint
from jaxevo.training.trainer import CompileClock, Trainer, TrainState, split

Seed = tuple[int, ...]
Weights = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a network is built for, beside its genome."""

    network: NetworkConfig
    image_shape: tuple[int, int, int]
    num_classes: int

    def build(self, model: Architecture, seed: int | Seed = 0) -> Any:
        """A network of the model's own (for a genome `Network`) with fresh weights."""
        if isinstance(model, Baseline):
            return model.build(self.image_shape, self.num_classes, self.network.precision, seed)
        return Network(model, self.network, self.image_shape, self.num_classes, seed)

    def complexity(self, model: Architecture) -> complexity.Complexity:
        """Parameters and multiply-adds of the model's network."""
        if isinstance(model, Baseline):
            return model.complexity(self.image_shape, self.num_classes)
        return complexity.measure(model, self.network, self.image_shape, self.num_classes)

    def load(self, model: Architecture, weights: Weights) -> Any:
        """The model's network with saved weights. Raises `CheckpointError` if they belong to another one."""
        network = self.build(model)
        _, params, stats = split(network)
        set_weights(network, checkpoint.unflatten((params, stats), weights))
        return network


def set_weights(module: Any, weights: tuple[Any, Any]) -> None:
    """Puts parameters and running averages into a module."""
    for state in weights:
        nnx.update(module, state)


@dataclasses.dataclass
class Prepared:
    """A genome ready to be trained."""

    trainer: Trainer
    state: TrainState
    inputs: tuple[Any, ...]  # of the module's call, beside images


class Engine(Protocol):
    """How genomes are compiled."""

    @property
    def compile_clock(self) -> CompileClock:
        """Of all its trainers."""
        ...

    def prepare(self, genome: Genome, /, seed: Seed) -> Prepared:
        """A trainer and fresh weights, the same for every engine but for rounding."""
        ...

    def expect(self, genome: Genome, /, images: jax.Array, labels: jax.Array) -> None:
        """Is told which genome `prepare` will be asked for after the present one has been trained on such data."""
        ...

    def network(self, genome: Genome, /, weights: tuple[Any, Any]) -> Network:
        """The genome's own network with what was trained."""
        ...


class CompiledEngine:
    """A program for each model, dropped with it: those that pile up fill the process's memory maps, and end it.

    That of the next model is compiled in a thread while the present one trains.
    """

    def __init__(self, problem: Problem, batch_size: int):
        self.problem, self.batch_size = problem, batch_size
        self.compile_clock = CompileClock()
        self._last: tuple[Architecture, Trainer] | None = None
        self._compiler = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead: dict[Architecture, concurrent.futures.Future[Trainer]] = {}  # the one asked for next, and its next

    def prepare(self, model: Architecture, seed: Seed) -> Prepared:
        """Builds the model's network; it is compiled when first used, and once for several seeds in a row."""
        graphdef, params, stats = split(self.problem.build(model, seed))
        if self._last is None or self._last[0] != model:
            self._last = None  # its memory can be had for what comes
            self._last = model, self._take(model) or Trainer(graphdef, self.batch_size, self.compile_clock)
        trainer = self._last[1]
        return Prepared(trainer, trainer.start(params, stats), ())

    def expect(self, model: Architecture, images: jax.Array, labels: jax.Array) -> None:
        """Compiles the model's programs in a thread, unless they are there."""
        if model in self._ahead or (self._last and self._last[0] == model):
            return
        self._ahead[model] = self._compiler.submit(self._compile, model, images, labels)
        if len(self._ahead) > 2:
            del self._ahead[next(iter(self._ahead))]  # the oldest, which was not asked for after all

    def _compile(self, model: Architecture, images: jax.Array, labels: jax.Array) -> Trainer:
        graphdef, params, stats = split(self.problem.build(model))
        trainer = Trainer(graphdef, self.batch_size)
        trainer.compile(trainer.start(params, stats), (), images, labels)
        return trainer

    def _take(self, model: Architecture) -> Trainer | None:
        """What the thread has compiled, if it was told of this model; only the waiting for it counts as compiling."""
        future = self._ahead.pop(model, None)
        if future is None:
            return None
        begin = time.perf_counter()
        trainer = future.result()
        self.compile_clock.seconds += time.perf_counter() - begin
        return trainer

    def network(self, model: Architecture, weights: tuple[Any, Any]) -> Any:
        """The network with the trained weights."""
        network = self.problem.build(model)
        set_weights(network, weights)
        return network


class UniversalEngine:
    """One program for all genomes of at most `max_nodes` nodes a cell."""

    def __init__(self, problem: Problem, batch_size: int, max_nodes: int):
        self.problem, self.max_nodes = problem, max_nodes
        self.trainer = Trainer(split(self._empty()).graphdef, batch_size)
        self.compile_clock = self.trainer.compile_clock

    def _empty(self) -> UniversalNetwork:
        return UniversalNetwork(
            self.problem.network, self.max_nodes, self.problem.image_shape, self.problem.num_classes
        )

    def prepare(self, genome: Genome, seed: Seed) -> Prepared:
        """Fills the universal network with fresh weights of the genome's own."""
        universal = self._empty()
        from_network(universal, self.problem.build(genome, seed), genome)
        _, params, stats = split(universal)
        return Prepared(self.trainer, self.trainer.start(params, stats), (encode(genome, self.max_nodes),))

    def expect(self, genome: Genome, images: jax.Array, labels: jax.Array) -> None:
        """Nothing is to be done."""

    def network(self, genome: Genome, weights: tuple[Any, Any]) -> Network:
        """The genome's part of the trained weights."""
        universal, network = self._empty(), self.problem.build(genome)
        set_weights(universal, weights)
        to_network(universal, network, genome)
        return network


def choose_engine(name: str, conv_kind: str) -> str:
    """What `auto` means: on a CPU one program for all, since compiling takes longer there than training.

    On other backends the compiled engine: a switch over operations has not been measured on them.
    """
    if name != "auto":
        return name
    return "universal" if jax.default_backend() == "cpu" and conv_kind == "separable" else "compiled"


def make_engine(name: str, problem: Problem, batch_size: int, max_nodes: int) -> Engine:
    """The engine `universal` or `compiled`. Raises `ValueError` for a network that it cannot build."""
    if name == "universal":
        return UniversalEngine(problem, batch_size, max_nodes)
    return CompiledEngine(problem, batch_size)
