"""The strategies by name."""

from __future__ import annotations

from jaxevo.config import SearchConfig
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.regularized import RegularizedEvolution


def make_strategy(config: SearchConfig) -> Strategy:
    """The strategy of a search, at its beginning."""
    if config.strategy == "aco":
        return AntColony(config.evolution, config.colony, config.seed)
    kinds = {"rea": RegularizedEvolution, "aging": AgingEvolution, "random": RandomSearch}
    return kinds[config.strategy](config.evolution, config.seed)
