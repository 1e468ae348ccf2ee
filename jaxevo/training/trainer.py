"""Training and evaluation of one module definition, compiled once.

The data set lies on the device as uint8 and an epoch is one loop there over permuted indices. Everything that may
differ between trainings (the subset of images, its order, the number of steps, the settings of `Plan`) is an argument,
so one program serves the search, the final training and every recipe alike.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxevo.config import TrainingConfig
from jaxevo.training.augmentation import Bounds, augment

# Of batch norm's running averages. 0.9 rather than Flax's 0.99: short trainings have few hundred steps.
BATCH_NORM_MOMENTUM = 0.9
_CHUNK_BATCHES = 8  # batches that one evaluation call takes
_AUGMENT = 1000  # what augmentation's key derives from the step's; dropout's derive from the numbers of nodes

Tree = TypeVar("Tree")
Weights = tuple[nnx.State, nnx.State]  # parameters, and batch norm's running averages


class TrainState(NamedTuple):
    """All that an interrupted training needs to go on."""

    params: nnx.State
    stats: nnx.State
    optimizer: optax.OptState
    step: jax.Array  # int32 []
    average: Weights  # of parameters and running averages over the steps; without averaging, the last ones

    @property
    def weights(self) -> Weights:
        """What is measured and saved."""
        return self.average


class Schedule(NamedTuple):
    """The rate at a step: it rises linearly over `warmup` steps from 0 to `rate`, and then falls over the others.

    With t of T of these done it is `rate * decay ** (t / T)` (exponential: paper, section 4.2; how far is ours), or
    `rate * (1 + cos(pi t / T)) / 2`.
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
    """The settings of a training as arguments of the compiled epoch."""

    schedule: Schedule
    label_smoothing: jax.Array | float
    bounds: Bounds
    weight_average: jax.Array | float


_ADAM = optax.scale_by_adam()  # made once: each call of optax makes functions that jax has not seen


class Split(NamedTuple):
    """A module taken apart: definition, parameters, running averages."""

    graphdef: nnx.GraphDef
    params: nnx.State
    stats: nnx.State


def split(module: nnx.Module) -> Split:
    """Takes a module apart for `Trainer`."""
    return Split(*nnx.split(module, nnx.Param, nnx.BatchStat))


class Trainer:
    """Compiled epoch and prediction of one module definition on images of one shape.

    `inputs` are further arguments of the module's call (an encoded genome, or none). `compile_clock` may be shared by
    several. Letters: `M` training images, `S` batch size.
    """

    def __init__(self, graphdef: nnx.GraphDef, batch_size: int, compile_clock: CompileClock | None = None):
        self.graphdef, self.batch_size = graphdef, batch_size
        self.compile_clock = compile_clock or CompileClock()
        self._epoch = Program(
            functools.partial(run_epoch, graphdef, batch_size), donate_argnums=(0,), clock=self.compile_clock
        )
        self._predict = Program(
            functools.partial(predict_chunk, graphdef, batch_size), donate_argnums=(), clock=self.compile_clock
        )

    def compile(self, state: TrainState, inputs: tuple[Any, ...], images: jax.Array, labels: jax.Array) -> None:
        """Compiles both programs, so that a later training on data of these shapes begins at once."""
        steps, settings = plan(TrainingConfig(), self.batch_size, len(labels))
        order, key = draw_epoch((0,), 0, np.arange(len(labels)), self.batch_size, len(labels))
        self._epoch.compile(state, inputs, images, labels, order, steps, key, settings)
        chunk = np.zeros((self.batch_size * _CHUNK_BATCHES, *images.shape[1:]), np.uint8)
        self._predict.compile(*state.weights, inputs, chunk)

    def start(self, params: nnx.State, stats: nnx.State) -> TrainState:
        """The state before the first step. Copies: the device gives up this state's buffers at every epoch."""
        (params, stats), average = (jax.tree.map(jnp.array, (params, stats)) for _ in range(2))
        return TrainState(params, stats, _ADAM.init(params), jnp.zeros((), jnp.int32), average)

    def epochs(
        self,
        state: TrainState,
        inputs: tuple[Any, ...],
        images: jax.Array,
        labels: jax.Array,
        subset: np.ndarray,
        config: TrainingConfig,
        seed: tuple[int, ...],
        first_epoch: int = 0,
    ) -> Iterator[tuple[TrainState, float]]:
        """Trains on `images[subset]`; after each epoch yields the state and the mean loss.

        Args:
            state: Given up to the device; use only what is yielded.
            inputs: Further arguments of the module's call.
            images: uint8 `[M, H, W, C]` on the device.
            labels: int32 `[M]` on the device.
            subset: Indices of the images to train on.
            config: How to train; its batch size must be the trainer's.
            seed: What this training's order of images, dropout and augmentation derive from.
            first_epoch: Where to go on after an interruption.
        """
        steps, settings = plan(config, self.batch_size, len(subset))
        for epoch in range(first_epoch, config.epochs):
            order, key = draw_epoch(seed, epoch, subset, self.batch_size, len(labels))
            state, loss = self._epoch(state, inputs, images, labels, order, steps, key, settings)
            yield state, float(loss)

    def predict(self, weights: Weights, inputs: tuple[Any, ...], images: np.ndarray) -> np.ndarray:
        """The most likely class `[M]` of each of any number of uint8 images `[M, H, W, C]`."""
        predictions = [
            np.asarray(self._predict(*weights, inputs, part))[:number]
            for part, number in chunks(images, self.batch_size)
        ]
        return np.concatenate(predictions)

    def accuracy(self, weights: Weights, inputs: tuple[Any, ...], images: np.ndarray, labels: np.ndarray) -> float:
        """Part of the images that is classified rightly."""
        return float(np.mean(self.predict(weights, inputs, images) == labels))


class CompileClock:
    """All `seconds` of compiling so far."""

    def __init__(self) -> None:
        self.seconds = self._charged = 0.0

    def charge(self) -> float:
        """Those that no earlier call has returned, so that each is put down to one candidate."""
        new, self._charged = self.seconds - self._charged, self.seconds
        return new


class Program:
    """A jitted function compiled at its first call, so that the seconds of compiling are known apart."""

    def __init__(self, function: Callable[..., Any], donate_argnums: tuple[int, ...], clock: CompileClock):
        self._jitted = jax.jit(function, donate_argnums=donate_argnums)
        self._compiled: Callable[..., Any] | None = None
        self._clock = clock

    def compile(self, *args: Any) -> Callable[..., Any]:
        """The program for arguments of these shapes; compiles it at the first call."""
        if self._compiled is None:
            begin = time.perf_counter()
            self._compiled = self._jitted.lower(*args).compile()
            self._clock.seconds += time.perf_counter() - begin
        return self._compiled

    def __call__(self, *args: Any) -> Any:
        return self.compile(*args)(*args)


def plan(config: TrainingConfig, batch_size: int, num_images: int) -> tuple[jax.Array, Plan]:
    """Steps of an epoch, and the settings of the whole training."""
    steps = max(1, num_images // batch_size)
    total = steps * config.epochs
    cosine = config.schedule == "cosine"
    settings = Plan(
        Schedule(config.learning_rate, config.rate_decay, total, config.warmup * total, cosine),
        config.label_smoothing,
        Bounds(config.max_shift, config.max_rotation, config.max_scale),
        config.weight_average,
    )
    return jnp.int32(steps), jax.tree.map(jnp.float32, settings)


def draw_epoch(
    seed: tuple[int, ...], epoch: int, subset: np.ndarray, batch_size: int, length: int
) -> tuple[np.ndarray, jax.Array]:
    """What an epoch derives from its training's seed: order of images, and the key of dropout and augmentation."""
    rng = np.random.default_rng([*seed, epoch + 1])  # of the seed itself the initial weights are drawn
    order = _order(rng, subset, batch_size, length)
    return order, jax.random.key(rng.integers(1 << 31))


def chunks(images: np.ndarray, batch_size: int) -> Iterator[tuple[np.ndarray, int]]:
    """The images in parts of one size, the last filled up with black ones, and how many of a part are real."""
    size = batch_size * _CHUNK_BATCHES
    for start in range(0, len(images), size):
        part = images[start : start + size]
        padded = np.zeros((size, *images.shape[1:]), np.uint8)
        padded[: len(part)] = part
        yield padded, len(part)


def _order(rng: np.random.Generator, subset: np.ndarray, batch_size: int, length: int) -> np.ndarray:
    """Permuted subset, padded to int32 `[max(M, S)]`; a subset smaller than a batch is repeated to fill one."""
    order = rng.permutation(subset)
    if len(order) < batch_size:
        order = np.resize(order, batch_size)
    padded = np.zeros(max(length, batch_size), np.int32)
    padded[: len(order)] = order
    return padded


def run_epoch(
    graphdef: nnx.GraphDef,
    batch_size: int,
    state: TrainState,
    inputs: tuple[Any, ...],
    images: jax.Array,
    labels: jax.Array,
    order: jax.Array,
    steps: jax.Array,
    key: jax.Array,
    settings: Plan,
) -> tuple[TrainState, jax.Array]:
    """`steps` batches in the given order; the new state and the mean loss."""

    def loss_fn(params: nnx.State, stats: nnx.State, batch: jax.Array, classes: jax.Array, dropout_key: jax.Array):
        # copy: merged variables that are not differentiated could not be updated otherwise
        module = nnx.merge(graphdef, params, stats, copy=True)
        logits = module(batch, *inputs, train=True, dropout_key=dropout_key)
        loss = cross_entropy(logits, classes, settings.label_smoothing).mean()
        return loss, nnx.state(module, nnx.BatchStat)

    def step(i: jax.Array, carry: tuple[TrainState, jax.Array]) -> tuple[TrainState, jax.Array]:
        (params, stats, optimizer, count, average), total = carry
        index, step_key = jax.lax.dynamic_slice_in_dim(order, i * batch_size, batch_size), jax.random.fold_in(key, i)
        batch = augment(jax.random.fold_in(step_key, _AUGMENT), images[index], settings.bounds)
        gradient = jax.value_and_grad(loss_fn, has_aux=True)
        (loss, batch_stats), grads = gradient(params, stats, batch, labels[index], step_key)
        stats = moving_average(stats, batch_stats, count, BATCH_NORM_MOMENTUM)
        updates, optimizer = _ADAM.update(grads, optimizer, params)
        rate = settings.schedule(count)
        params = jax.tree.map(lambda p, u: p - rate * u, params, updates)
        average = moving_average(average, (params, stats), count, settings.weight_average)
        return TrainState(params, stats, optimizer, count + 1, average), total + loss

    state, total = jax.lax.fori_loop(0, steps, step, (state, jnp.zeros(())))
    return state, total / steps


def cross_entropy(logits: jax.Array, labels: jax.Array, smoothing: jax.Array | float) -> jax.Array:
    """Cross entropy `[S]` with labels of which the part `smoothing` is spread over all classes."""
    own = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
    return jax.nn.logsumexp(logits, -1) - (1 - smoothing) * own - smoothing * logits.mean(-1)


def moving_average(average: Tree, values: Tree, step: jax.Array, decay: jax.Array | float) -> Tree:
    """Averaged with a decay that is smaller in the first steps, so that the start is forgotten; 0: the last values."""
    decay = jnp.minimum(decay, (1 + step) / (10 + step))
    return jax.tree.map(lambda a, w: jnp.where(decay > 0, decay * a + (1 - decay) * w, w), average, values)


def predict_chunk(
    graphdef: nnx.GraphDef,
    batch_size: int,
    params: nnx.State,
    stats: nnx.State,
    inputs: tuple[Any, ...],
    images: jax.Array,
) -> jax.Array:
    """Classes of a chunk of images, batch by batch."""
    module = nnx.merge(graphdef, params, stats)
    batches = images.reshape(-1, batch_size, *images.shape[1:])
    logits = jax.lax.map(lambda x: module(x, *inputs, train=False), batches)
    return logits.argmax(-1).reshape(-1).astype(jnp.int32)
