"""Evolution of a front: networks of which none is both fitter and cheaper than another.

NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002), with the paper's crossover and mutations.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jaxevo.strategies.dominance import Point, crowded_order
from jaxevo.strategies.generational import Generational
from jaxevo.strategies.individual import Individual, rank

_DRAWS = 20  # until an offspring is new; then a known one is taken


class ParetoEvolution(Generational):
    """P random individuals, then F offspring a generation, of which and the P before the best stay.

    The better of two is the one that fewer dominate, and of equals the less crowded one. Each
    individual is told with a cost. `best` is the fittest of all, whatever it costs; the population
    is in the order of fitness.
    """

    def tell(self, individual: Individual) -> None:
        """Takes a candidate with its fitness and its cost; a failed one needs no cost."""
        _check_cost(individual)
        super().tell(individual)

    def replay(self, individual: Individual) -> None:
        """Takes an individual of a recorded run. Raises `ValueError` for one without a cost."""
        _check_cost(individual)
        super().replay(individual)

    def ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        """The fittest, then the rest of the front, the least crowded first, then the others."""
        listed = sorted(individuals, key=rank)
        return [listed[place] for place in crowded_order([point_of(each) for each in listed])]

    def _sequential(self) -> bool:
        return self.config.mating_pool == "growing" and self.generation > 0

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        if self._draws_at_random():
            return self._random(rng, new_id)
        # Isomorphic genomes have equal objectives, and would fill the population.
        pool = self.ranked(self._mating_pool())
        known = [*self.population, *self._pending.values()]
        taken = {each.genome.canonical_key() for each in known}
        for _ in range(_DRAWS):
            candidate = self._child(rng, new_id, pool)
            if candidate.genome.canonical_key() not in taken:
                break
        return candidate

    def _child(self, rng: np.random.Generator, new_id: int, pool: list[Individual]) -> Individual:
        """An offspring of two winners of tournaments; the pool is in the order of rank."""
        config = self.config
        size = min(config.sample_size, len(pool))
        places = [int(rng.choice(len(pool), size, replace=False).min()) for _ in range(2)]
        parents = [pool[place] for place in sorted(set(places))]
        return self._offspring(
            rng,
            new_id,
            parents,
            op_prob=config.op_mutation_prob,
            edge_prob=config.edge_mutation_prob,
        )

    def _select(self) -> None:
        """At the end of a generation the best P stay, of isomorphic ones the first."""
        if not self._count_generation():
            return
        distinct: dict[str, Individual] = {}
        for individual in sorted(self.population, key=lambda each: each.id):
            distinct.setdefault(individual.genome.canonical_key(), individual)
        survivors = self.ranked(distinct.values())[: self.config.population_size]
        self.population = sorted(survivors, key=rank)


def _check_cost(individual: Individual) -> None:
    if individual.fitness is not None and individual.cost is None:
        raise ValueError(f"individual {individual.id} has a fitness and no cost")


def point_of(individual: Individual) -> Point:
    """Fitness and cost, which it must have."""
    assert individual.fitness is not None and individual.cost is not None
    return individual.fitness, individual.cost
