"""A linear model of fitness: worked by hand, recovered from noise, and of no order."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.stats import kendalltau

from jaxevo.config import NetworkConfig
from jaxevo.config.search import FITNESSES
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.search_space.genome import Cell, Genome, Layout, Node, Op
from jaxevo.search_space.variation import random_genome
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.linear_model import OWN_SHARE, FitnessPredictor, features

SHARE, NETWORK = 0.2, NetworkConfig()
RNG = np.random.default_rng(0)
GENOMES = [random_genome(RNG, 2, 6) for _ in range(300)]


def true_fitness(genome: Genome) -> float:
    """Linear in what the model sees."""
    return 0.5 + 0.02 * genome.normal.num_nodes - 0.03 * len(genome.reduction.unused_states())


def measured(genomes: list[Genome], noise: float) -> list[Individual]:
    """Individuals with a noisy fitness."""
    rng = np.random.default_rng(1)
    fitness = [true_fitness(genome) + noise * rng.normal() for genome in genomes]
    pairs = zip(genomes, fitness, strict=True)
    return [Individual(k, genome, 0, fitness=value) for k, (genome, value) in enumerate(pairs)]


def test_features_worked_by_hand():
    first = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
    second = Node((2, 1), (Op.CONV_5X5, Op.MAX_POOL_3X3))
    cell = Cell((first, second))
    # B, unused states, depth, kernel an operand, parts of convolutions, pools, identities, inputs
    one = [2.0, 1.0, 2.0, 2.0, 0.5, 0.25, 0.25, 0.75]
    genome, network = Genome(cell, cell), NetworkConfig()
    assert features(genome, network) == [*one, *one]
    # One normal cell of one feature map: its projection has 1 + 2 parameters, a convolution
    # 9 + 1 + 2, the other 50 + 2 + 2. The layout: log2 of 1, 1 cell, their squares and product.
    parameters = 3 + 12 + 54 + 10 * (2 + 1)
    narrow = dataclasses.replace(genome, layout=Layout(1, 1))
    assert features(narrow, network) == [*one, *one, math.log2(parameters), 0, 1, 0, 1, 0]
    # log2 of 4 feature maps, 3 cells, a factor of 2
    wider = dataclasses.replace(genome, layout=Layout(4, 3, channel_multiplier=2))
    size = math.log2(NetworkBuilder(network, (28, 28, 1), 10).complexity(wider).parameters)
    layout = [2.0, 3.0, 2.0, *(4.0, 9.0), *(2 * 3.0, 2 * 2.0, 3 * 2.0)]
    assert features(wider, network) == [*one, *one, size, *layout]


def test_the_model_orders_unseen_genomes_better_than_a_noisy_fitness():
    noise = 0.1
    truth = [true_fitness(genome) for genome in GENOMES[100:]]
    predictor = FitnessPredictor(measured(GENOMES[:100], noise), SHARE, NETWORK)
    foretold = kendalltau(predictor.predict(GENOMES[100:]), truth)[0]
    own = [each.fitness for each in measured(GENOMES[100:], noise)]
    assert foretold > 0.5 > kendalltau(own, truth)[0]


def test_of_a_genomes_own_fitness_a_part_counts():
    individuals = measured(GENOMES[:50], 0.05)
    predictor = FitnessPredictor(individuals, SHARE, NETWORK)
    luckier = dataclasses.replace(individuals[0], fitness=(individuals[0].fitness or 0) + 1)
    difference = predictor.expected([luckier]) - predictor.expected(individuals[:1])
    assert difference[0] == pytest.approx(SHARE)


def test_the_order_in_which_fitness_arrived_does_not_matter():
    individuals = measured(GENOMES[:40], 0.05)
    again = FitnessPredictor(individuals[::-1], SHARE, NETWORK)
    np.testing.assert_array_equal(
        again.predict(GENOMES), FitnessPredictor(individuals, SHARE, NETWORK).predict(GENOMES)
    )


def test_a_fitness_of_any_size_is_foretold_alike():
    """The regression itself has priors and a tolerance for numbers around 1."""
    individuals = measured(GENOMES[:60], 0.05)

    def foretold(size: float, zero: float) -> tuple[np.ndarray, np.ndarray]:
        told = [
            dataclasses.replace(each, fitness=zero + size * (each.fitness or 0))
            for each in individuals
        ]
        predictor = FitnessPredictor(told, SHARE, NETWORK, any_size=True)
        drawn = predictor.sample(np.random.default_rng(0), GENOMES)
        return (predictor.predict(GENOMES) - zero) / size, np.argsort(drawn, kind="stable")

    expected, order = foretold(1.0, 0.0)
    for size, zero in ((1e-9, 0.0), (3e5, 0.0), (1e200, 0.0), (1.0, 1e6), (0.5, -1e4)):
        found, found_order = foretold(size, zero)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
        assert np.mean(found_order == order) > 0.98  # all but equal ones may change places


def test_models_that_are_drawn_spread_less_the_more_is_known():
    def spread(number: int) -> float:
        predictor = FitnessPredictor(measured(GENOMES[:number], 0.05), SHARE, NETWORK)
        rng = np.random.default_rng(2)
        draws = np.array([predictor.sample(rng, GENOMES) for _ in range(50)])
        return float(draws.std(0).mean())

    assert spread(300) < spread(30)


def test_equal_genomes_and_fitness_are_no_trouble():
    same = [Individual(k, GENOMES[0], 0, fitness=0.5) for k in range(3)]
    predictor = FitnessPredictor(same, SHARE, NETWORK)
    assert predictor.predict(GENOMES[:2]) == pytest.approx([0.5, 0.5])
    assert np.isfinite(predictor.sample(np.random.default_rng(0), GENOMES)).all()


def test_every_fitness_has_its_share():
    assert set(OWN_SHARE) == set(FITNESSES)
