"""Aging evolution (Real, Aggarwal, Huang and Le 2018).

*Regularized Evolution for Image Classifier Architecture Search*, arXiv 1802.01548.
"""

from __future__ import annotations

import numpy as np

from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import add_node, mutate_edge, mutate_op
from jaxevo.strategies.generational import Generational
from jaxevo.strategies.individual import Individual, rank


class AgingEvolution(Generational):
    """A queue of P individuals, in which a child of the best of a sample replaces the oldest.

    The sample has S individuals, and the child is a mutated copy. The oldest dies, however good.

    As in the publication, a child differs from its parent by one mutation. Which one is drawn in
    proportion to the paper's rates (tau_m-op, tau_m-edge, tau_b), since here B grows too; it may
    find nothing to change. F children are counted as a generation, so the number of candidates is
    that of `RegularizedEvolution`. With `mating_pool="survivors"` all F children have parents from
    before the generation, whose oldest die at its end: so all F can be evaluated at once.

    The best may die: `best` is the best of all, while the population is what is alive.
    """

    def _sequential(self) -> bool:
        return self.config.mating_pool == "growing" and self.generation > 0

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        config = self.config
        if self._draws_at_random():
            return self._random(rng, new_id)
        pool = self._mating_pool()
        drawn = rng.choice(len(pool), config.sample_size, replace=False)
        parent = min((pool[int(i)] for i in drawn), key=rank)
        genome, mutation = self._mutate(rng, parent.genome)
        operators = (mutation,) if genome != parent.genome else ()
        return Individual(new_id, genome, self.generation, (parent.id,), operators)

    def _mutate(self, rng: np.random.Generator, genome: Genome) -> tuple[Genome, str]:
        """Applies one of the mutations; returns the genome and the mutation's name."""
        config = self.config
        rates = np.array([config.op_mutation_prob, config.edge_mutation_prob, config.add_node_prob])
        if self.layouts is not None:
            rates = np.append(rates, config.layout_mutation_prob)
        mutation = int(rng.choice(len(rates), p=rates / rates.sum()))
        if mutation == 0:
            return mutate_op(rng, genome, 1.0), "op_mutation"
        if mutation == 1:
            return mutate_edge(rng, genome, 1.0), "edge_mutation"
        if mutation == 2:
            return add_node(rng, genome, 1.0, max_nodes=config.max_nodes), "add_node"
        return self._mutate_layout(rng, genome, 1.0), "layout_mutation"

    def _select(self) -> None:
        """The oldest die; among individuals of one generation the smaller id is the older."""
        if self._count_generation() or self._sequential():
            living = sorted(self.population, key=lambda individual: individual.id)[
                -self.config.population_size :
            ]
            self.population = sorted(living, key=rank)
