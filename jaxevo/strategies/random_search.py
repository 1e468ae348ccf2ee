"""Random search: the baseline that any strategy has to beat."""

from __future__ import annotations

import numpy as np

from jaxevo.search_space.genome import CELL_KINDS, Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.strategies.generational import Generational
from jaxevo.strategies.individual import Individual


class RandomSearch(Generational):
    """Random genomes with B of each cell anywhere in [B_min, B_max].

    Nothing is learnt from any fitness: the population is the best P so far, and generations only
    count candidates.
    """

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        sizes = rng.integers(self.config.min_nodes, self.config.max_nodes + 1, len(CELL_KINDS))
        normal, reduction = (random_cell(rng, int(num_nodes)) for num_nodes in sizes)
        return Individual(new_id, Genome(normal, reduction), self.generation, operators=("random",))
