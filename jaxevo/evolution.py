"""The search strategy: which genomes are tried, and which of them survive (paper, section 3.2).

A strategy is asked for candidates and told their fitness, which it maximises; it never evaluates anything itself, so
it runs in milliseconds with any fitness function and knows nothing of networks. `RegularizedEvolution` is the paper's;
others can stand beside it behind the same `Strategy`.

    best = evolve(RegularizedEvolution(EvolutionConfig(), seed=0), fitness)
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np

from jaxevo.config import EvolutionConfig
from jaxevo.genome import Genome
from jaxevo.variation import crossover, mutate, random_genome


@dataclasses.dataclass(frozen=True)
class Individual:
    """A genome in a search. Without a fitness it is not evaluated yet, or has failed."""

    id: int  # sequential; failed candidates count
    genome: Genome
    generation: int  # in which it was born; 0 is the initial population
    parents: tuple[int, ...] = ()
    operators: tuple[str, ...] = ()  # those that made it: "random", or "crossover" and the mutations that changed it
    fitness: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as for JSON."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        lists = {"parents": list(self.parents), "operators": list(self.operators)}
        return fields | lists | {"genome": self.genome.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Individual:
        """The reverse of `to_dict`."""
        tuples = {"parents": tuple(data["parents"]), "operators": tuple(data["operators"])}
        return cls(**{**data, **tuples, "genome": Genome.from_dict(data["genome"])})


@dataclasses.dataclass(frozen=True)
class Event:
    """A stagnation avoidance, at the end of a generation."""

    kind: str  # "soft" or "hard"
    generation: int
    best_id: int
    best_fitness: float


class Strategy(Protocol):
    """What a search needs of its strategy."""

    @property
    def done(self) -> bool: ...  # no candidate will follow

    @property
    def generation(self) -> int: ...  # the one being worked on; grows by one as each is complete, also after the last

    @property
    def population(self) -> Sequence[Individual]: ...  # evaluated individuals, best first

    @property
    def best(self) -> Individual | None: ...

    @property
    def events(self) -> Sequence[Event]: ...

    def ask(self) -> list[Individual]:
        """The candidates that may be evaluated now, in any order or all at once; asked again, the same; [] if done."""
        ...

    def tell(self, individual: Individual) -> None:
        """Takes a candidate with its fitness; None, NaN and infinities are failures."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on exactly as the strategy that gave `state`; it must have been made with the same settings."""
        ...


def is_valid(fitness: float | None) -> TypeGuard[float]:
    """False for the fitness of a failed candidate."""
    return fitness is not None and math.isfinite(fitness)


def evolve(
    strategy: Strategy, fitness: Callable[[Genome], float | None], max_consecutive_failures: int = 20
) -> Individual:
    """Runs a strategy to its end and returns the best individual.

    `fitness` returns None or NaN for a genome that cannot be evaluated; another is then drawn. Too many failures in a
    row raise `RuntimeError`, since a fitness that always fails would be called for ever.
    """
    failures = 0
    while candidates := strategy.ask():
        for candidate in candidates:
            evaluated = dataclasses.replace(candidate, fitness=fitness(candidate.genome))
            strategy.tell(evaluated)
            failures = 0 if is_valid(evaluated.fitness) else failures + 1
            if failures >= max_consecutive_failures:
                raise RuntimeError(f"{failures} candidates in a row have no fitness (the last: {evaluated})")
    assert strategy.best is not None
    return strategy.best


def rank(individual: Individual) -> tuple[float, int]:
    """Sorts the best first; of equals, the older."""
    assert individual.fitness is not None
    return -individual.fitness, individual.id


def select_survivors(individuals: Iterable[Individual], number: int) -> list[Individual]:
    """The best `number`, best first: the mu + lambda "survivor selection"."""
    return sorted(individuals, key=rank)[:number]


def select_parents(
    rng: np.random.Generator, pool: Sequence[Individual], sample_size: int
) -> tuple[Individual, Individual]:
    """Of `sample_size` distinct individuals, the best and another one at random ("offspring generation").

    Were the second not distinct from the first, with the paper's S=2 crossover would do nothing half of the time. A
    sample of one is both parents.
    """
    sample = sorted((pool[int(i)] for i in rng.choice(len(pool), sample_size, replace=False)), key=rank)
    others = sample[1:] or sample
    return sample[0], others[int(rng.integers(len(others)))]


class RegularizedEvolution:
    """Algorithm 1 of the paper.

    Every candidate has a random generator of its own, made of the seed and the candidate's id. So nothing random is
    stored, and a run depends on the seed and the fitness alone, not on the order in which candidates are told.
    """

    def __init__(self, config: EvolutionConfig, seed: int) -> None:
        self.config = config
        self.seed = seed
        self.generation = 0
        self.population: list[Individual] = []  # grows to P + F, then the worst F are removed
        self.events: list[Event] = []
        self._pending: dict[int, Individual] = {}  # asked for, not told yet
        self._next_id = 0
        self._filling = True  # up to P by random individuals, at first and after hard avoidance; else by offspring

    @property
    def done(self) -> bool:
        """True after generation G."""
        return self.generation > self.config.num_generations

    @property
    def best(self) -> Individual | None:
        """The best individual so far; it is never removed, so it is the first of the population."""
        return self.population[0] if self.population else None

    def ask(self) -> list[Individual]:
        """The candidates that may be evaluated now.

        Where parents come from the growing population, an offspring needs the fitness of those before it, so there is
        one at a time; else all that the generation still lacks.
        """
        sequential = self.config.mating_pool == "growing" and not self._filling
        missing = 0 if self.done else self._target() - len(self.population)
        while len(self._pending) < (min(missing, 1) if sequential else missing):
            self._pending[self._next_id] = self._draw(self._next_id)
            self._next_id += 1
        return list(self._pending.values())

    def tell(self, individual: Individual) -> None:
        """Takes a candidate with its fitness. A failed one (None, NaN, infinite) is dropped, and another one drawn."""
        if individual.id not in self._pending:
            raise ValueError(f"individual {individual.id} is not waiting for its fitness")
        candidate = self._pending.pop(individual.id)
        if not is_valid(individual.fitness):
            return
        evaluated = dataclasses.replace(candidate, fitness=float(individual.fitness))
        self.population = sorted([*self.population, evaluated], key=rank)
        if len(self.population) == self._target():
            self._end_phase()

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        return {
            "seed": self.seed,
            "generation": self.generation,
            "filling": self._filling,
            "next_id": self._next_id,
            "population": [individual.to_dict() for individual in self.population],
            "pending": [individual.to_dict() for individual in self._pending.values()],
            "events": [dataclasses.asdict(event) for event in self.events],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on as the strategy that gave `state`. More generations may be configured than it had."""
        if state["seed"] != self.seed:
            raise ValueError(f"the state is of a run with seed {state['seed']}, this one has seed {self.seed}")
        self.generation = state["generation"]
        self.population = [Individual.from_dict(data) for data in state["population"]]
        self.events = [Event(**data) for data in state["events"]]
        self._pending = {data["id"]: Individual.from_dict(data) for data in state["pending"]}
        self._next_id = state["next_id"]
        self._filling = state["filling"]

    def _target(self) -> int:
        """The size of the population at which the present phase ends."""
        return self.config.population_size + (0 if self._filling else self.config.num_offspring)

    def _draw(self, new_id: int) -> Individual:
        rng = np.random.default_rng([self.seed, new_id])
        config = self.config
        if self._filling:
            genome = random_genome(rng, config.min_nodes, config.max_nodes)
            return Individual(new_id, genome, self.generation, operators=("random",))
        growing = config.mating_pool == "growing"
        pool = [individual for individual in self.population if growing or individual.generation < self.generation]
        parent_1, parent_2 = select_parents(rng, pool, config.sample_size)
        genome = crossover(rng, parent_1.genome, parent_2.genome, config.crossover_bias)
        # The rates are raised by soft avoidance, which is the first event, and stay so.
        op_prob = config.stagnant_op_mutation_prob if self.events else config.op_mutation_prob
        edge_prob = config.stagnant_edge_mutation_prob if self.events else config.edge_mutation_prob
        genome, mutations = mutate(rng, genome, op_prob, edge_prob, config.add_node_prob, config.max_nodes)
        operators = ("crossover", *mutations)
        return Individual(new_id, genome, self.generation, (parent_1.id, parent_2.id), operators)

    def _end_phase(self) -> None:
        """The population is full: the worst F are removed, and stagnation is avoided."""
        if not self._filling:
            self.population = select_survivors(self.population, self.config.population_size)
            if self._stagnates():
                self._avoid_stagnation()
        # After hard avoidance the same generation goes on until the population is full again.
        self._filling = len(self.population) < self.config.population_size
        if not self._filling:
            self.generation += 1

    def _stagnates(self) -> bool:
        """True if the best has not improved for A_stag generations, counted anew after each avoidance.

        A best that is only equalled stays the first of the population, so its birth is the last improvement.
        """
        last_event = self.events[-1].generation if self.events else 0
        unimproved = self.generation - max(self.population[0].generation, last_event)
        return self.generation >= self.config.stagnation_start and unimproved >= self.config.stagnation_patience

    def _avoid_stagnation(self) -> None:
        """First soft, which raises the mutation rates; then hard, which keeps only the best (paper, section 3.2)."""
        best = self.population[0]
        assert best.fitness is not None
        if self.events:
            self.population = [best]
        kind = "hard" if self.events else "soft"
        self.events.append(Event(kind, self.generation, best.id, best.fitness))
