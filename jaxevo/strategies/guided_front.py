"""Evolution of a front, guided by a model of fitness, which is fitted to all candidates so far.

Of many proposals that one is trained which is foretold to raise the front most, by a model drawn
from those that the fitness so far allows (after Bradford, Schweidtmann and Lapkin 2018, *Efficient
multiobjective optimization employing Gaussian processes*, there with other models).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from jaxevo.search_space.variation import random_genome
from jaxevo.strategies.dominance import crowded_order, gains
from jaxevo.strategies.evidence import LearningStrategy
from jaxevo.strategies.generational import Cost
from jaxevo.strategies.guided import PROPOSALS, RANDOM_SHARE
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.pareto import ParetoEvolution, point_of


class GuidedFront(LearningStrategy, ParetoEvolution):
    """P random individuals, then offspring which a model takes from many proposals.

    Proposals are random genomes and, as in `ParetoEvolution`, mutated crossovers of the population.
    Who stays is decided as there, but by the fitness that is to be expected in place of the one
    draw of it that was measured.

    Beside what every strategy takes it needs its `evidence`, and to draw candidates the `cost` of
    a genome.
    """

    def __init__(self, *common: Any, cost: Cost | None = None, **more: Any) -> None:
        super().__init__(*common, **more)
        self._cost = cost

    def ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        """The one of the highest expected fitness, then the rest of the front, then the others."""
        return self._by_expected(individuals, self._evidence.latest())

    def _by_expected(
        self, individuals: Iterable[Individual], known: list[Individual]
    ) -> list[Individual]:
        """In the order of `ParetoEvolution.ranked`, by the fitness that the `known` let expect."""
        listed = sorted(individuals, key=lambda each: each.id)
        if len(known) < 2 or not listed:
            return super().ranked(listed)
        expected = self._evidence.model(known).expected(listed)
        order = np.argsort(-expected, kind="stable")
        points = [(float(expected[k]), point_of(listed[k])[1]) for k in order]
        return [listed[order[place]] for place in crowded_order(points)]

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        known = self._evidence.for_draw(self.generation)
        if self._draws_at_random() or len(known) < 2:
            return self._random(rng, new_id, random_genome)
        pool = self._by_expected(self._mating_pool(), known)
        proposals = [
            self._random(rng, new_id, random_genome)
            if rng.random() < RANDOM_SHARE
            else self._child(rng, new_id, pool)
            for _ in range(PROPOSALS)
        ]
        # Leave out what is too large, or isomorphic to a known genome or to one that waits.
        taken = {each.genome.canonical_key() for each in (*known, *self._pending.values())}
        new = [
            each
            for each in proposals
            if each.genome.canonical_key() not in taken
            and (self.fits is None or self.fits(each.genome))
        ]
        return self._promising(rng, new, known) if new else proposals[0]

    def _promising(
        self, rng: np.random.Generator, proposals: list[Individual], known: list[Individual]
    ) -> Individual:
        """The proposal that raises the front of the known ones most, by a model that is drawn."""
        assert self._cost is not None
        model = self._evidence.model(known)
        genomes = [each.genome for each in proposals]
        foretold = model.mean + model.sample(rng, genomes)
        costs = [cost for genome in genomes if (cost := self._cost(genome)) is not None]
        known_costs = [point_of(each)[1] for each in known]
        raised = gains(
            [*zip(foretold, costs, strict=True)],
            [*zip(model.expected(known), known_costs, strict=True)],
        )
        # Rounded, as the last digits differ between processors.
        return proposals[int(np.argmax(np.round(raised, 9)))]
