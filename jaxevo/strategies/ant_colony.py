"""Ant colony search, after DeepSwarm (Byla and Pang 2019).

*DeepSwarm: Optimising Convolutional Neural Networks using Swarm Intelligence*, arXiv 1905.07350.
The rules are those of the ant colony system (Dorigo and Gambardella 1997).

An ant builds a genome choice by choice. Every choice (the input and the operation of each operand
of each node of each cell) has pheromone on what can be chosen, and the genomes of good ants leave
more of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jaxevo.config import ColonyConfig, EvolutionConfig
from jaxevo.search_space.genome import CELL_KINDS, NUM_INPUTS, OPS, Cell, Genome, Node
from jaxevo.strategies.generational import Fits, Generational
from jaxevo.strategies.individual import Individual

# A choice: "inputs" or "ops", the cell's number, the node's place, which of its operands, and what
# was chosen.
Choice = tuple[str, int, int, int, int]


class AntColony(Generational):
    """Iterations of ants, with as many candidates in all as `RegularizedEvolution`.

    The last iteration may be cut short.

    B is the same for all ants of an iteration: B_min in the first, one more in each, B_max at most.
    An ant takes the option of most pheromone with probability `greediness`, else one at random in
    proportion to it. Each ant that is drawn moves the pheromone of its choices towards the start
    ("local update"), so that the next ant does otherwise; at the end of an iteration the best ant
    so far moves that of its own towards its fitness ("global update"). As local updates need no
    fitness, all ants of an iteration can be evaluated at once.

    Unlike DeepSwarm, an iteration zero of one random ant is left out, and every network is trained
    from fresh weights. Fitness must not be negative, as an accuracy is not. The population, the
    best P so far, has no part in it.
    """

    def __init__(
        self,
        config: EvolutionConfig,
        colony: ColonyConfig,
        seed: int,
        *,
        fits: Fits | None = None,
        initial: Sequence[Genome] = (),
    ) -> None:
        super().__init__(config, seed, fits, initial=initial)
        self.colony = colony
        options = {"inputs": config.max_nodes - 1 + NUM_INPUTS, "ops": len(OPS)}
        self.pheromone = {
            kind: np.full((len(CELL_KINDS), config.max_nodes, 2, number), colony.pheromone_start)
            for kind, number in options.items()
        }

    @property
    def num_generations(self) -> int:
        """Number of the last iteration, counted from 0."""
        return math.ceil(self.config.num_candidates / self.colony.num_ants) - 1

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        return super().state_dict() | {
            "pheromone": {kind: array.tolist() for kind, array in self.pheromone.items()}
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on as the strategy that gave `state`."""
        super().load_state_dict(state)
        self.pheromone = {kind: np.array(state["pheromone"][kind]) for kind in self.pheromone}

    def _size(self) -> int:
        return min(
            self.colony.num_ants,
            self.config.num_candidates - self.generation * self.colony.num_ants,
        )

    def _remaining(self) -> int:
        return self.config.num_candidates - self.generation * self.colony.num_ants - self._evaluated

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        num_nodes = min(self.config.min_nodes + self.generation, self.config.max_nodes)
        normal, reduction = (
            self._build(rng, number, num_nodes) for number in range(len(CELL_KINDS))
        )
        genome = Genome(normal, reduction)
        return Individual(new_id, genome, self.generation, operators=("ant",))

    def _note_drawn(self, candidate: Individual) -> None:
        """The local update."""
        for choice in choices(candidate.genome):
            self._move(choice, self.colony.pheromone_start, self.colony.pheromone_decay)

    def _build(self, rng: np.random.Generator, number: int, num_nodes: int) -> Cell:
        nodes = []
        for k in range(num_nodes):
            first, second = (
                (
                    self._choose(
                        rng, self.pheromone["inputs"][number, k, operand, : k + NUM_INPUTS]
                    ),
                    OPS[self._choose(rng, self.pheromone["ops"][number, k, operand])],
                )
                for operand in range(2)
            )
            nodes.append(Node((first[0], second[0]), (first[1], second[1])))
        return Cell(tuple(nodes))

    def _choose(self, rng: np.random.Generator, pheromone: np.ndarray) -> int:
        """Draws an option by the pseudo-random proportional rule.

        Of several options with most pheromone, one is taken at random.
        """
        if rng.random() < self.colony.greediness:
            return int(rng.choice(np.flatnonzero(pheromone == pheromone.max())))
        return int(rng.choice(len(pheromone), p=pheromone / pheromone.sum()))

    def _move(self, choice: Choice, towards: float, rate: float) -> None:
        kind, *place = choice
        self.pheromone[kind][tuple(place)] += rate * (towards - self.pheromone[kind][tuple(place)])

    def _select(self) -> None:
        self.population = self.population[: self.config.population_size]
        if self._count_generation():
            assert self.best is not None and self.best.fitness is not None
            for choice in choices(self.best.genome):
                self._move(choice, max(self.best.fitness, 0.0), self.colony.pheromone_evaporation)


def choices(genome: Genome) -> Iterator[Choice]:
    """Choices of an ant that has built this genome."""
    for number, cell in enumerate(genome.cells):
        for k, node in enumerate(cell.nodes):
            for operand, (state, op) in enumerate(node.operands):
                yield "inputs", number, k, operand, state
                yield "ops", number, k, operand, OPS.index(op)
