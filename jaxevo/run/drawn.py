"""The candidates that a search draws: within the bounds on size, and again those of its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxevo.config import SearchConfig
from jaxevo.files import FileError
from jaxevo.run.records import Candidate
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import make_strategy


def within_bounds(
    config: SearchConfig, complexity: Callable[[Genome], Complexity]
) -> Callable[[Genome], bool] | None:
    """Tells of a genome whether its network is within a search's bounds on size.

    None if there are no bounds, so that no genome is measured for them.
    """
    if not config.max_parameters and not config.max_multiply_adds:
        return None

    def fits(genome: Genome) -> bool:
        size = complexity(genome)
        return config.fits(size.parameters, size.multiply_adds)

    return fits


def bounded_strategy(config: SearchConfig, complexity: Callable[[Genome], Complexity]) -> Strategy:
    """A search's strategy, which draws genomes within the bounds on size. Raises `InputError`."""

    def cost(genome: Genome) -> int | None:
        size = complexity(genome)
        return config.cost(size.parameters, size.multiply_adds)

    return make_strategy(config, within_bounds(config, complexity), cost)


def check_drawn(
    config: SearchConfig,
    complexity: Callable[[Genome], Complexity],
    known: Mapping[int, Candidate],
) -> None:
    """Raises `FileError` unless this version draws the candidates that a run has."""
    strategy = bounded_strategy(config, complexity)
    while (waiting := strategy.ask()) and (record := recorded(waiting[0], known)):
        strategy.tell(record.individual)


def recorded(candidate: Individual, known: Mapping[int, Candidate]) -> Candidate | None:
    """The record of a candidate, if there is one. Raises `FileError` if it has another genome."""
    record = known.get(candidate.id)
    if record is not None and record.individual.genome != candidate.genome:
        raise FileError(
            f"the history has another genome for individual {candidate.id} than this version of "
            "the program draws; go on with the version that wrote it, or start in another workdir"
        )
    return record
