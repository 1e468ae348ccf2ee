"""The common part of all strategies that work in generations."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jaxevo.config import EvolutionConfig
from jaxevo.errors import InputError
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.layouts import LayoutSpace
from jaxevo.search_space.variation import crossover, mutate, random_genome
from jaxevo.seeds import Stream, generator
from jaxevo.strategies.base import Event
from jaxevo.strategies.individual import Individual, is_valid, rank

MAX_DRAWS = 10_000  # for one candidate; the smallest tenth of genomes takes 43 at most

Fits = Callable[[Genome], bool]  # whether a genome is within the bounds on size


class Generational(abc.ABC):
    """A strategy that works in generations: of P individuals at first, then of F, until G.

    Every candidate has a random generator of its own, made of the seed and the candidate's id. So
    nothing random is stored, and a run depends on the seed and the fitness alone, not on the order
    in which candidates are told.
    """

    def __init__(
        self,
        config: EvolutionConfig,
        seed: int,
        fits: Fits | None = None,
        *,
        layouts: LayoutSpace | None = None,
        initial: Sequence[Genome] = (),
    ) -> None:
        self.config = config
        self.seed = seed
        self.fits = fits
        self.layouts = layouts  # that genomes may have; None: they have none of their own
        self.initial = initial  # the first candidates' genomes; those that follow are drawn
        self.generation = 0
        self.population: list[Individual] = []  # best first
        self.best: Individual | None = None
        self.events: list[Event] = []
        self._pending: dict[int, Individual] = {}  # asked for, not told yet
        self._next_id = 0
        self._evaluated = 0  # individuals of the present generation; failed ones do not count

    @property
    def num_generations(self) -> int:
        """G."""
        return self.config.num_generations

    @property
    def done(self) -> bool:
        """True after the last generation."""
        return self.generation > self.num_generations

    def ask(self) -> list[Individual]:
        """The candidates that may be evaluated now."""
        missing = 0 if self.done else self._missing()
        while len(self._pending) < (min(missing, 1) if self._sequential() else missing):
            self._pending[self._next_id] = self._draw_fitting(self._next_id)
            self._next_id += 1
        return list(self._pending.values())

    def tell(self, individual: Individual) -> None:
        """Takes a candidate with its fitness.

        A failed one (None, NaN, infinite) is dropped, and another one drawn.
        """
        if individual.id not in self._pending:
            raise ValueError(f"individual {individual.id} is not waiting for its fitness")
        candidate = self._pending.pop(individual.id)
        if not is_valid(individual.fitness):
            return
        evaluated = dataclasses.replace(
            candidate, fitness=float(individual.fitness), cost=individual.cost
        )
        self.best = min(self.best or evaluated, evaluated, key=rank)
        self.population = sorted([*self.population, evaluated], key=rank)
        self._evaluated += 1
        self._learn(evaluated)
        self._select()

    def replay(self, individual: Individual) -> None:
        """Takes an individual of a recorded run.

        Raises `ValueError` for one that cannot be the next.
        """
        if self.done or individual.generation != self.generation:
            raise ValueError(
                f"an individual of generation {individual.generation}, while the run is in "
                f"generation {self.generation} of {self.num_generations}"
            )
        largest = max(individual.genome.normal.num_nodes, individual.genome.reduction.num_nodes)
        if largest > self.config.max_nodes:
            raise ValueError(
                f"a cell of {largest} nodes, while max_nodes is {self.config.max_nodes}"
            )
        layout = individual.genome.layout
        if layout not in (self.layouts or (None,)):
            raise ValueError(f"a genome with {layout}, which this search has not")
        self._pending[individual.id] = individual
        self.tell(individual)

    def ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        """Evaluated individuals, the one first that is held for the best."""
        return sorted(individuals, key=rank)

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        return {
            "seed": self.seed,
            "generation": self.generation,
            "evaluated": self._evaluated,
            "next_id": self._next_id,
            "best": None if self.best is None else self.best.to_dict(),
            "population": [individual.to_dict() for individual in self.population],
            "pending": [individual.to_dict() for individual in self._pending.values()],
            "events": [dataclasses.asdict(event) for event in self.events],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on as the strategy that gave `state`.

        More generations may be configured than it had.
        """
        if state["seed"] != self.seed:
            raise ValueError(
                f"the state is of a run with seed {state['seed']}, this one has seed {self.seed}"
            )
        self.generation = state["generation"]
        self._evaluated = state["evaluated"]
        self.population = [Individual.from_dict(data) for data in state["population"]]
        self.best = None if state["best"] is None else Individual.from_dict(state["best"])
        self.events = [Event(**data) for data in state["events"]]
        self._pending = {data["id"]: Individual.from_dict(data) for data in state["pending"]}
        self._next_id = state["next_id"]

    def _size(self) -> int:
        """Individuals of the present generation."""
        return self.config.num_offspring if self.generation else self.config.population_size

    def _missing(self) -> int:
        """Number of candidates that the generation still lacks, pending ones included."""
        return self._size() - self._evaluated

    def _sequential(self) -> bool:
        """True if a candidate can only be drawn once those before it have their fitness."""
        return False

    def _draw_fitting(self, new_id: int) -> Individual:
        """The genome that is given, else the first draw within the bounds.

        A draw beyond them is no candidate, and so no failure.

        Raises `InputError` if none is found.
        """
        if new_id < len(self.initial):
            given = Individual(new_id, self.initial[new_id], self.generation, operators=("given",))
            self._take(given)
            return given
        for attempt in range(MAX_DRAWS):
            rng = generator(Stream.CANDIDATE, (self.seed, new_id, attempt))
            candidate = self._draw(rng, new_id)
            if self.fits is None or self.fits(candidate.genome):
                self._take(candidate)
                return candidate
        raise InputError(
            f"none of {MAX_DRAWS} genomes drawn for individual {new_id} is within the bounds on "
            "size; raise max_parameters or max_multiply_adds, or lower channels or min_nodes"
        )

    @abc.abstractmethod
    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        """A new candidate; the strategy's state stays as it is."""

    def _random(
        self,
        rng: np.random.Generator,
        new_id: int,
        draw: Callable[[np.random.Generator, int, int], Genome] = random_genome,
    ) -> Individual:
        """An individual without parents."""
        genome = draw(rng, self.config.min_nodes, self.config.max_nodes)
        if self.layouts is not None:
            genome = dataclasses.replace(genome, layout=self.layouts.random(rng))
        return Individual(new_id, genome, self.generation, operators=("random",))

    def _offspring(
        self,
        rng: np.random.Generator,
        new_id: int,
        parents: Sequence[Individual],
        *,
        op_prob: float,
        edge_prob: float,
    ) -> Individual:
        """A mutated crossover of two parents, the better one first, or a mutated copy of one."""
        config = self.config
        genome = parents[0].genome
        crossed = len(parents) > 1
        if crossed:
            genome = crossover(rng, genome, parents[1].genome, bias=config.crossover_bias)
        genome, mutations = mutate(
            rng,
            genome,
            op_prob,
            edge_prob=edge_prob,
            add_prob=config.add_node_prob,
            max_nodes=config.max_nodes,
        )
        if self.layouts is not None:
            mutated = self._mutate_layout(rng, genome, config.layout_mutation_prob)
            mutations += ("layout_mutation",) if mutated != genome else ()
            genome = mutated
        ids = tuple(parent.id for parent in parents)
        operators = (*(["crossover"] if crossed else []), *mutations)
        return Individual(new_id, genome, self.generation, ids, operators)

    def _mutate_layout(self, rng: np.random.Generator, genome: Genome, prob: float) -> Genome:
        """The genome with another layout, where it has one of its own."""
        assert self.layouts is not None and genome.layout is not None
        return dataclasses.replace(genome, layout=self.layouts.mutate(rng, genome.layout, prob))

    def _take(self, candidate: Individual) -> None:  # noqa: B027  most strategies learn from fitness alone
        """Learns that a candidate was drawn."""

    def _learn(self, individual: Individual) -> None:  # noqa: B027  most keep the population alone
        """Learns the fitness of an individual."""

    def _select(self) -> None:
        """After each evaluated individual: who stays, and whether the generation is complete."""
        self.population = self.population[: self.config.population_size]
        self._count_generation()

    def _count_generation(self) -> bool:
        """Goes on to the next generation if this one is complete; true if it was."""
        complete = self._evaluated == self._size()
        if complete:
            self._end_generation()
        return complete

    def _end_generation(self) -> None:
        self.generation, self._evaluated = self.generation + 1, 0

    def _mating_pool(self) -> list[Individual]:
        """Whom parents are drawn from: the population, with or without the present generation."""
        growing = self.config.mating_pool == "growing"
        return [
            individual
            for individual in self.population
            if growing or individual.generation < self.generation
        ]
