"""Individuals: genomes in a search, how they rank, and which survive. Fitness is maximised."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any, TypeGuard

from jaxevo.search_space.genome import Genome


@dataclasses.dataclass(frozen=True)
class Individual:
    """A genome in a search. Without a fitness it is not evaluated yet, or has failed."""

    id: int  # sequential; failed candidates count
    genome: Genome
    generation: int  # in which it was born; 0 is the initial population
    parents: tuple[int, ...] = ()
    # Operators that made it: "random", "ant", "given" for a genome that the search began with, or
    # "crossover" and the mutations that changed it.
    operators: tuple[str, ...] = ()
    fitness: float | None = None
    cost: int | None = None  # size of its network, where a search minimises that too
    rival: int | None = None  # in a race, the individual with which its training has to keep up

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as for JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        lists = {"parents": list(self.parents), "operators": list(self.operators)}
        for name in ("cost", "rival"):
            if fields[name] is None:
                del fields[name]
        return fields | lists | {"genome": self.genome.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Individual:
        """The reverse of `to_dict`."""
        tuples = {"parents": tuple(data["parents"]), "operators": tuple(data["operators"])}
        return cls(**{**data, **tuples, "genome": Genome.from_dict(data["genome"])})


def is_valid(fitness: float | None) -> TypeGuard[float]:
    """False for the fitness of a failed candidate."""
    return fitness is not None and math.isfinite(fitness)


def rank(individual: Individual) -> tuple[float, int]:
    """Sorts the best first; of equals, the older."""
    assert individual.fitness is not None
    return -individual.fitness, individual.id


def select_survivors(individuals: Iterable[Individual], number: int) -> list[Individual]:
    """The best `number`, best first: the mu + lambda "survivor selection"."""
    return sorted(individuals, key=rank)[:number]
