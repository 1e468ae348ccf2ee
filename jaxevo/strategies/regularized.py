"""The paper's strategy, and the default (section 3.2).

A strategy decides which genomes are tried, and which of them survive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jaxevo.strategies.base import Event
from jaxevo.strategies.generational import Generational
from jaxevo.strategies.individual import Individual, rank, select_survivors


def select_parents(
    rng: np.random.Generator, pool: Sequence[Individual], sample_size: int
) -> tuple[Individual, Individual]:
    """Selects the best of `sample_size` distinct individuals, and another one of them at random.

    The paper calls this "offspring generation". Were the second not distinct from the first, with
    the paper's S=2 crossover would do nothing half of the time. A sample of one is both parents.
    """
    sample = sorted(
        (pool[int(i)] for i in rng.choice(len(pool), sample_size, replace=False)), key=rank
    )
    others = sample[1:] or sample
    return sample[0], others[int(rng.integers(len(others)))]


class RegularizedEvolution(Generational):
    """Algorithm 1 of the paper.

    The population grows to P + F, then the worst F are removed. Where parents come from the growing
    population, an offspring needs the fitness of those before it, so there is one candidate at a
    time; else all that the generation still lacks.
    """

    # Up to P by random individuals, at first and after hard avoidance; else by offspring.
    _filling = True

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        return super().state_dict() | {"filling": self._filling}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on as the strategy that gave `state`.

        More generations may be configured than it had.
        """
        super().load_state_dict(state)
        self._filling = state["filling"]

    def _sequential(self) -> bool:
        return self.config.mating_pool == "growing" and not self._filling

    def _missing(self) -> int:
        return (
            self.config.population_size
            + (0 if self._filling else self.config.num_offspring)
            - len(self.population)
        )

    def _is_filling(self) -> bool:
        """At first, and after hard avoidance."""
        return self._filling

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        config = self.config
        if self._draws_at_random():
            return self._random(rng, new_id)
        parents = select_parents(rng, self._mating_pool(), config.sample_size)[
            : 2 if config.crossover else 1
        ]
        # The rates are raised by soft avoidance, which is the first event, and stay so.
        op_prob = config.stagnant_op_mutation_prob if self.events else config.op_mutation_prob
        edge_prob = config.stagnant_edge_mutation_prob if self.events else config.edge_mutation_prob
        return self._offspring(rng, new_id, parents, op_prob=op_prob, edge_prob=edge_prob)

    def _select(self) -> None:
        """Once the population is full, the worst F are removed, and stagnation is avoided."""
        if self._missing():
            return
        if not self._filling:
            self.population = select_survivors(self.population, self.config.population_size)
            if self.config.stagnation_avoidance and self._stagnates():
                self._avoid_stagnation()
        # After hard avoidance the same generation goes on until the population is full again.
        self._filling = len(self.population) < self.config.population_size
        if not self._filling:
            self._end_generation()

    def _stagnates(self) -> bool:
        """True if the best has not improved for A_stag generations.

        The count begins anew after each avoidance. A best that is only equalled stays the first of
        the population, so its birth is the last improvement.
        """
        last_event = self.events[-1].generation if self.events else 0
        unimproved = self.generation - max(self.population[0].generation, last_event)
        return (
            self.generation >= self.config.stagnation_start
            and unimproved >= self.config.stagnation_patience
        )

    def _avoid_stagnation(self) -> None:
        """Avoids stagnation: first softly, then hard (paper, section 3.2).

        Soft avoidance raises the mutation rates; hard avoidance keeps only the best.
        """
        best = self.population[0]
        assert best.fitness is not None
        if self.events:
            self.population = [best]
        kind = "hard" if self.events else "soft"
        self.events.append(Event(kind, self.generation, best.id, best.fitness))
