"""The strategies by name."""

from __future__ import annotations

from jaxevo.aging import AgingEvolution
from jaxevo.asktell import Strategy
from jaxevo.colony import AntColony
from jaxevo.config import SearchConfig
from jaxevo.evolution import RegularizedEvolution
from jaxevo.random_search import RandomSearch


def make_strategy(config: SearchConfig) -> Strategy:
    """The strategy of a search, at its beginning."""
    if config.strategy == "aco":
        return AntColony(config.evolution, config.colony, config.seed)
    kinds = {"rea": RegularizedEvolution, "aging": AgingEvolution, "random": RandomSearch}
    return kinds[config.strategy](config.evolution, config.seed)
