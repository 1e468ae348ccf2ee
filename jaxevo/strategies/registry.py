"""The strategies by name."""

from __future__ import annotations

from jaxevo.config import SearchConfig
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.generational import Fits
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.regularized import RegularizedEvolution


def make_strategy(config: SearchConfig, fits: Fits | None = None) -> Strategy:
    """The strategy of a search, at its beginning; it draws only genomes that `fits` is true for."""
    if config.strategy == "aco":
        return AntColony(config.evolution, config.colony, config.seed, fits=fits)
    if config.strategy == "guided":
        # Here, as scikit-learn takes a second.
        from jaxevo.strategies.guided import GuidedEvolution
        from jaxevo.strategies.predictor import OWN_SHARE

        share = OWN_SHARE[config.fitness]
        return GuidedEvolution(config.evolution, config.seed, fits, own_share=share)
    kinds = {"rea": RegularizedEvolution, "aging": AgingEvolution, "random": RandomSearch}
    return kinds[config.strategy](config.evolution, config.seed, fits)
