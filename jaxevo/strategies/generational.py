"""The common part of all strategies that work in generations."""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jaxevo.config import EvolutionConfig
from jaxevo.errors import InputError
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.layouts import LayoutSpace
from jaxevo.search_space.variation import crossover, mutate, random_small_genome
from jaxevo.seeds import Stream, generator
from jaxevo.strategies.base import Event
from jaxevo.strategies.individual import Individual, is_valid, rank, select_survivors

MAX_DRAWS = 10_000  # for one candidate; the smallest tenth of genomes takes 43 at most

Fits = Callable[[Genome], bool]  # whether a genome is within the bounds on size
Cost = Callable[[Genome], int | None]  # what is minimised, of a genome; None where nothing is


class Generational(abc.ABC):
    """A strategy that works in generations: of P individuals at first, then of F, until G.

    Every candidate has a random generator of its own, made of the seed and the candidate's id. So
    nothing random is stored. Fitness takes effect in the order of ids, and each candidate is drawn
    as soon as the lag allows: candidate i once all up to i - L are told, whatever else is known.
    So a run depends on the seed, the fitness and L alone, not on the order in which candidates are
    told.

    A strategy defines `_draw`, for which it finds here `_draws_at_random`, `_random`,
    `_mating_pool` and `_offspring`. It overrides

    - `_sequential` if a candidate needs the fitness of the one before;
    - `_select` if others than the best P survive, and `ranked` if others are held for the best;
    - `_note_drawn` and `_note_evaluated` if it learns from candidates;
    - `_is_filling` and `_missing` if the initial population is another one;
    - `state_dict` and `load_state_dict` if it has a state beyond this one. A search that is
      interrupted forgets what is not in them.
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
        self._pending: dict[int, Individual] = {}  # drawn, in the order of ids
        self._told: dict[int, Individual] = {}  # of these, those told before an earlier one
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
        """The candidates that may be evaluated now, in the order of ids."""
        self._draw_ahead()
        # Some of those drawn are beyond the last generation, where a run that is continued goes on.
        wanted = itertools.islice(self._pending.values(), 0 if self.done else self._remaining())
        return [each for each in wanted if each.id not in self._told] if self._told else [*wanted]

    def tell(self, individual: Individual) -> None:
        """Takes a candidate with its fitness, which takes effect after those of smaller ids.

        A failed one (None, NaN, infinite) is dropped, and another one drawn.
        """
        candidate = self._pending.get(individual.id)
        if candidate is None or individual.id in self._told:
            raise ValueError(f"individual {individual.id} is not waiting for its fitness")
        fitness = float(individual.fitness) if is_valid(individual.fitness) else None
        told = dataclasses.replace(candidate, fitness=fitness, cost=individual.cost)
        self._told[individual.id] = told
        while self._pending and (first := next(iter(self._pending))) in self._told:
            # Candidates that must not know this fitness are drawn first.
            self._draw_ahead()
            del self._pending[first]
            self._enter(self._told.pop(first))

    def _enter(self, individual: Individual) -> None:
        """Takes an individual into the present generation, unless it has failed."""
        if not is_valid(individual.fitness):
            return
        evaluated = dataclasses.replace(individual, generation=self.generation)
        self.best = min(self.best or evaluated, evaluated, key=rank)
        self.population = sorted([*self.population, evaluated], key=rank)
        self._evaluated += 1
        self._note_evaluated(evaluated)
        self._select()

    def _draw_ahead(self) -> None:
        """Draws the candidates that need no fitness that is still to come."""
        while len(self._pending) < self._room():
            self._pending[self._next_id] = self._draw_fitting(self._next_id)
            self._next_id += 1

    def _room(self) -> int:
        """Number of candidates that may be under way: L, or all that the generation lacks."""
        if self.done:
            return 0
        return max(self.config.lag, 0 if self._sequential() else self._missing())

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
        self._enter(individual)

    def ranked(self, individuals: Iterable[Individual]) -> list[Individual]:
        """Evaluated individuals, the one first that is held for the best."""
        return sorted(individuals, key=rank)

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on from here, in plain values for JSON."""
        told = [individual.to_dict() for individual in self._told.values()]
        return ({"told": told} if told else {}) | {
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
        self._told = {data["id"]: Individual.from_dict(data) for data in state.get("told", ())}
        self._next_id = state["next_id"]

    def _size(self) -> int:
        """Individuals of the present generation."""
        return self.config.num_offspring if self.generation else self.config.population_size

    def _missing(self) -> int:
        """Number of candidates that the generation still lacks, pending ones included."""
        return self._size() - self._evaluated

    def _remaining(self) -> int:
        """Number of candidates until the last generation is complete, pending ones included."""
        following = self.num_generations - self.generation
        return self._missing() + following * self.config.num_offspring

    def _is_filling(self) -> bool:
        """True while the population grows to its size by random individuals."""
        return self.generation == 0

    def _draws_at_random(self) -> bool:
        """True if the next candidate belongs to the initial population, or parents are too few."""
        initial = self._is_filling() and len(self._pending) < self._missing()
        return initial or len(self._mating_pool()) < self.config.sample_size

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
            self._note_drawn(given)
            return given
        for attempt in range(MAX_DRAWS):
            rng = generator(Stream.CANDIDATE, (self.seed, new_id, attempt))
            candidate = self._draw(rng, new_id)
            if self.fits is None or self.fits(candidate.genome):
                self._note_drawn(candidate)
                return dataclasses.replace(candidate, rival=self._rival())
        raise InputError(
            f"none of {MAX_DRAWS} genomes drawn for individual {new_id} is within the bounds on "
            "size; raise max_parameters or max_multiply_adds, or lower channels or min_nodes"
        )

    def _rival(self) -> int | None:
        """In a race the P-th of the population by fitness; None while it has fewer."""
        number = self.config.population_size
        if not self.config.racing or len(self.population) < number:
            return None
        return select_survivors(self.population, number)[-1].id

    @abc.abstractmethod
    def _draw(self, rng: np.random.Generator, new_id: int) -> Individual:
        """A new candidate; the strategy's state stays as it is."""

    def _random(
        self,
        rng: np.random.Generator,
        new_id: int,
        draw: Callable[[np.random.Generator, int, int], Genome] = random_small_genome,
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
        # Cross and mutate the cells.
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
        # Mutate the layout where it is a gene.
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

    def _note_drawn(self, candidate: Individual) -> None:  # noqa: B027  most strategies learn from fitness alone
        """Learns that a candidate was drawn."""

    def _note_evaluated(self, individual: Individual) -> None:  # noqa: B027  most keep the population alone
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
