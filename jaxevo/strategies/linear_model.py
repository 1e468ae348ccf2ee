"""Foretells a genome's fitness from what it is made of.

A fitness is mostly noise: of 500 genomes trained fully on digits with two seeds, a third of the
variance of the log cross entropy was the genomes', the rest the seeds'. A linear model of few
features, fitted to the other genomes, ordered them better (Kendall's tau 0.34 with the second seed)
than their own first training did (0.23); `docs/fitness.md` has the table. So the fitness of all
genomes tells more of one genome than its own does.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import BayesianRidge

from jaxevo.config import NetworkConfig
from jaxevo.search_space.complexity import parameters_of
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Op
from jaxevo.strategies.individual import Individual

# By fitness, a weight from 0 to 1 of what features do not foretell: expected = foretold +
# share x (measured - foretold). Of 0.1 to 0.7 these shares gave the best order of 126 genomes'
# second trainings on digits.
OWN_SHARE = {"accuracy": 0.2, "likelihood": 0.2, "speed": 0.6}
CALLER_SHARE = 0.6  # of a caller's own function, which may be exact


def features(genome: Genome, network: NetworkConfig) -> list[float]:
    """What a genome is made of: eight numbers a cell, and those of a layout of its own.

    The best width and number of cells lie between the extremes, depend on each other, and within a
    bound on the network's size on that: so squares, products and the size are features too. Without
    a layout the size told nothing that the cells do not tell (docs/results.md).
    """
    found = [*_cell_features(genome.normal), *_cell_features(genome.reduction)]
    if genome.layout is None:
        return found
    genes = [math.log2(genome.layout.channels), float(genome.layout.num_normal_cells)]
    squares = [gene**2 for gene in genes]
    if genome.layout.conv_kind is not None:
        genes.append(float(genome.layout.conv_kind == "full"))
    if genome.layout.channel_multiplier is not None:
        genes.append(float(genome.layout.channel_multiplier))
    products = [a * b for a, b in itertools.combinations(genes, 2)]
    return [*found, _log_parameters(genome, network), *genes, *squares, *products]


@functools.lru_cache(maxsize=4096)  # each fit asks for those of all individuals again
def _log_parameters(genome: Genome, network: NetworkConfig) -> float:
    return math.log2(parameters_of(genome, network))


@functools.lru_cache(maxsize=4096)
def _cell_features(cell: Cell) -> tuple[float, ...]:
    operands = [operand for node in cell.nodes for operand in node.operands]
    ops = [op for _, op in operands]
    return (
        float(cell.num_nodes),
        float(len(cell.unused_states())),
        float(max(cell.depths())),
        sum(op.kernel_size for op in ops) / len(ops),
        *(sum(test(op) for op in ops) / len(ops) for test in (_convolves, _pools)),
        sum(op is Op.IDENTITY for op in ops) / len(ops),
        sum(state < NUM_INPUTS for state, _ in operands) / len(ops),
    )


def _convolves(op: Op) -> bool:
    return op.kernel_size > 0


def _pools(op: Op) -> bool:
    return "pool" in op.value


def _rounded(fitness: np.ndarray) -> np.ndarray:
    """To nine digits of the largest: the last ones differ between processors, so that of equals
    another one would be the first.
    """
    scale = 10.0 ** np.ceil(np.log10(np.abs(fitness).max(initial=1e-300)))
    return np.round(fitness / scale, 9) * scale


def _zero_and_unit(fitness: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation, whose squares may be too large for a number."""
    size = float(np.abs(fitness).max()) or 1.0
    parts = fitness / size
    return float(parts.mean() * size), float(parts.std() * size) or 1.0


class FitnessPredictor:
    """A Bayesian linear regression of fitness on features (MacKay 1992; scikit-learn's).

    Args:
        individuals: At least two, each with a fitness. Their order does not matter.
        own_share: Part of what features do not foretell that counts as the genome's own.
        network: The settings of the genomes' networks.
        any_size: Whether fitness may be of any size. The regression's priors and tolerance are for
            fitness from 0 to 1, so another one is brought to a standard deviation of 1.
    """

    def __init__(
        self,
        individuals: Sequence[Individual],
        own_share: float,
        network: NetworkConfig,
        *,
        any_size: bool = False,
    ):
        self._own_share = own_share
        self._network = network
        # Sorted, so that no sum depends on the order in which fitness arrived.
        known = sorted(individuals, key=lambda individual: individual.id)
        rows = self._rows([individual.genome for individual in known])
        self._mean, self._scale = rows.mean(0), rows.std(0)
        # A feature that is always the same tells nothing.
        self._scale[self._scale < 1e-9] = np.inf
        fitness = np.array([individual.fitness for individual in known])
        self._zero, self._unit = _zero_and_unit(fitness) if any_size else (0.0, 1.0)
        scaled = (fitness - self._zero) / self._unit
        self._model = BayesianRidge().fit(self._scaled(rows), scaled)

    def _rows(self, genomes: Sequence[Genome]) -> np.ndarray:
        return np.array([features(genome, self._network) for genome in genomes])

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        return (rows - self._mean) / self._scale

    def predict(self, genomes: Sequence[Genome]) -> np.ndarray:
        """Fitness `[N]` that features foretell."""
        rows = self._rows(genomes)
        foretold = np.asarray(self._model.predict(self._scaled(rows)))
        return self._zero + self._unit * _rounded(foretold)

    @property
    def mean(self) -> float:
        """Fitness of a genome whose features are the mean of all."""
        return self._zero + self._unit * float(self._model.intercept_)

    def sample(self, rng: np.random.Generator, genomes: Sequence[Genome]) -> np.ndarray:
        """Fitness `[N]` by a model drawn from those that the data allow (Thompson 1933).

        All less the `mean` and in the same unit, so that they can be compared.
        """
        rows = self._rows(genomes)
        # The symmetric root is unique, where eigenvectors have the signs of the linear algebra at
        # hand.
        values, vectors = np.linalg.eigh(self._model.sigma_)
        root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
        drawn = self._model.coef_ + root @ rng.standard_normal(len(values))
        return _rounded(self._scaled(rows) @ drawn)

    def expected(self, individuals: Sequence[Individual]) -> np.ndarray:
        """Fitness `[N]` to expect of another training: the foretold, and a part of one's own."""
        foretold = self.predict([individual.genome for individual in individuals])
        own = np.array([individual.fitness for individual in individuals])
        return foretold + self._own_share * (own - foretold)
