"""The records of a run read back, each checked as it is taken: they may come from strangers.

`load` reads configuration, history and result, and goes through the history again with the search's own strategy; as
nothing is drawn by it, a run of another NumPy can be read too.
Control characters, which a terminal obeys, are escaped. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
import pathlib
import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import complete
from jaxevo.errors import InputError, printable
from jaxevo.run.workdir import Workdir, WorkdirError, read_json
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.base import Individual, Strategy
from jaxevo.strategies.registry import make_strategy

MAX_NUMBER = 1e15  # of a measured value: sums and means of larger ones may overflow
PARTS = ("compile", "train", "evaluate")  # of the seconds that a training took

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An `individual` record of the history."""

    individual: Individual
    parameters: int
    multiply_adds: int
    reused: int | None  # the isomorphic individual whose fitness it got
    failure: str | None
    seconds: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Retraining:
    """A `retraining` record: one of the best trained again with a fresh seed."""

    id: int
    seed: int
    fitness: float
    failure: str | None
    seconds: dict[str, float]


@dataclasses.dataclass(frozen=True)
class Run:
    """All that `load` has read; `replay` has gone through every candidate."""

    path: pathlib.Path
    config: SearchConfig
    about: dict[str, Any]  # preset, device and versions
    replay: Strategy
    survivors: set[int]  # individuals that were still in the population when their generation was complete
    candidates: dict[int, Candidate]  # by id, in the order of their evaluation
    retrainings: list[Retraining]
    result: dict[str, Any] | None  # None while the run is incomplete
    checkpoints: dict[str, list[int]]  # numbers of those of the search and of the final training, oldest first

    @property
    def searched(self) -> bool:
        """True if no candidate will follow."""
        return is_searched(self.config, self.replay, self.candidates)

    @property
    def best(self) -> Individual | None:
        """The winner of a complete run, else the best so far by the fitness it was selected for."""
        return self.candidates[self.result["id"]].individual if self.result else self.replay.best

    def find(self, known: int | None) -> Individual | None:
        """The individual of an id, the best without. Raises `InputError` for an id that is not there."""
        if known is not None and known not in self.candidates:
            raise InputError(f"{self.path} has no individual {known}; it has {len(self.candidates)}, counted from 0")
        return self.best if known is None else self.candidates[known].individual


@dataclasses.dataclass(frozen=True)
class _Fields:
    """An object of a file, whose values are checked as they are taken."""

    where: str
    data: Mapping[str, Any]

    def error(self, reason: str) -> WorkdirError:
        return WorkdirError(f"{self.where}: {reason}; restore the file from a copy")

    def take(self, name: str, kind: type[T]) -> T:
        """A value of exactly this type; a number, not too large, where that is float; printable text."""
        if name not in self.data:
            raise self.error(f"{name} is missing")
        value = self.data[name]
        if kind is float and type(value) is int and abs(value) < 1 << 53:
            value = float(value)
        if type(value) is not kind or (isinstance(value, float) and not abs(value) <= MAX_NUMBER):
            raise self.error(f"{name} is {reprlib.repr(value)}, not of type {kind.__name__}")
        return printable(value) if isinstance(value, str) else value

    def optional(self, name: str, kind: type[T]) -> T | None:
        return None if name in self.data and self.data[name] is None else self.take(name, kind)

    def items(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """The values of a list."""
        listed = dict(enumerate(self.take(name, list)))
        inner = _Fields(self.where, {f"{name}[{k}]": value for k, value in listed.items()})
        return tuple(inner.take(key, kind) for key in inner.data)

    def inner(self, name: str) -> _Fields:
        return _Fields(f"{self.where}, {name}", self.take(name, dict))


def load(workdir: Workdir) -> Run:
    """Reads a run, finished or not. Raises `WorkdirError` naming file and line of what cannot be used."""
    document = _Fields(str(workdir.config), workdir.read_config())
    versions = document.inner("versions")
    about: dict[str, Any] = {name: document.take(name, str) for name in ("preset", "device")}
    about["versions"] = {printable(name): versions.take(name, str) for name in versions.data}
    config = _read_config(document)
    replay, survivors, candidates, retrainings, events = make_strategy(config), set(), {}, [], 0
    for number, record in enumerate(workdir.read_history()[0], 1):
        fields = _Fields(f"{workdir.history}, line {number}", record)
        if record["kind"] == "individual":
            candidate = _read_candidate(fields, candidates)
            candidates[candidate.individual.id] = candidate
            generation = replay.generation
            try:
                replay.replay(candidate.individual)
            except ValueError as error:
                raise fields.error(str(error)) from None
            if replay.generation > generation:
                survivors |= {member.id for member in replay.population if member.generation == generation}
        elif record["kind"] == "stagnation":
            _check_event(fields, replay, events)
            events += 1
        elif record["kind"] == "retraining":
            retrainings.append(_read_retraining(fields, candidates))
    checkpoints = {"search": _numbered(workdir.checkpoints), "final": _numbered(workdir.final_checkpoints)}
    result = _read_result(workdir, candidates, is_searched(config, replay, candidates))
    return Run(workdir.path, config, about, replay, survivors, candidates, retrainings, result, checkpoints)


def is_searched(config: SearchConfig, strategy: Strategy, candidates: Mapping[int, Candidate]) -> bool:
    """True if the strategy is at its end, or `max_trainings` are spent."""
    trainings = sum(candidate.reused is None for candidate in candidates.values())
    return strategy.done or config.budget_spent(trainings)


def check_state(state: Mapping[str, Any], recorded: Mapping[int, Mapping[str, Any]]) -> None:
    """Raises `ValueError` unless a strategy's state is one of these `individual` records, by id."""
    fields = _Fields("the state", state)
    pending, population = fields.items("pending", dict), fields.items("population", dict)
    if not 0 <= fields.take("next_id", int) <= len(recorded) + len(pending):
        raise ValueError(f"next_id is {reprlib.repr(state['next_id'])} after {len(recorded)} individuals")
    if not 0 <= fields.take("generation", int) <= len(recorded):
        raise ValueError(f"generation is {reprlib.repr(state['generation'])} after {len(recorded)} individuals")
    for member in population:
        record = recorded[_Fields("the population", member).take("id", int)]
        if record["fitness"] is None or any(record.get(name) != value for name, value in member.items()):
            raise ValueError(f"individual {record['id']} is not as in the history")
    for event in fields.items("events", dict):
        _Fields("an event", event).take("generation", int)
        _Fields("an event", event).take("kind", str)


def _read_config(document: _Fields) -> SearchConfig:
    inner, values = document.inner("config"), {}
    stored = dataclasses.replace(inner, data=complete(inner.data))
    for name, (_, field) in configs.leaf_fields(SearchConfig).items():
        values[name] = stored.take(name, type(field.default))
    try:
        return configs.replace(SearchConfig(), values)
    except InputError as error:
        raise stored.error(str(error)) from None


def _read_candidate(fields: _Fields, earlier: Mapping[int, Candidate]) -> Candidate:
    try:
        genome = Genome.from_dict(fields.take("genome", dict))
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, WorkdirError) else fields.error(str(error)) from None
    new_id, parents = fields.take("id", int), fields.items("parents", int)
    fitness, failure = fields.optional("fitness", float), fields.optional("failure", str)
    if new_id < 0 or new_id in earlier:
        raise fields.error(f"id {new_id} is negative or taken by an earlier line")
    if (fitness is None) == (failure is None):
        raise fields.error("an individual has either a fitness or a failure")
    reused = fields.optional("reused", int)
    for other in (*parents, *(() if reused is None else (reused,))):
        if other not in earlier or earlier[other].individual.fitness is None:
            raise fields.error(f"individual {other} is not an earlier one with a fitness")
    generation, operators = fields.take("generation", int), fields.items("operators", str)
    individual = Individual(new_id, genome, generation, parents, operators, fitness)
    sizes = fields.take("parameters", int), fields.take("multiply_adds", int)
    return Candidate(individual, *sizes, reused, failure, _read_seconds(fields))


def _read_retraining(fields: _Fields, candidates: Mapping[int, Candidate]) -> Retraining:
    known, seed, fitness = fields.take("id", int), fields.take("seed", int), fields.take("fitness", float)
    if known not in candidates:
        raise fields.error(f"individual {known} is not an earlier one")
    return Retraining(known, seed, fitness, fields.optional("failure", str), _read_seconds(fields))


def _read_seconds(fields: _Fields) -> dict[str, float]:
    seconds = fields.inner("seconds")
    if unknown := seconds.data.keys() - set(PARTS):
        raise seconds.error(f"{min(unknown)!r} is not one of {', '.join(PARTS)}")
    return {part: seconds.take(part, float) for part in PARTS if part in seconds.data}


def _check_event(fields: _Fields, replay: Strategy, number: int) -> None:
    """The replay must come to the same avoidances: else its population is not the run's."""
    recorded = fields.take("event", str), fields.take("generation", int), fields.take("best", int)
    replayed = [(event.kind, event.generation, event.best_id) for event in replay.events]
    if replayed[number : number + 1] != [recorded]:
        raise fields.error("this version's search would not avoid stagnation here")


def _read_result(workdir: Workdir, candidates: Mapping[int, Candidate], done: bool) -> dict[str, Any] | None:
    if not workdir.result.exists():
        return None
    fields = _Fields(str(workdir.result), {"result": read_json(workdir.result)}).inner("result")
    counts = "id", "parameters", "multiply_adds", "candidates", "memo_hits", "failures", "trainings", "test_images"
    kinds: dict[str, type] = dict.fromkeys(counts, int) | {"dataset": str}
    kinds |= dict.fromkeys(("search_fitness", "retrained_fitness", "validation_accuracy", "test_accuracy"), float)
    result = {name: fields.take(name, kind) for name, kind in kinds.items()}
    interval = fields.items("test_interval", float)
    if not done or result["id"] not in candidates or len(interval) != 2:
        raise fields.error("it is not the result of this history")
    session = fields.inner("session_seconds")
    return result | {
        "test_interval": list(interval),
        "final_seconds": fields.inner("seconds").take("final", float),
        "session_seconds": {printable(part): session.take(part, float) for part in session.data},
    }


def _numbered(folder: pathlib.Path) -> list[int]:
    """As `Checkpoints.steps`, which would import JAX."""
    numbered = [p for p in folder.glob("*") if p.name.isdecimal() and any(p.glob("*"))]
    return sorted(int(p.name) for p in numbered)
