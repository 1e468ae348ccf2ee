"""Full trainings: seed by seed, on after an interruption, and by each engine."""

from __future__ import annotations

import dataclasses
import pathlib

import chex
import numpy as np
import pytest
from builders_classifiers import BUILDER, GENOME, SOURCE, train
from builders_training import compilations
from conftest import random_genomes

from jaxevo.config import TrainingConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.networks import native
from jaxevo.networks.builder import split
from jaxevo.search_space.genome import Genome
from jaxevo.training.classifier import Classifier
from jaxevo.training.full_training import train_classifiers


def weights_differ(a: Classifier, b: Classifier) -> bool:
    return bool(np.any(np.asarray(a.network.head[...]) != np.asarray(b.network.head[...])))


@pytest.fixture(scope="module")
def trained(few_digits: tuple[Images, Images]) -> list[Classifier]:
    """Two seeds."""
    return train(few_digits[0], (3, 4), train_examples=100)


def test_seeds_share_a_program_and_nothing_else(
    trained: list[Classifier], few_digits: tuple[Images, Images]
):
    first, second = trained
    first.accuracy(few_digits[1])
    with compilations() as compiled:
        second.accuracy(few_digits[1])
    assert compiled == []
    assert weights_differ(first, second)
    # Every epoch is told, and a seed's training does not depend on those before it.
    told: list[tuple[int, int]] = []
    (again,) = train(
        few_digits[0], (4,), train_examples=100, on_epoch=lambda s, e, loss: told.append((s, e))
    )
    assert told == [(4, epoch) for epoch in range(1, 11)]
    assert not weights_differ(second, again)


def test_an_interrupted_training_goes_on_to_the_same_weights(
    trained: list[Classifier], few_digits: tuple[Images, Images], tmp_path: pathlib.Path
):
    def interrupt(seed: int, epoch: int, loss: float) -> None:
        if (seed, epoch) == (4, 2):
            raise KeyboardInterrupt

    arguments = {"train_examples": 100, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        train(few_digits[0], (3, 4), on_epoch=interrupt, **arguments)
    told: list[tuple[int, int]] = []
    again = train(
        few_digits[0], (3, 4), on_epoch=lambda s, e, loss: told.append((s, e)), **arguments
    )
    # The first seed was done; the second had a checkpoint after its first epoch at least.
    assert told[0][0] == 4 and 1 < told[0][1] <= 3 and told[-1] == (4, 10)
    for one, other in zip(trained, again, strict=True):
        chex.assert_trees_all_equal(split(one.network)[1:], split(other.network)[1:])


def classifier_of(train: Images, engine: str, conv_kind: str) -> Classifier:
    """A genome of two cells that differ in size, trained for 180 steps."""
    (other,) = random_genomes(1, 3, 3, seed=3)
    genome = Genome(other.normal, GENOME.reduction)
    config = TrainingConfig(epochs=4, batch_size=32, learning_rate=0.03)
    settings = {"source": SOURCE, "config": config, "seeds": (0,), "engine": engine}
    network = dataclasses.replace(BUILDER.network, conv_kind=conv_kind)
    builder = dataclasses.replace(BUILDER, network=network)
    ((classifier, _),) = train_classifiers(genome, builder, train, **settings)
    return classifier


@pytest.mark.skipif(native.unavailable_reason() is not None, reason="needs native kernels")
@pytest.mark.parametrize("conv_kind", ["separable", "full"])
def test_a_genome_trained_by_the_native_engine_is_as_one_compiled(
    digits: SearchData, conv_kind: str
):
    compiled, own = (
        classifier_of(digits.train, engine, conv_kind) for engine in ("compiled", "native")
    )
    # The weights are those of the genome's own network. Some have no influence, and differ.
    parts = [split(each.network) for each in (compiled, own)]
    assert parts[0].graphdef == parts[1].graphdef
    probabilities = [each.predict_proba(digits.validation.images) for each in (compiled, own)]
    np.testing.assert_allclose(probabilities[0], probabilities[1], atol=0.01)
    accuracies = [each.accuracy(digits.validation) for each in (compiled, own)]
    assert abs(accuracies[0] - accuracies[1]) < 0.02
    assert accuracies[0] > 0.3
