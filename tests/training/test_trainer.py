"""Training: its exactness, that it goes on where it stopped, and that one program serves all."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from builders_classifiers import GENOME as ONE_NODE
from builders_training import BATCH, network
from flax import nnx

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.config.presets import RECIPES
from jaxevo.datasets import Images
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.seeds import Stream, generator
from jaxevo.training.data import TrainingData, balanced_weights
from jaxevo.training.epoch import TrainState
from jaxevo.training.trainer import Trainer


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return Trainer(split(network()).graphdef, BATCH)


def run(
    trainer: Trainer,
    images: Images,
    config: TrainingConfig,
    subset: np.ndarray,
    state: TrainState | None = None,
    first_epoch: int = 0,
) -> list[tuple[TrainState, float]]:
    """Trains from a state, by default that of fresh weights."""
    start = trainer.start(*split(network())[1:]) if state is None else state
    data = TrainingData.of(images, subset)
    epochs = trainer.epochs(start, (), data, config=config, seed=(5,), first_epoch=first_epoch)
    return list(epochs)


def trained_step_by_step(
    trainer: Trainer, images: Images, **settings: Any
) -> tuple[list[Any], list[Any]]:
    """Weights before and after each of four steps, and their average after each."""
    config = TrainingConfig(epochs=4, batch_size=BATCH, learning_rate=0.05, **settings)
    parts = split(network())
    data = TrainingData.of(images, np.arange(BATCH))
    last = [jax.tree.map(np.array, parts[1:])]
    average = []
    start = trainer.start(*parts[1:])
    for state, _ in trainer.epochs(start, (), data, config=config, seed=(5,)):
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
    assert any(
        np.abs(a - w).max() > 1e-3 for a, w in zip(jax.tree.leaves(found[-1]), weights, strict=True)
    )


def test_without_averaging_the_last_weights_are_measured_bit_for_bit(trainer, few_digits):
    last, found = trained_step_by_step(trainer, few_digits[0])
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(last[1:]), strict=True):
        assert a.tobytes() == b.tobytes()
    averaged, _ = trained_step_by_step(trainer, few_digits[0], weight_average=0.9)
    for a, b in zip(jax.tree.leaves(averaged), jax.tree.leaves(last), strict=True):
        assert a.tobytes() == b.tobytes()  # it is only looked at


@pytest.mark.parametrize(
    "setting",
    [{"label_smoothing": 0.1}, {"max_shift": 0.2}, {"max_rotation": 20.0}, {"max_scale": 0.2}],
)
def test_each_piece_of_a_recipe_reaches_the_training(trainer, few_digits, setting):
    plain, pieced = (
        trained_step_by_step(trainer, few_digits[0], **s)[1][-1] for s in ({}, setting)
    )
    assert any((a != b).any() for a, b in zip(*map(jax.tree.leaves, (plain, pieced)), strict=True))


def first_loss(images: Images, class_weights: np.ndarray | None) -> float:
    """The loss of the fresh network on the first batch."""
    module = network()
    trainer = Trainer(split(module).graphdef, BATCH)
    data = TrainingData.of(images, np.arange(BATCH), class_weights)
    config = TrainingConfig(epochs=1, batch_size=BATCH)
    start = trainer.start(*split(module)[1:])
    ((_, loss),) = trainer.epochs(start, (), data, config=config, seed=(5,))
    return loss


def test_class_weights_weigh_the_loss_of_each_image(few_digits):
    """The loss is a sum over the classes of their weights and parts."""
    images, _ = few_digits
    parts = [first_loss(images, row) for row in np.eye(10, dtype=np.float32)]
    plain = first_loss(images, None)
    assert sum(parts) == pytest.approx(plain, rel=1e-5) and min(parts) > 0
    weights = np.linspace(0.5, 3, 10, dtype=np.float32)
    assert first_loss(images, weights) == pytest.approx(np.dot(weights, parts), rel=1e-5)


def grey(number: int, mean: float, seed: int) -> np.ndarray:
    """Images of one grey each, which is drawn around a mean."""
    greys = np.random.default_rng(seed).normal(mean, 30, (number, 1, 1, 1)).clip(0, 255)
    return np.broadcast_to(greys, (number, 8, 8, 1)).astype(np.uint8)


def test_with_balanced_weights_a_rare_class_is_named_more_often():
    """Of two classes that overlap, one has 19 times as many images."""
    pixels = np.concatenate([grey(380, 100, 0), grey(20, 150, 1)])
    images = Images(pixels, np.repeat([0, 1], [380, 20]).astype(np.int32))
    config = TrainingConfig(epochs=12, batch_size=BATCH, learning_rate=0.02)
    recalls = []
    for weights in (None, balanced_weights(images.labels, 10)):
        module = network()
        own = Trainer(split(module).graphdef, BATCH)
        data = TrainingData.of(images, class_weights=weights)
        start = own.start(*split(module)[1:])
        *_, (state, _) = own.epochs(start, (), data, config=config, seed=(5,))
        recalls.append(np.mean(own.predict(state.weights, (), grey(200, 150, 2)) == 1))
    plain, balanced = recalls
    assert balanced > plain + 0.3


def test_an_epoch_is_adam_on_the_batches_one_by_one(trainer, few_digits):
    """The compiled loop against plain steps with optax's own Adam."""
    images, _ = few_digits
    config = TrainingConfig(epochs=1, batch_size=BATCH, learning_rate=0.01, rate_decay=0.1)
    subset = np.arange(5 * BATCH)
    ((state, mean_loss),) = run(trainer, images, config, subset)

    graphdef, params, stats = split(network())
    optimizer = optax.adam(optax.exponential_decay(0.01, transition_steps=5, decay_rate=0.1))
    moments = optimizer.init(params)
    rng = generator(Stream.EPOCH, (5, 0))
    order = rng.permutation(subset)
    key = jax.random.key(rng.integers(1 << 31))

    def loss_fn(params, stats, x, y, key):
        module = nnx.merge(graphdef, params, stats, copy=True)
        logits = module(x, train=True, dropout_key=key)
        log_probabilities = jax.nn.log_softmax(logits)
        return -log_probabilities[jnp.arange(len(y)), y].mean(), nnx.state(module, nnx.BatchStat)

    gradient = jax.jit(jax.value_and_grad(loss_fn, has_aux=True))
    update = jax.jit(optimizer.update)
    losses = []
    for i in range(5):
        index = order[i * BATCH : (i + 1) * BATCH]
        batch = images.images[index], images.labels[index]
        (loss, of_batch), grads = gradient(params, stats, *batch, jax.random.fold_in(key, i))
        old = min(0.9, (1 + i) / (10 + i))  # the part of the running averages that stays
        stats = jax.tree.map(lambda a, b, old=old: old * a + (1 - old) * b, stats, of_batch)
        updates, moments = update(grads, moments, params)
        params = optax.apply_updates(params, updates)
        losses.append(float(loss))
    assert mean_loss == pytest.approx(np.mean(losses), rel=1e-4)
    for found, expected in zip(
        jax.tree.leaves(state.weights), jax.tree.leaves((params, stats)), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("recipe", RECIPES)
def test_going_on_after_an_epoch_is_the_same_as_not_stopping(trainer, few_digits, recipe):
    images, _ = few_digits
    config = TrainingConfig(epochs=3, batch_size=BATCH, learning_rate=0.01, **RECIPES[recipe])
    subset = np.arange(64)
    kept = []
    start = trainer.start(*split(network())[1:])
    data = TrainingData.of(images, subset)
    for state, _ in trainer.epochs(start, (), data, config=config, seed=(5,)):
        kept.append(jax.tree.map(np.array, state))
    resumed = run(trainer, images, config, subset, jax.tree.map(jnp.array, kept[0]), first_epoch=1)
    assert len(resumed) == 2
    jax.tree.map(np.testing.assert_array_equal, resumed[-1][0], kept[-1])


def test_the_loss_falls_and_digits_are_learnt(digits):
    # Larger than the network of the other tests, which learns next to nothing.
    larger = NetworkConfig(channels=8, num_normal_cells=2)
    parts = split(Network(ONE_NODE, larger, (8, 8, 1), num_classes=10, seed=0))
    trainer = Trainer(parts.graphdef, BATCH)
    config = TrainingConfig(epochs=5, batch_size=BATCH, learning_rate=0.02)
    start = trainer.start(parts.params, parts.stats)
    states = run(trainer, digits.train, config, np.arange(len(digits.train)), start)
    losses = [loss for _, loss in states]
    assert losses[-1] < losses[0] / 2
    accuracy = trainer.measure(states[-1][0].weights, (), digits.validation).accuracy
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
    before = trainer.stopwatch.seconds["compile"]
    with jax.log_compiles():
        run(
            trainer,
            images,
            TrainingConfig(epochs=2, batch_size=BATCH, learning_rate=0.5),
            np.arange(77),
        )
        run(
            trainer,
            images,
            TrainingConfig(epochs=1, batch_size=BATCH, **RECIPES["modern"]),
            np.arange(32),
        )
        assert "XLA compilation" not in caplog.text
        jax.jit(lambda x: x - 17).lower(before).compile()
        assert "XLA compilation" in caplog.text  # it would have been seen
    assert trainer.stopwatch.seconds["compile"] == before
