"""Random search: the baseline that any strategy has to beat."""

from __future__ import annotations

import numpy as np

from jaxevo.search_space.variation import random_genome
from jaxevo.strategies.generational import Generational
from jaxevo.strategies.individual import Individual


class RandomSearch(Generational):
    """Random genomes with B of each cell anywhere in [B_min, B_max].

    Nothing is learnt from any fitness: the population is the best P so far, and generations only
    count candidates.
    """

    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        return self._random(rng, new_id, random_genome)
