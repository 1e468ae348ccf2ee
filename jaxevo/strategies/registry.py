"""The strategies by name."""

from __future__ import annotations

import dataclasses
from typing import Any

from jaxevo.config import CONV_KINDS, LAYOUT_BOUNDS, LEARNING_KINDS, SearchConfig
from jaxevo.config.fields import check
from jaxevo.errors import InputError
from jaxevo.search_space import genome_files
from jaxevo.search_space.genome import LAYOUT_OPTIONS, Genome, Layout
from jaxevo.search_space.layouts import LayoutSpace
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.generational import Cost, Fits
from jaxevo.strategies.pareto import ParetoEvolution
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.regularized import RegularizedEvolution

_AT_ONCE = ("random", "aco")  # draw a whole generation without the fitness of its members


def waits(config: SearchConfig) -> bool:
    """Whether a candidate is drawn by the fitness of those before it in its generation."""
    return config.evolution.mating_pool == "growing" and config.strategy not in _AT_ONCE


def make_strategy(
    config: SearchConfig,
    fits: Fits | None = None,
    cost: Cost | None = None,
    *,
    own_fitness: bool = False,
) -> Strategy:
    """The strategy of a search, at its beginning.

    It draws only genomes that `fits` is true for; `guided_front` needs the cost of genomes to draw.
    With `own_fitness` it is told the values of a caller's function in place of `config.fitness`.

    Raises `InputError` if the genomes to begin with cannot be used.
    """
    initial, layouts = initial_genomes(config, fits), layout_space(config)
    if config.strategy == "aco":
        return AntColony(config.evolution, config.colony, config.seed, fits=fits, initial=initial)
    given = (config.evolution, config.seed, fits)
    if config.strategy in LEARNING_KINDS:
        # Here, as scikit-learn takes a second.
        from jaxevo.strategies.evidence import Evidence
        from jaxevo.strategies.guided import GuidedEvolution
        from jaxevo.strategies.guided_front import GuidedFront
        from jaxevo.strategies.linear_model import CALLER_SHARE, OWN_SHARE

        own_share = CALLER_SHARE if own_fitness else OWN_SHARE[config.fitness]
        evidence = Evidence(config.evolution, own_share, config.network, any_size=own_fitness)
        more: dict[str, Any] = {"initial": initial, "layouts": layouts, "evidence": evidence}
        if config.strategy == "guided":
            return GuidedEvolution(*given, **more)
        return GuidedFront(*given, **more, cost=cost)
    kinds = {
        "rea": RegularizedEvolution,
        "aging": AgingEvolution,
        "random": RandomSearch,
        "nsga2": ParetoEvolution,
    }
    return kinds[config.strategy](*given, initial=initial, layouts=layouts)


def layout_space(config: SearchConfig) -> LayoutSpace | None:
    """The layouts that genomes may have; None where nothing of a layout is a gene."""
    if not config.layout_genes:
        return None
    network, genes = config.network, config.evolution
    least = genes.min_channel_multiplier
    return LayoutSpace.between(
        (genes.min_channels or network.channels, network.channels),
        (genes.min_normal_cells or network.num_normal_cells, network.num_normal_cells),
        CONV_KINDS if genes.vary_conv_kind else (),
        channel_multiplier=tuple(range(least, network.channel_multiplier + 1)) if least else (),
    )


def initial_genomes(config: SearchConfig, fits: Fits | None = None) -> list[Genome]:
    """The genomes that a search's population begins with.

    Where the layout is a gene, genomes without one have the search's widest with the most cells;
    where the kind of convolutions or the factor on the width is one, genomes that have none have
    the network's.

    Raises `InputError` if they are no genomes, too many, or not of the search space, or if `fits`
    is not true for one.
    """
    try:
        genomes = genome_files.unpack(config.initial_genomes)
    except ValueError as error:
        raise InputError(f"initial_genomes cannot be read ({error}); give genome files") from None
    size = config.evolution.population_size
    check(
        len(genomes) <= size,
        "initial_genomes",
        f"{len(genomes)} genomes",
        rule=f"the population has {size}; give fewer or raise population_size",
    )
    return [_initial(config, genome, number, fits=fits) for number, genome in enumerate(genomes, 1)]


def _initial(config: SearchConfig, genome: Genome, number: int, *, fits: Fits | None) -> Genome:
    """A genome to begin with, checked; it gets a layout where that is a gene."""
    evolution, layouts = config.evolution, layout_space(config)
    # Its cells must be of the search space.
    for cell in genome.cells:
        _check_initial(
            number,
            evolution.min_nodes <= cell.num_nodes <= evolution.max_nodes,
            rule=f"it has a cell of {cell.num_nodes} nodes, and the search space has "
            f"{evolution.min_nodes} to {evolution.max_nodes} (min_nodes, max_nodes)",
        )
    # What its layout lacks is as in the configuration.
    if layouts is not None:
        own = genome.layout or Layout(config.network.channels, config.network.num_normal_cells)
        for name in LAYOUT_OPTIONS:
            if getattr(layouts, name) and getattr(own, name) is None:
                own = dataclasses.replace(own, **{name: getattr(config.network, name)})
        genome = dataclasses.replace(genome, layout=own)
    # The layout and the size must be of the search space too.
    _check_initial(
        number,
        genome.layout in (layouts or (None,)),
        rule=f"it has {genome.layout and genome.layout.describe()}, which this search has not; "
        f"see {', '.join(LAYOUT_BOUNDS)} and vary_conv_kind",
    )
    _check_initial(
        number,
        fits is None or fits(genome),
        rule="its network is beyond the bounds on size; leave it out, or raise max_parameters or "
        "max_multiply_adds",
    )
    return genome


def _check_initial(number: int, holds: bool, rule: str) -> None:
    check(holds, "initial_genomes", f"genome {number}", rule=rule)
