"""Asking and telling: what a search needs of its strategy.

A strategy is asked for candidates and told their fitness, which it maximises. It never evaluates
anything itself, so it runs in milliseconds with any fitness function and knows nothing of networks.

    best = evolve(RegularizedEvolution(EvolutionConfig(), seed=0), fitness)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from jaxevo.errors import InputError
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.individual import Individual, is_valid, rank


@dataclasses.dataclass(frozen=True)
class Event:
    """A stagnation avoidance, at the end of a generation."""

    kind: str  # "soft" or "hard"
    generation: int
    best_id: int
    best_fitness: float


class Strategy(Protocol):
    """The methods and attributes that a search uses of its strategy."""

    @property
    def done(self) -> bool: ...  # no candidate will follow

    @property
    def generation(self) -> int: ...  # the current one; after the last it is num_generations + 1

    @property
    def num_generations(self) -> int: ...  # the last one's number

    @property
    def population(self) -> Sequence[Individual]: ...  # evaluated individuals, best first

    @property
    def best(self) -> Individual | None: ...  # of all told, be it in the population or not

    @property
    def events(self) -> Sequence[Event]: ...

    def ask(self) -> list[Individual]:
        """The candidates that may be evaluated now, in any order or all at once; [] if done.

        Asked again before one of them is told, it gives the same candidates.
        """
        ...

    def tell(self, individual: Individual) -> None:
        """Takes a candidate with its fitness; None, NaN and infinities are failures."""
        ...

    def replay(self, individual: Individual) -> None:
        """Takes an individual of a recorded run as if it had been asked for; nothing is drawn."""
        ...

    def ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        """Evaluated individuals, the one first that is held for the best."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on exactly as the strategy that gave `state`.

        Both strategies must have been made with the same settings.
        """
        ...


def evolve(
    strategy: Strategy,
    fitness: Callable[[Genome], float | None],
    max_consecutive_failures: int = 20,
) -> Individual:
    """Runs a strategy to its end and returns the individual of the highest fitness.

    `fitness` returns None or NaN for a genome that cannot be evaluated; another is then drawn. Too
    many failures in a row raise `RuntimeError`, since a fitness that always fails would be called
    for ever, and what is no number raises `InputError`.
    """
    failures, best = 0, None
    while candidates := strategy.ask():
        for candidate in candidates:
            value = _number(fitness(candidate.genome))
            evaluated = dataclasses.replace(candidate, fitness=value)
            strategy.tell(evaluated)
            valid = is_valid(evaluated.fitness)
            failures = 0 if valid else failures + 1
            if valid and (best is None or rank(evaluated) < rank(best)):
                best = evaluated
            if failures >= max_consecutive_failures:
                raise RuntimeError(
                    f"{failures} candidates in a row have no fitness: the function gave {value} "
                    f"for the last, {candidate.genome.to_dict()}; try it on that"
                )
    assert best is not None
    return best


def _number(value: Any) -> float | None:
    """The fitness that a function gave. Raises `InputError` unless it is one number or None."""
    if value is None:
        return None
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "biuf":
        raise InputError(f"fitness gave {value!r}: let it give a number, or None for a failure")
    return float(array)
