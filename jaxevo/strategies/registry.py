"""The strategies by name."""

from __future__ import annotations

from jaxevo.config import SearchConfig
from jaxevo.config.fields import check
from jaxevo.errors import InputError
from jaxevo.search_space import genome_files
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.aging import AgingEvolution
from jaxevo.strategies.ant_colony import AntColony
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.generational import Fits
from jaxevo.strategies.random_search import RandomSearch
from jaxevo.strategies.regularized import RegularizedEvolution


def make_strategy(config: SearchConfig, fits: Fits | None = None) -> Strategy:
    """The strategy of a search, at its beginning; it draws only genomes that `fits` is true for.

    Raises `InputError` if the genomes to begin with cannot be used.
    """
    initial = initial_genomes(config, fits)
    if config.strategy == "aco":
        return AntColony(config.evolution, config.colony, config.seed, fits=fits, initial=initial)
    given = (config.evolution, config.seed, fits)
    if config.strategy == "guided":
        # Here, as scikit-learn takes a second.
        from jaxevo.strategies.guided import GuidedEvolution
        from jaxevo.strategies.predictor import OWN_SHARE

        share = OWN_SHARE[config.fitness]
        return GuidedEvolution(*given, initial=initial, own_share=share)
    kinds = {"rea": RegularizedEvolution, "aging": AgingEvolution, "random": RandomSearch}
    return kinds[config.strategy](*given, initial=initial)


def initial_genomes(config: SearchConfig, fits: Fits | None = None) -> list[Genome]:
    """The genomes that a search's population begins with.

    Raises `InputError` if they are no genomes, too many, or not of the search space, or if `fits`
    is not true for one.
    """
    try:
        genomes = genome_files.unpack(config.initial_genomes)
    except ValueError as error:
        raise InputError(f"initial_genomes cannot be read ({error}); give genome files") from None
    evolution = config.evolution
    size = evolution.population_size
    check(
        len(genomes) <= size,
        "initial_genomes",
        f"{len(genomes)} genomes",
        rule=f"the population has {size}; give fewer or raise population_size",
    )
    for number, genome in enumerate(genomes, 1):
        for cell in genome.cells:
            check(
                evolution.min_nodes <= cell.num_nodes <= evolution.max_nodes,
                "initial_genomes",
                f"genome {number}",
                rule=f"it has a cell of {cell.num_nodes} nodes, and the search space has "
                f"{evolution.min_nodes} to {evolution.max_nodes} (min_nodes, max_nodes)",
            )
        check(
            fits is None or fits(genome),
            "initial_genomes",
            f"genome {number}",
            rule="its network is beyond the bounds on size; leave it out, or raise max_parameters "
            "or max_multiply_adds",
        )
    return genomes
