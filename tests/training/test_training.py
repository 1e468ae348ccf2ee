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
from jaxevo.config.presets import RECIPES
from jaxevo.networks.genome_network import Network
from jaxevo.training.trainer import Schedule, Trainer, _order, cross_entropy, plan, split

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


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        # warm-up over 2 of 10 steps, then half a cosine: 0.4 * (1 + cos(pi * (t - 2) / 8)) / 2
        ("cosine", {0: 0.0, 1: 0.2, 2: 0.4, 4: 0.4 * (2 + 2**0.5) / 4, 6: 0.2, 8: 0.4 * (2 - 2**0.5) / 4, 10: 0.0}),
        # the same, then 0.4 * 0.0001 ** ((t - 2) / 8)
        ("exponential", {0: 0.0, 1: 0.2, 2: 0.4, 4: 0.04, 6: 0.004, 8: 0.0004, 10: 0.00004}),
    ],
)
def test_after_the_warm_up_the_rate_falls_by_the_schedule(schedule, rates):
    config = TrainingConfig(epochs=5, learning_rate=0.4, rate_decay=1e-4, schedule=schedule, warmup=0.2)
    steps, settings = plan(config, 16, 2 * 16 + 3)
    assert int(steps) == 2
    found = [float(settings.schedule(jnp.int32(step))) for step in rates]
    np.testing.assert_allclose(found, list(rates.values()), rtol=1e-4, atol=1e-7)


def test_a_smoothed_label_is_spread_over_all_classes():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(0, 3, (6, 5)).astype(np.float32), rng.integers(0, 5, 6)
    log_probabilities = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    for smoothing in (0.0, 0.1, 0.9):
        targets = (1 - smoothing) * np.eye(5)[labels] + smoothing / 5
        expected = -(targets * log_probabilities).sum(-1)
        np.testing.assert_allclose(cross_entropy(jnp.array(logits), jnp.array(labels), smoothing), expected, rtol=1e-5)


def trained_step_by_step(trainer, images, **settings):
    """Weights before and after each of four steps, and their average after each."""
    config = TrainingConfig(epochs=4, batch_size=BATCH, learning_rate=0.05, **settings)
    parts, data = split(network()), (jnp.asarray(images.images), jnp.asarray(images.labels))
    last, average = [jax.tree.map(np.array, parts[1:])], []
    for state, _ in trainer.epochs(trainer.start(*parts[1:]), (), *data, np.arange(BATCH), config, (5,)):
        last.append(jax.tree.map(np.array, (state.params, state.stats)))
        average.append(jax.tree.map(np.array, state.weights))
    return last, average


def test_the_average_forgets_the_start_and_then_decays_as_set(trainer, few_digits):
    last, found = trained_step_by_step(trainer, few_digits[0], weight_average=0.2)
    expected = jax.tree.leaves(last[0])
    for step, decay in enumerate([1 / 10, 2 / 11, 0.2, 0.2]):  # then 3 / 12 > 0.2
        weights = jax.tree.leaves(last[step + 1])
        expected = [decay * a + (1 - decay) * w for a, w in zip(expected, weights, strict=True)]
        for a, b in zip(jax.tree.leaves(found[step]), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert any(np.abs(a - w).max() > 1e-3 for a, w in zip(jax.tree.leaves(found[-1]), weights, strict=True))


def test_without_averaging_the_last_weights_are_measured_bit_for_bit(trainer, few_digits):
    last, found = trained_step_by_step(trainer, few_digits[0])
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(last[1:]), strict=True):
        assert a.tobytes() == b.tobytes()
    averaged, _ = trained_step_by_step(trainer, few_digits[0], weight_average=0.9)
    for a, b in zip(jax.tree.leaves(averaged), jax.tree.leaves(last), strict=True):
        assert a.tobytes() == b.tobytes()  # it is only looked at


@pytest.mark.parametrize(
    "setting", [{"label_smoothing": 0.1}, {"max_shift": 0.2}, {"max_rotation": 20.0}, {"max_scale": 0.2}]
)
def test_each_piece_of_a_recipe_reaches_the_training(trainer, few_digits, setting):
    plain, pieced = (trained_step_by_step(trainer, few_digits[0], **s)[1][-1] for s in ({}, setting))
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (plain, pieced)), strict=True))


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
        (loss, of_batch), grads = gradient(params, stats, *batch, jax.random.fold_in(key, i))
        old = min(0.9, (1 + i) / (10 + i))  # the part of the running averages that stays
        stats = jax.tree.map(lambda a, b, old=old: old * a + (1 - old) * b, stats, of_batch)
        updates, moments = optimizer.update(grads, moments, params)
        params = optax.apply_updates(params, updates)
        losses.append(float(loss))
    assert mean_loss == pytest.approx(np.mean(losses), rel=1e-4)
    for found, expected in zip(jax.tree.leaves(state.weights), jax.tree.leaves((params, stats)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("recipe", RECIPES)
def test_going_on_after_an_epoch_is_the_same_as_not_stopping(trainer, few_digits, recipe):
    images, _ = few_digits
    config = TrainingConfig(epochs=3, batch_size=BATCH, learning_rate=0.01, **RECIPES[recipe])
    subset = np.arange(64)
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


def test_one_program_for_every_subset_length_rate_and_recipe(trainer, few_digits, caplog):
    images, _ = few_digits
    run(trainer, images, TrainingConfig(epochs=1, batch_size=BATCH), np.arange(32))
    before = trainer.compile_clock.seconds
    with jax.log_compiles():
        run(trainer, images, TrainingConfig(epochs=2, batch_size=BATCH, learning_rate=0.5), np.arange(77))
        run(trainer, images, TrainingConfig(epochs=1, batch_size=BATCH, **RECIPES["modern"]), np.arange(32))
        assert "XLA compilation" not in caplog.text
        jax.jit(lambda x: x - 17).lower(before).compile()
        assert "XLA compilation" in caplog.text  # it would have been seen
    assert trainer.compile_clock.seconds == before
