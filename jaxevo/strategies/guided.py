"""Evolution guided by a model of fitness, which is fitted to all candidates so far.

The model proposes (as in BANANAS, White, Neiswanger and Savani 2021, arXiv 1910.11858, there with
neural networks) and ranks: who survives, and which candidates are trained again at the end, is
decided by the fitness that is to be expected, not by the one draw of it that was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from jaxevo.search_space.variation import random_genome
from jaxevo.strategies.evidence import LearningStrategy
from jaxevo.strategies.individual import Individual

PROPOSALS = 64  # genomes of which the model takes one
RANDOM_SHARE = 0.5  # of the proposals; the others are offspring of the population


class GuidedEvolution(LearningStrategy):
    """P random individuals, then offspring which a model takes from many proposals.

    Proposals are random genomes and, as in `RegularizedEvolution`, mutated crossovers of the
    population. A model drawn from those that the fitness so far allows takes the best of them, so
    that what is uncertain is tried too. The population is the P individuals of the highest expected
    fitness among the P before and those born since. With `mating_pool="survivors"` the model of a
    generation is fitted to the generations before it, so that all F can be evaluated at once.
    """

    def ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        """The highest expected fitness first; of equals, the older."""
        known = self._evidence.latest()
        return (
            super().ranked(individuals) if len(known) < 2 else self._by_expected(individuals, known)
        )

    def _by_expected(
        self, individuals: Iterable[Individual], known: list[Individual]
    ) -> list[Individual]:
        """The highest fitness first that the model of the `known` expects; of equals, the older."""
        listed = list(individuals)
        expected = self._evidence.model(known).expected(listed)
        order = sorted(range(len(listed)), key=lambda k: (-expected[k], listed[k].id))
        return [listed[k] for k in order]

    def _sequential(self) -> bool:
        return self.config.mating_pool == "growing" and self.generation > 0

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        known = self._evidence.for_draw(self.generation)
        if self._draws_at_random() or len(known) < 2:
            return self._random(rng, new_id, random_genome)
        pool = self._by_expected(self._mating_pool(), known)
        proposals = [self._propose(rng, new_id, pool) for _ in range(PROPOSALS)]
        # Take the best by a model drawn from those that are possible, unless it is isomorphic to a
        # known one. Those that wait for their fitness are not looked at.
        taken = {each.genome.canonical_key() for each in known}
        foretold = self._evidence.model(known).sample(rng, [each.genome for each in proposals])
        for k in np.argsort(-foretold, kind="stable"):
            genome = proposals[k].genome
            if genome.canonical_key() not in taken and (self.fits is None or self.fits(genome)):
                return proposals[k]
        return self._random(rng, new_id, random_genome)

    def _propose(
        self, rng: np.random.Generator, new_id: int, pool: Sequence[Individual]
    ) -> Individual:
        """A random genome, or an offspring of a pool that has the best first."""
        if rng.random() < RANDOM_SHARE or len(pool) < max(2, self.config.sample_size):
            return self._random(rng, new_id, random_genome)
        config = self.config
        # The first of a sample is the better.
        drawn = sorted(rng.choice(len(pool), max(2, config.sample_size), replace=False))
        parents = [pool[int(k)] for k in drawn[:2]]
        op_prob, edge_prob = config.op_mutation_prob, config.edge_mutation_prob
        return self._offspring(rng, new_id, parents, op_prob=op_prob, edge_prob=edge_prob)

    def _select(self) -> None:
        """At the end of a generation the P of the highest expected fitness are the population."""
        if self._count_generation():
            ranked = self.ranked(self.population)
            self.population, self.best = ranked[: self.config.population_size], ranked[0]
