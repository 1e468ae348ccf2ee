"""The functions that are compiled: an epoch of training, and the prediction of a chunk of images.

The data set lies on the device as uint8, and an epoch is one loop there over permuted indices.
Everything that may differ between trainings (the subset of images, its order, the number of steps,
the settings of `Plan`) is an argument. Letters: `M` training images, `S` images of a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from jaxevo.networks.builder import Weights
from jaxevo.seeds import Seed, Stream, generator
from jaxevo.training.augmentation import augment
from jaxevo.training.schedule import Plan

# Of batch norm's running averages. 0.9 rather than Flax's 0.99: short trainings have few hundred
# steps.
BATCH_NORM_MOMENTUM = 0.9
CHUNK_BATCHES = 8  # batches that one prediction call takes
# fold_in constant of the augmentation key. Dropout folds in numbers of nodes, so it must exceed
# them.
_AUGMENTATION = 1000

# Adam's transformation is made once: each call of optax makes functions that jax has not seen.
ADAM = optax.scale_by_adam()

Tree = TypeVar("Tree")


class TrainState(NamedTuple):
    """All that an interrupted training needs to go on."""

    params: nnx.State
    stats: nnx.State
    optimizer: optax.OptState
    step: jax.Array  # int32 []
    # Average over the steps of parameters and running averages; without averaging, the last.
    average: Weights

    @property
    def weights(self) -> Weights:
        """The weights that are measured and saved."""
        return self.average


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
    """Trains on `steps` batches in the given order.

    Args:
        graphdef: The module's definition; a constant of the program, like the batch size.
        batch_size: `S`.
        state: Before the epoch.
        inputs: Further arguments of the module's call (an encoded genome, or none).
        images: uint8 `[M, H, W, C]`.
        labels: int32 `[M]`.
        order: int32 `[max(M, S)]`, indices of images; those beyond `steps * S` are not read.
        steps: int32 `[]`.
        key: Of dropout and augmentation.
        settings: The training's.

    Returns:
        The state after the epoch, and the mean loss.
    """

    def loss_fn(params, stats, batch, *, classes, dropout_key):
        # copy: merged variables that are not differentiated could not be updated otherwise
        module = nnx.merge(graphdef, params, stats, copy=True)
        logits = module(batch, *inputs, train=True, dropout_key=dropout_key)
        losses = cross_entropy(logits, classes, settings.label_smoothing)
        if settings.class_weights is not None:
            losses = losses * settings.class_weights[classes]
        loss = losses.mean()
        return loss, nnx.state(module, nnx.BatchStat)

    def step(i: jax.Array, carry: tuple[TrainState, jax.Array]) -> tuple[TrainState, jax.Array]:
        (params, stats, optimizer, count, average), total = carry
        # Gather the batch and move its images at random.
        index = jax.lax.dynamic_slice_in_dim(order, i * batch_size, batch_size)
        step_key = jax.random.fold_in(key, i)
        augmentation_key = jax.random.fold_in(step_key, _AUGMENTATION)
        batch = augment(augmentation_key, images[index], settings.bounds)
        # Gradient of the loss, and the batch's statistics for the running averages.
        gradient = jax.value_and_grad(loss_fn, has_aux=True)
        (loss, batch_stats), grads = gradient(
            params, stats, batch, classes=labels[index], dropout_key=step_key
        )
        stats = moving_average(stats, batch_stats, count, decay=BATCH_NORM_MOMENTUM)
        # Adam's step at the schedule's rate.
        updates, optimizer = ADAM.update(grads, optimizer, params)
        rate = settings.schedule(count)
        params = jax.tree.map(lambda p, u: p - rate * u, params, updates)
        average = moving_average(average, (params, stats), count, decay=settings.weight_average)
        return TrainState(params, stats, optimizer, count + 1, average), total + loss

    state, total = jax.lax.fori_loop(0, steps, step, (state, jnp.zeros(())))
    return state, total / steps


def predict_chunk(
    graphdef: nnx.GraphDef,
    batch_size: int,
    params: nnx.State,
    stats: nnx.State,
    inputs: tuple[Any, ...],
    images: jax.Array,
) -> jax.Array:
    """Logits float32 `[N, classes]` of a chunk of `N` images uint8 `[N, H, W, C]`, by batches."""
    module = nnx.merge(graphdef, params, stats)
    batches = images.reshape(-1, batch_size, *images.shape[1:])
    logits = jax.lax.map(lambda x: module(x, *inputs, train=False), batches)
    return logits.reshape(len(images), -1).astype(jnp.float32)


def cross_entropy(logits: jax.Array, labels: jax.Array, smoothing: jax.Array | float) -> jax.Array:
    """Cross entropy `[S]` with labels of which the part `smoothing` is spread over all classes."""
    own = jnp.take_along_axis(logits, labels[:, None], -1)[:, 0]
    return jax.nn.logsumexp(logits, -1) - (1 - smoothing) * own - smoothing * logits.mean(-1)


def moving_average(
    average: Tree, values: Tree, step: jax.Array, *, decay: jax.Array | float
) -> Tree:
    """Averages with a decay that is smaller in the first steps, so that the start is forgotten.

    A decay of 0 gives the last values.
    """
    decay = jnp.minimum(decay, first_decay(step))
    return jax.tree.map(
        lambda a, w: jnp.where(decay > 0, decay * a + (1 - decay) * w, w), average, values
    )


def first_decay(step: Any) -> Any:
    """The most that the decay of a moving average may be at a step, a number or an array."""
    return (1 + step) / (10 + step)


def draw_epoch(
    seed: Seed, epoch: int, subset: np.ndarray, *, batch_size: int, length: int
) -> tuple[np.ndarray, jax.Array]:
    """Draws an epoch's order of images and its key from the training's seed.

    Returns:
        The order of images, int32 `[max(length, S)]`, and the key of dropout and augmentation.
    """
    rng = generator(Stream.EPOCH, (*seed, epoch))
    # Shuffle the subset, and pad its order to the length that the program was compiled for.
    order = rng.permutation(subset)
    if len(order) < batch_size:  # a subset smaller than a batch is repeated to fill one
        order = np.resize(order, batch_size)
    padded = np.zeros(max(length, batch_size), np.int32)
    padded[: len(order)] = order
    return padded, jax.random.key(rng.integers(1 << 31))


def chunks(images: np.ndarray, batch_size: int) -> Iterator[tuple[np.ndarray, int]]:
    """Divides images into parts of one size, the last filled up with black images.

    Yields each part with the number of its real images.
    """
    size = batch_size * CHUNK_BATCHES
    for start in range(0, len(images), size):
        part = images[start : start + size]
        padded = np.zeros((size, *images.shape[1:]), np.uint8)
        padded[: len(part)] = part
        yield padded, len(part)
