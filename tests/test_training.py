"""Training: its schedule, its order of images, its exactness, and that it goes on where it stopped."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import random_genomes
from flax import nnx

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.network import Network
from jaxevo.training import Schedule, Trainer, _order, split

CONFIG = NetworkConfig(channels=2, num_normal_cells=1)
BATCH = 16
(GENOME,) = random_genomes(1, 1, 2)


def network(seed: int = 0) -> Network:
    return Network(GENOME, CONFIG, (8, 8, 1), 10, seed)


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return Trainer(split(network()).graphdef, BATCH)


def run(trainer: Trainer, images, config: TrainingConfig, subset, state=None, first_epoch: int = 0):
    parts = split(network())
    state = trainer.start(parts.params, parts.stats) if state is None else state
    data = jnp.asarray(images.images), jnp.asarray(images.labels)
    return list(trainer.epochs(state, (), *data, subset, config, (5,), first_epoch))


def test_the_rate_decays_exponentially_from_its_start_to_the_given_fraction():
    schedule = Schedule(1e-3, 0.01, 100)
    found = [float(schedule(jnp.int32(step))) for step in (0, 50, 100)]
    np.testing.assert_allclose(found, [1e-3, 1e-4, 1e-5], rtol=1e-5)


def test_an_epoch_takes_every_image_once_and_pads_for_one_program():
    subset = np.arange(100, 140)
    order = _order(np.random.default_rng(0), subset, BATCH, 300)
    assert order.shape == (300,)
    assert sorted(order[:40]) == list(subset)
    assert not np.array_equal(order[:40], subset)


def test_a_subset_smaller_than_a_batch_fills_one():
    order = _order(np.random.default_rng(0), np.array([7, 8, 9]), 4, 2)
    assert order.shape == (4,)
    assert set(order) == {7, 8, 9}


def test_an_epoch_is_adam_on_the_batches_one_by_one(trainer, few_digits):
    """The compiled loop against plain steps with optax's own Adam."""
    images, _ = few_digits
    config = TrainingConfig(epochs=1, batch_size=BATCH, learning_rate=0.01, rate_decay=0.1)
    subset = np.arange(5 * BATCH)
    ((state, mean_loss),) = run(trainer, images, config, subset)

    graphdef, params, stats = split(network())
    optimizer = optax.adam(optax.exponential_decay(0.01, transition_steps=5, decay_rate=0.1))
    moments = optimizer.init(params)
    rng = np.random.default_rng([5, 1])
    order = rng.permutation(subset)
    key = jax.random.key(rng.integers(1 << 31))

    @jax.jit
    def loss_fn(params, stats, x, y, key):
        module = nnx.merge(graphdef, params, stats, copy=True)
        logits = module(x, train=True, dropout_key=key)
        log_probabilities = jax.nn.log_softmax(logits)
        return -log_probabilities[jnp.arange(len(y)), y].mean(), nnx.state(module, nnx.BatchStat)

    losses = []
    for i in range(5):
        index = order[i * BATCH : (i + 1) * BATCH]
        gradient = jax.value_and_grad(loss_fn, has_aux=True)
        batch = images.images[index], images.labels[index]
        (loss, stats), grads = gradient(params, stats, *batch, jax.random.fold_in(key, i))
        updates, moments = optimizer.update(grads, moments, params)
        params = optax.apply_updates(params, updates)
        losses.append(float(loss))
    assert mean_loss == pytest.approx(np.mean(losses), rel=1e-4)
    for found, expected in zip(jax.tree.leaves(state.weights), jax.tree.leaves((params, stats)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


def test_going_on_after_an_epoch_is_the_same_as_not_stopping(trainer, few_digits):
    images, _ = few_digits
    config, subset = TrainingConfig(epochs=3, batch_size=BATCH, learning_rate=0.01), np.arange(64)
    kept = []
    parts = split(network())
    data = jnp.asarray(images.images), jnp.asarray(images.labels)
    for state, _ in trainer.epochs(trainer.start(*parts[1:]), (), *data, subset, config, (5,)):
        kept.append(jax.tree.map(np.array, state))
    resumed = run(trainer, images, config, subset, jax.tree.map(jnp.array, kept[0]), first_epoch=1)
    assert len(resumed) == 2
    jax.tree.map(np.testing.assert_array_equal, resumed[-1][0], kept[-1])


def test_the_loss_falls_and_digits_are_learnt(digits):
    # Larger than the network of the other tests, which learns next to nothing.
    parts = split(Network(GENOME, NetworkConfig(channels=8, num_normal_cells=2), (8, 8, 1), 10, 0))
    trainer = Trainer(parts.graphdef, BATCH)
    config = TrainingConfig(epochs=8, batch_size=BATCH, learning_rate=0.02)
    start = trainer.start(parts.params, parts.stats)
    states = run(trainer, digits.train, config, np.arange(len(digits.train)), start)
    losses = [loss for _, loss in states]
    assert losses[-1] < losses[0] / 2
    accuracy = trainer.accuracy(states[-1][0].weights, (), digits.validation.images, digits.validation.labels)
    assert accuracy > 0.6  # chance is 0.1


@pytest.mark.parametrize("number", [1, BATCH - 1, BATCH, 8 * BATCH, 8 * BATCH + 1])
def test_predictions_are_exact_for_any_number_of_images(trainer, digits, number):
    module = network()
    images = digits.train.images[:number]
    expected = np.asarray(module(images, train=False)).argmax(-1)
    found = trainer.predict(split(module)[1:], (), images)
    np.testing.assert_array_equal(found, expected)


def test_one_program_for_every_subset_length_and_rate(trainer, few_digits):
    images, _ = few_digits
    run(trainer, images, TrainingConfig(epochs=1, batch_size=BATCH), np.arange(32))
    before = trainer.compile_seconds
    run(trainer, images, TrainingConfig(epochs=2, batch_size=BATCH, learning_rate=0.5), np.arange(77))
    assert trainer.compile_seconds == before
