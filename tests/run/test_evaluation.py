"""Engines give the same fitness, compile as often as they say, and a failed candidate is only a reason."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from conftest import random_genomes

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.run import evaluator as evaluation
from jaxevo.run.evaluator import Evaluator
from jaxevo.training.engines import Problem
from jaxevo.training.trainer import CompileClock

SETTINGS = {
    "channels": 3,
    "num_normal_cells": 1,
    "max_nodes": 3,
    "epochs": 2,
    "batch_size": 32,
    "learning_rate": 0.01,
    "engine": "universal",
}
CONFIG: SearchConfig = configs.replace(SearchConfig(), SETTINGS)
PROBLEM = Problem(CONFIG.network, (8, 8, 1), 10)


@pytest.fixture(scope="module")
def universal(few_digits) -> Evaluator:
    return Evaluator(CONFIG, PROBLEM, *few_digits)


def test_both_engines_give_the_same_fitness_and_network(universal, few_digits):
    compiled = Evaluator(dataclasses.replace(CONFIG, engine="compiled"), PROBLEM, *few_digits)
    subset = np.arange(128)
    for seed, genome in enumerate(random_genomes(2, 1, 2, seed=3)):
        networks, accuracies = [], []
        for evaluator in (universal, compiled):
            prepared = evaluator.engine.prepare(genome, (seed,))
            state = evaluator.train(prepared, CONFIG.training, (seed,), subset)
            networks.append(evaluator.engine.network(genome, state.weights))
            accuracies.append(evaluator.evaluate(genome, (seed,), subset).accuracy)
        images = few_digits[1].images
        logits = [np.asarray(network(images, train=False)) for network in networks]
        np.testing.assert_allclose(logits[0], logits[1], rtol=0.05, atol=0.02)
        assert abs(accuracies[0] - accuracies[1]) <= 0.02  # two of 100 images whose logits are all but equal


def test_the_universal_engine_compiles_nothing_after_the_first_candidate(universal):
    genomes = random_genomes(5, 1, 3, seed=1)
    universal.evaluate(genomes[0], (0,), np.arange(64))
    universal.evaluate(genomes[0], (0,), np.arange(64))
    compilations = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration, **_: compilations.append(event) if "backend_compile" in event else None
    )
    for seed, genome in enumerate(genomes[1:]):
        found = universal.evaluate(genome, (seed,), np.arange(64))
        assert found.seconds["compile"] == 0
        assert found.failure is None
    assert compilations == []


def test_the_compiled_engine_compiles_what_it_expects_in_a_thread(few_digits):
    evaluator = Evaluator(dataclasses.replace(CONFIG, engine="compiled"), PROBLEM, *few_digits)
    engine = evaluator.engine
    first, second, third = random_genomes(3, 1, 2, seed=6)
    subset = np.arange(64)
    evaluator.expect(second)
    assert evaluator.evaluate(first, (0,), subset).seconds["compile"] > 0
    (compiling,) = engine._ahead.values()
    taken = compiling.result().compile_clock.seconds
    evaluator.expect(second)
    evaluator.expect(third)
    assert len(engine._ahead) == 2  # each once
    assert evaluator.evaluate(second, (1,), subset).seconds["compile"] < 0.1 * taken
    assert len(engine._ahead) == 1
    for genome in random_genomes(2, 1, 1, seed=7):  # which will not be asked for
        evaluator.expect(genome)
    assert len(engine._ahead) == 2
    alone = Evaluator(dataclasses.replace(CONFIG, engine="compiled"), PROBLEM, *few_digits)
    assert evaluator.evaluate(first, (0,), subset).accuracy == alone.evaluate(first, (0,), subset).accuracy


def test_an_evaluation_repeats_exactly_and_differs_by_seed(universal):
    (genome,) = random_genomes(1, 2, 3, seed=2)
    subset = np.arange(128)
    state = [
        universal.train(universal.engine.prepare(genome, seed), CONFIG.training, seed, subset)
        for seed in ((1,), (1,), (2,))
    ]
    first, same, other = (jax.tree.leaves(s.params) for s in state)
    assert all(np.array_equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


def test_a_loss_that_is_not_finite_is_a_failure_with_its_reason(universal):
    (genome,) = random_genomes(1, 2, 2)
    broken = Evaluator.__new__(Evaluator)
    broken.__dict__ = universal.__dict__ | {"config": configs.replace(CONFIG, {"learning_rate": 1e38})}
    found = broken.evaluate(genome, (0,), np.arange(64))
    assert found.accuracy is None
    assert "the loss was" in found.failure and "learning rate" in found.failure


def test_an_exception_is_a_failure_with_its_traceback(universal, monkeypatch):
    def out_of_memory(*_):
        raise MemoryError("no room\nfor it")

    monkeypatch.setattr(universal.engine, "prepare", out_of_memory)
    found = universal.evaluate(random_genomes(1)[0], (0,), np.arange(64))
    assert found.failure == "MemoryError: no room for it"
    assert "out_of_memory" in found.details


def test_an_interrupt_is_not_a_failure(universal, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(universal.engine, "prepare", interrupt)
    with pytest.raises(KeyboardInterrupt):
        universal.evaluate(random_genomes(1)[0], (0,), np.arange(64))


def test_compiling_is_put_down_once_and_apart_from_training(monkeypatch):
    now, compiling = [100.0], CompileClock()
    monkeypatch.setattr(evaluation.time, "perf_counter", lambda: now[0])
    compiling.seconds = 5.0  # before, for an estimate
    clock = evaluation._Clock(compiling)
    with clock.part("train"):
        now[0] += 10
        compiling.seconds += 3
    with pytest.raises(MemoryError), clock.part("evaluate"):
        now[0] += 2
        raise MemoryError
    assert clock.seconds == {"compile": 8.0, "train": 7.0, "evaluate": 2.0}
    assert compiling.charge() == 0
