"""Engines give the same fitness, compile as often as they say, and a failure is only a reason."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from builders import SMALL
from builders_training import compilations
from conftest import random_genomes

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluator, class_weights
from jaxevo.run.trial import Rival, Trial
from jaxevo.stopwatch import Stopwatch
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import UniversalEngine
from jaxevo.training.fit import fit

CONFIG: SearchConfig = configs.replace(SMALL, {"epochs": 2, "learning_rate": 0.01})
BUILDER = NetworkBuilder(CONFIG.network, (8, 8, 1), 10)


@pytest.fixture(scope="module")
def make(few_digits):
    """Makes evaluators that train on the first so many of a few digits."""

    def make(number: int = 64, *, stopwatch: Stopwatch | None = None, **settings: Any) -> Evaluator:
        train, validation = few_digits
        data = TrainingData.of(train.take(np.arange(100)), np.arange(number))
        config = configs.replace(CONFIG, settings)
        return Evaluator(config, BUILDER, data, validation=validation, stopwatch=stopwatch)

    return make


@pytest.fixture(scope="module")
def universal(make) -> Evaluator:
    return make()


@pytest.fixture
def varied(universal):
    """The evaluator with other fields, and the same compiled programs."""

    def varied(**fields: Any) -> Evaluator:
        evaluator = Evaluator.__new__(Evaluator)
        evaluator.__dict__ = universal.__dict__ | fields
        return evaluator

    return varied


def trained_weights(evaluator: Evaluator, genome, seed):
    prepared = evaluator.engine.prepare(genome, seed)
    return fit(prepared, evaluator.data, evaluator.config.training, seed=seed).state.weights


@pytest.mark.slow
def test_both_engines_give_the_same_fitness_and_network(make, varied, few_digits):
    compiled = make(96, engine="compiled")
    universal = varied(data=compiled.data)
    for seed, genome in enumerate(random_genomes(2, 1, 2, seed=3)):
        networks, accuracies = [], []
        for evaluator in (universal, compiled):
            weights = trained_weights(evaluator, genome, (seed,))
            networks.append(evaluator.engine.network(genome, weights))
            accuracies.append(evaluator.evaluate(genome, (seed,)).accuracy)
        images = few_digits[1].images
        logits = [np.asarray(network(images, train=False)) for network in networks]
        np.testing.assert_allclose(logits[0], logits[1], rtol=0.05, atol=0.02)
        # Two of 100 images whose logits are all but equal.
        assert abs(accuracies[0] - accuracies[1]) <= 0.02


def test_the_universal_engine_compiles_nothing_after_the_first_candidate(universal):
    genomes = random_genomes(5, 1, 3, seed=1)
    universal.evaluate(genomes[0], (0,))
    universal.evaluate(genomes[0], (0,))
    with compilations() as compiled:
        for seed, genome in enumerate(genomes[1:]):
            found = universal.evaluate(genome, (seed,))
            assert found.seconds.get("compile", 0) == 0
            assert found.failure is None
    assert compiled == []


def test_nothing_is_warmed_up_where_layouts_are_genes(make):
    evaluator = make(min_channels=1)
    evaluator.warm_up()
    assert "compile" not in evaluator.stopwatch.seconds


def test_several_candidates_a_step_are_trained_by_the_universal_engine(make):
    together = {"candidates_per_step": 2, "mating_pool": "survivors"}
    assert type(make(engine="auto", **together).engine) is UniversalEngine


def test_after_the_warming_up_the_universal_engine_compiles_nothing(make):
    evaluator = make()
    evaluator.warm_up()
    assert evaluator.stopwatch.seconds["compile"] > 0
    found = evaluator.evaluate(random_genomes(1, 1, 3)[0], (0,))
    assert found.failure is None and found.seconds.keys() == {"train", "evaluate"}


def test_the_compiled_engine_compiles_what_it_expects_in_a_thread(make):
    evaluator = make(engine="compiled")
    engine = evaluator.engine
    first, second, third = random_genomes(3, 1, 1, seed=6)
    evaluator.expect(second)
    assert evaluator.evaluate(first, (0,)).seconds["compile"] > 0
    (compiling,) = engine._ahead.values()
    taken = compiling.result().stopwatch.seconds["compile"]
    evaluator.expect(second)
    evaluator.expect(third)
    assert len(engine._ahead) == 2  # each once
    assert evaluator.evaluate(second, (1,)).seconds.get("compile", 0) < 0.1 * taken
    assert len(engine._ahead) == 1
    for genome in random_genomes(2, 1, 1, seed=7):  # which will not be asked for
        evaluator.expect(genome)
    assert len(engine._ahead) == 2
    engine._compiler.shutdown(cancel_futures=True)
    again = evaluator.evaluate(first, (0,)).accuracy
    assert again == make(engine="compiled").evaluate(first, (0,)).accuracy


def test_an_evaluation_repeats_exactly_and_differs_by_seed(universal):
    (genome,) = random_genomes(1, 2, 3, seed=2)
    states = [trained_weights(universal, genome, seed) for seed in ((1,), (1,), (2,))]
    first, same, other = (jax.tree.leaves(params) for params, _ in states)
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_only_the_subset_is_trained_on(varied, universal, few_digits):
    (genome,) = random_genomes(1, 2, 3, seed=2)
    train, _ = few_digits
    train = train.take(np.arange(100))
    changed = train.images.copy()
    changed[64:] = 255 - changed[64:]
    data = TrainingData.of(dataclasses.replace(train, images=changed), universal.data.subset)
    weights = [
        jax.tree.leaves(trained_weights(evaluator, genome, (1,)))
        for evaluator in (universal, varied(data=data))
    ]
    assert all(np.array_equal(a, b) for a, b in zip(*weights, strict=True))


def test_a_training_that_falls_behind_its_rival_ends_and_is_foretold(varied):
    racing = varied(
        config=configs.replace(CONFIG, {"fitness": "speed", "racing": 0.1, "epochs": 4})
    )
    (genome,) = random_genomes(1, 2, 2)
    whole = racing.evaluate(genome, (0,))
    assert len(whole.losses) == 4 and whole.loss == pytest.approx(np.mean(whole.losses))
    # The rival was better by a fifth from the second epoch on.
    first, *others = whole.losses
    rival = Rival((first, *(0.6 * each for each in others)), 0.7)
    found = racing.evaluate(genome, (0,), rival)
    assert found.losses == whole.losses[:2] and found.failure is None
    assert found.loss == rival.foretell(found.losses)
    # One that is no better ends nothing.
    assert racing.evaluate(genome, (0,), Rival(whole.losses, 1.0)).loss == whole.loss


def test_classes_are_weighed_where_that_is_asked_for():
    labels = np.array([0, 0, 1, 0])
    assert class_weights(CONFIG, labels, 2) is None
    balanced = configs.replace(CONFIG, {"class_weights": "balanced"})
    np.testing.assert_allclose(class_weights(balanced, labels, 2), [2 / 3, 2])


def test_several_that_cannot_be_trained_in_one_step_are_trained_one_by_one(varied):
    class TooLarge:
        def train(self, *_: Any) -> None:
            raise MemoryError("no room for both")

    trials = [Trial(genome, (k,)) for k, genome in enumerate(random_genomes(2, 1, 2))]
    found = varied(_batched=TooLarge()).evaluate_several(trials)
    alone = [varied().evaluate(*trial) for trial in trials]
    assert [each.accuracy for each in found] == [each.accuracy for each in alone]


def test_a_loss_that_is_not_finite_is_a_failure_with_its_reason(varied):
    (genome,) = random_genomes(1, 2, 2)
    broken = varied(config=configs.replace(CONFIG, {"learning_rate": 1e38}))
    found = broken.evaluate(genome, (0,))
    assert found.accuracy is None
    assert "the loss was" in found.failure and "learning rate" in found.failure


class Raising:
    """An engine that prepares nothing."""

    def __init__(self, error: BaseException):
        self.error = error

    def prepare(self, *_: Any) -> None:
        raise self.error


def test_an_exception_is_a_failure_with_its_traceback(varied):
    evaluator = varied(engine=Raising(MemoryError("no room\nfor it")))
    found = evaluator.evaluate(random_genomes(1)[0], (0,))
    assert found.failure == "MemoryError: no room for it"
    assert "raise self.error" in found.details


def test_an_interrupt_is_not_a_failure(varied):
    evaluator = varied(engine=Raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        evaluator.evaluate(random_genomes(1)[0], (0,))


def test_the_seconds_of_an_evaluation_are_those_of_its_parts(varied):
    """Compiling that falls into a training is put down once, also where the training fails."""
    now = [100.0]
    stopwatch = Stopwatch(lambda: now[0])

    class Compiling:
        def prepare(self, *_: Any) -> None:
            now[0] += 10
            with stopwatch.part("compile"):
                now[0] += 3
            raise MemoryError

    stopwatch.add("compile", 5)  # before, for an estimate
    evaluator = varied(engine=Compiling(), stopwatch=stopwatch)
    assert evaluator.evaluate(random_genomes(1)[0], (0,)).seconds == {"compile": 3, "train": 10}
    assert stopwatch.seconds == {"compile": 8, "train": 10}
