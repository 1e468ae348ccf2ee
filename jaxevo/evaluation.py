"""From a genome to its fitness: the engines that train it, and what happens when that fails.

An engine turns a genome into something a `Trainer` can train, and what was trained into the genome's own `Network`.
`Evaluator` adds the data, times each part, and turns whatever goes wrong with a candidate into a reason instead of
the end of the search.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import logging
import math
import os
import pathlib
import platform
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import jax
import numpy as np
from flax import nnx

from jaxevo import checkpoint, complexity, together
from jaxevo.baselines import Architecture, Baseline
from jaxevo.config import NetworkConfig, SearchConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.genome import Genome
from jaxevo.network import Network
from jaxevo.training import Trainer, TrainState, split
from jaxevo.universal import UniversalNetwork, encode, from_network, to_network

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
        self._last: tuple[Architecture, Trainer] | None = None
        self._compiler = concurrent.futures.ThreadPoolExecutor(1)
        self._ahead: dict[Architecture, concurrent.futures.Future[Trainer]] = {}  # the one asked for next, and its next

    def prepare(self, model: Architecture, seed: Seed) -> Prepared:
        """Builds the model's network; it is compiled when first used, and once for several seeds in a row."""
        graphdef, params, stats = split(self.problem.build(model, seed))
        if self._last is None or self._last[0] != model:
            self._last = None  # its memory can be had for what comes
            self._last = model, self._take(model) or Trainer(graphdef, self.batch_size)
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
        trainer.compile_clock.seconds = time.perf_counter() - begin
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


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """A candidate's result; either `accuracy` or `failure` is set."""

    accuracy: float | None
    failure: str | None
    details: str | None  # traceback of a failure
    seconds: dict[str, float]  # compile, train, evaluate


class DivergedError(ArithmeticError):
    """The loss is not finite any more."""


def keep_compiled(folder: str) -> None:
    """Takes programs that an earlier process has compiled from this folder, and keeps new ones there."""
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def on_device(images: Images) -> tuple[jax.Array, jax.Array]:
    """Pixels and labels where they are trained on."""
    return jax.device_put((images.images, images.labels))


# What a candidate's training may raise without ending the search; XLA's errors, memory running out among them, are
# RuntimeErrors.
_FAILURES = (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError)


class _Clock:
    """Seconds of a candidate by part; those of compiling are kept apart from the part in which they fell."""

    def __init__(self, trainer: Trainer | together.Trainer | None = None):
        self.seconds = {"compile": 0.0, "train": 0.0, "evaluate": 0.0}
        self.trainer = trainer

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds up what happens within, also when it fails; compiling done before, for an estimate, is not within."""
        begin, known = time.perf_counter(), self.trainer
        before = known.compile_clock.seconds if known else 0.0
        try:
            yield
        finally:
            charged = within = 0.0
            if self.trainer is not None:
                charged = self.trainer.charge_compile_seconds()
                within = self.trainer.compile_clock.seconds - before if known else charged
            self.seconds["compile"] += charged
            self.seconds[name] += max(0.0, time.perf_counter() - begin - within)


EpochCallback = Callable[[int, TrainState, float], None]


class Evaluator:
    """Trains genomes on the training images and measures their accuracy on the validation images.

    Args:
        config: The search's configuration; `engine` must not be `auto`.
        problem: What networks are built for.
        train: All training images; they stay on the device.
        validation: The images that fitness is measured on.
    """

    def __init__(self, config: SearchConfig, problem: Problem, train: Images, validation: Images):
        self.config, self.problem = config, problem
        self.validation = validation
        self.images, self.labels = on_device(train)
        self.engine = make_engine(config.engine, problem, config.training.batch_size, config.evolution.max_nodes)
        self._together = None
        if config.candidates_per_step > 1:
            assert isinstance(self.engine, UniversalEngine)  # the configuration has been checked
            self._together = together.Trainer(self.engine.trainer, config.candidates_per_step)

    def expect(self, genome: Genome) -> None:
        """Is told which genome will be evaluated after the next one."""
        self.engine.expect(genome, self.images, self.labels)

    def evaluate_several(
        self, genomes: Sequence[Genome], seeds: Sequence[Seed], subset: np.ndarray
    ) -> list[Evaluation]:
        """`evaluate` for at most `candidates_per_step` genomes, in one training; should that fail, one by one."""
        if self._together is not None:
            try:
                return self._evaluate_together(genomes, seeds, subset)
            except _FAILURES as error:  # out of memory, most likely: alone each may fit
                logging.getLogger(__name__).warning("trained one by one, as together: %s", error)
        return [self.evaluate(genome, seed, subset) for genome, seed in zip(genomes, seeds, strict=True)]

    def _evaluate_together(
        self, genomes: Sequence[Genome], seeds: Sequence[Seed], subset: np.ndarray
    ) -> list[Evaluation]:
        assert self._together is not None
        clock = _Clock(self._together)
        with clock.part("train"):
            prepared = [self.engine.prepare(genome, seed) for genome, seed in zip(genomes, seeds, strict=True)]
            starts = [(each.state, each.inputs) for each in prepared]
            training = self.config.training
            weights, losses = self._together.train(starts, self.images, self.labels, training, seeds, subset)
        with clock.part("evaluate"):
            accuracies = self._together.accuracies(weights, self.validation)
        each = {part: seconds / len(genomes) for part, seconds in clock.seconds.items()}
        return [
            Evaluation(accuracy, None, None, each)
            if math.isfinite(loss)
            else Evaluation(None, f"the loss was {loss}; a lower learning rate may help", None, each)
            for accuracy, loss in zip(accuracies, losses, strict=True)
        ][: len(genomes)]

    def evaluate(self, genome: Genome, seed: Seed, subset: np.ndarray) -> Evaluation:
        """Fitness of a genome after the search's training on a subset of the images; never raises for a candidate."""
        clock = _Clock(self.engine.trainer if isinstance(self.engine, UniversalEngine) else None)
        try:
            accuracy = self._evaluate(genome, seed, subset, clock)
        except DivergedError as error:
            return Evaluation(None, str(error), None, clock.seconds)
        except _FAILURES as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return Evaluation(None, reason, traceback.format_exc(), clock.seconds)
        return Evaluation(accuracy, None, None, clock.seconds)

    def _evaluate(self, genome: Genome, seed: Seed, subset: np.ndarray, clock: _Clock) -> float:
        with clock.part("train"):
            prepared = self.engine.prepare(genome, seed)
            clock.trainer = prepared.trainer
            state = self.train(prepared, self.config.training, seed, subset)
        with clock.part("evaluate"):
            images, labels = self.validation.images, self.validation.labels
            return prepared.trainer.accuracy(state.weights, prepared.inputs, images, labels)

    def train(self, prepared: Prepared, config: TrainingConfig, seed: Seed, subset: np.ndarray) -> TrainState:
        """`fit` on the training images."""
        return fit(prepared, self.images, self.labels, config, seed, subset)


def fit(
    prepared: Prepared,
    images: jax.Array,
    labels: jax.Array,
    config: TrainingConfig,
    seed: Seed,
    subset: np.ndarray,
    first_epoch: int = 0,
    on_epoch: EpochCallback | None = None,
) -> TrainState:
    """Trains from `prepared.state` on `images[subset]`; `on_epoch` is told the number of epochs done, state and loss.

    Raises `DivergedError` as soon as an epoch's loss is not finite.
    """
    state = prepared.state
    epochs = prepared.trainer.epochs(state, prepared.inputs, images, labels, subset, config, seed, first_epoch)
    for epoch, (state, loss) in enumerate(epochs, first_epoch + 1):  # noqa: B007
        if not math.isfinite(loss):
            raise DivergedError(f"the loss was {loss} in epoch {epoch}; a lower learning rate may help")
        if on_epoch is not None:
            on_epoch(epoch, state, loss)
    return state


def device_name() -> str:
    """What computes here, for the record."""
    device = jax.devices()[0]
    cpu = next(
        (line.split(":")[1].strip() for line in _cpu_info() if line.startswith("model name")), platform.machine()
    )
    return f"{cpu}, {os.cpu_count()} cores" if device.platform == "cpu" else device.device_kind


def _cpu_info() -> list[str]:
    path = pathlib.Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []
