"""The strategies by name."""

from __future__ import annotations

from jaxevo.config import SearchConfig
from jaxevo.search_space.layouts import LayoutSpace
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.generational import Fits
from jaxevo.strategies.pareto import ParetoEvolution
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.regularized import RegularizedEvolution


def make_strategy(config: SearchConfig, fits: Fits | None = None) -> Strategy:
    """The strategy of a search, at its beginning; it draws only genomes that `fits` is true for."""
    layouts = layout_space(config)
    if config.strategy == "aco":
        return AntColony(config.evolution, config.colony, config.seed, fits=fits)
    if config.strategy == "guided":
        # Here, as scikit-learn takes a second.
        from jaxevo.strategies.guided import GuidedEvolution
        from jaxevo.strategies.predictor import OWN_SHARE

        share = OWN_SHARE[config.fitness]
        return GuidedEvolution(
            config.evolution, config.seed, fits, layouts=layouts, own_share=share
        )
    kinds = {
        "rea": RegularizedEvolution,
        "aging": AgingEvolution,
        "random": RandomSearch,
        "nsga2": ParetoEvolution,
    }
    return kinds[config.strategy](config.evolution, config.seed, fits, layouts=layouts)


def layout_space(config: SearchConfig) -> LayoutSpace | None:
    """The layouts that genomes may have; None where width and number of cells are no genes."""
    if not config.layout_genes:
        return None
    network, genes = config.network, config.evolution
    return LayoutSpace.between(
        (genes.min_channels or network.channels, network.channels),
        (genes.min_normal_cells or network.num_normal_cells, network.num_normal_cells),
    )
