"""Strategies with small settings, scripted fitness, and runs of them."""

from __future__ import annotations

import dataclasses
import math
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxevo.config import SearchConfig, replace
from jaxevo.search_space.genome import Genome, Op
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.guided import GuidedEvolution
from jaxevo.strategies.guided_front import GuidedFront
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.pareto import ParetoEvolution
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.registry import make_strategy
from jaxevo.strategies.regularized import RegularizedEvolution

Fitness = Callable[[Individual], float | None]
SMALL = {
    **{
        "population_size": 4,
        "num_offspring": 3,
        "num_generations": 8,
        "max_nodes": 4,
        "num_ants": 5,
    },
    **{"stagnation_start": 2, "stagnation_patience": 2},
}
KINDS = {
    "rea": RegularizedEvolution,
    "aging": AgingEvolution,
    "random": RandomSearch,
    "aco": AntColony,
    "guided": GuidedEvolution,
    "nsga2": ParetoEvolution,
    "guided_front": GuidedFront,
}
VARIANTS: list[dict[str, Any]] = [
    *({"strategy": name} for name in KINDS),
    {"strategy": "aging", "mating_pool": "survivors"},
    {"strategy": "guided", "mating_pool": "survivors"},
    {"strategy": "nsga2", "mating_pool": "survivors"},
    {"strategy": "guided_front", "mating_pool": "survivors"},
    {"strategy": "rea", "crossover": False},
    {"strategy": "rea", "stagnation_avoidance": False},
    # Less and more than a generation under way.
    {"strategy": "rea", "lag": 2},
    *({"strategy": name, "lag": 9} for name in KINDS),
    *(
        {"strategy": name, "min_channels": 2, "channels": 12, "min_normal_cells": 1}
        for name in KINDS
        if name != "aco"
    ),
    {"strategy": "rea", "vary_conv_kind": True},
    {"strategy": "aging", "vary_conv_kind": True, "min_channels": 2, "channels": 12},
    {"strategy": "guided", "vary_conv_kind": True},
    {"strategy": "nsga2", "vary_conv_kind": True},
    {"strategy": "guided", "min_channel_multiplier": 1},
    {"strategy": "nsga2", "min_channel_multiplier": 1, "vary_conv_kind": True},
    {"strategy": "guided_front", "min_channel_multiplier": 1, "vary_conv_kind": True},
]


def make(seed: int = 0, **settings: Any) -> Strategy:
    config = replace(SearchConfig(), SMALL | settings | {"seed": seed})
    return make_strategy(config, cost=kernel_sizes)


def count_conv_3x3(genome: Genome) -> float:
    return float(sum(node.ops.count(Op.CONV_3X3) for cell in genome.cells for node in cell.nodes))


def kernel_sizes(genome: Genome) -> int:
    """A cost of genomes: the sides of all kernels."""
    return sum(op.kernel_size for cell in genome.cells for node in cell.nodes for op in node.ops)


def table_fitness(individual: Individual) -> float | None:
    """A coarse hash of the genome, so that ties are common; one in seven fails."""
    value = zlib.crc32(individual.genome.canonical_key().encode())
    return (None, math.nan, math.inf)[value % 3] if value % 7 == 0 else value % 101 / 100


def step(strategy: Strategy, fitness: Fitness, position: int = 0) -> Individual:
    candidate = strategy.ask()[position]
    cost = kernel_sizes(candidate.genome) if isinstance(strategy, ParetoEvolution) else None
    told = dataclasses.replace(candidate, fitness=fitness(candidate), cost=cost)
    if position == 0:  # it takes effect at once, as in a run
        told = dataclasses.replace(told, generation=strategy.generation)
    strategy.tell(told)
    return told


def run(
    strategy: Strategy, fitness: Fitness, order: np.random.Generator | None = None
) -> list[Individual]:
    """Runs to the end and returns all that was told; `order` picks the next of the candidates, else
    it is the first.
    """
    history = []
    while candidates := strategy.ask():
        history.append(
            step(strategy, fitness, int(order.integers(len(candidates))) if order else 0)
        )
    return history


def ids(individuals) -> list[int]:
    return [individual.id for individual in individuals]


def sizes(genome: Genome) -> tuple[int, int]:
    return genome.normal.num_nodes, genome.reduction.num_nodes


def differences(one: Genome, other: Genome) -> int:
    """How many inputs and ops differ, a node that only one has counting as one."""
    number = 0
    for cell, another in zip(one.cells, other.cells, strict=True):
        number += abs(cell.num_nodes - another.num_nodes)
        for a, b in zip(cell.nodes, another.nodes, strict=False):
            number += sum(
                x != y for x, y in zip((*a.inputs, *a.ops), (*b.inputs, *b.ops), strict=True)
            )
    return number
