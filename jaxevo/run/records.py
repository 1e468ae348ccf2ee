"""The lines of a history, as types that write and read themselves.

Each line has a `kind`:

- `individual` (`Candidate`): a genome with its origin, fitness, sizes and seconds.
- `retraining` (`Retraining`): one of the best trained again with a fresh seed.
- `stagnation` (`Stagnation`): an avoidance, soft or hard.
- `stop` (`Stop`): why the search ended before its last candidate.
- `change` (`Change`): settings with which the run goes on from there, also kept in `config.json`.
- `session`: at an end, the seconds of the session that came to it, by what they went into.

Records may come from strangers, so each value is checked as it is taken. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxevo.checked import CheckedFields
from jaxevo.files import FileError
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.individual import Individual

PARTS = ("compile", "train", "evaluate")  # of the seconds that a training took


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a candidate was trained, if not in the process of its run; no result depends on it."""

    where: str  # node and process, as `node/process`
    attempt: int = 1  # which one this was; earlier ones crashed, hung or raised an exception
    lost: int = 0  # how many more were lost with their nodes

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.where.rpartition("/")[0] or self.where

    @classmethod
    def read(cls, fields: CheckedFields) -> Place | None:
        """Reads it from a candidate's line, which may have none. Raises `FileError`."""
        if "where" not in fields.data:
            return None
        attempt, lost = fields.take("attempt", int), fields.take("lost", int)
        if attempt < 1 or lost < 0:
            raise fields.error(f"attempt {attempt} and lost {lost} are not counts of attempts")
        return cls(fields.take("where", str), attempt, lost)


@dataclasses.dataclass(frozen=True)
class Candidate:
    """An individual that was evaluated, that reused a fitness, or that failed."""

    individual: Individual
    parameters: int
    multiply_adds: int
    reused: int | None = None  # the isomorphic individual whose fitness it got
    failure: str | None = None  # the reason why it has no fitness
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    traceback: str | None = None  # of a failure
    # Of its training on the validation images; None for a failure. Fitness is made of one of them.
    accuracy: float | None = None
    cross_entropy: float | None = None  # None in histories before version 0.4.0 too
    loss: float | None = None  # of the training itself, mean over its epochs; None as before
    losses: tuple[float, ...] | None = None  # of each epoch; None unless trainings are a race
    place: Place | None = None

    @property
    def id(self) -> int:
        """The individual's."""
        return self.individual.id

    @property
    def fitness(self) -> float | None:
        """The individual's; None for a failure."""
        return self.individual.fitness

    def epochs(self, most: int) -> int:
        """Those that it was trained for, of so many at most: a race may end a training early."""
        return len(self.losses or ()) or most

    def metadata(self, dataset: str, seed: int) -> dict[str, Any]:
        """Metadata of the individual's genome file: its run, its size and its fitness there."""
        metadata = {"dataset": dataset, "seed": seed, "id": self.id}
        return metadata | {"parameters": self.parameters, "search_fitness": self.fitness}

    def to_dict(self) -> dict[str, Any]:
        """A line of the history."""
        line = {"kind": "individual"} | self.individual.to_dict()
        line |= {"parameters": self.parameters, "multiply_adds": self.multiply_adds}
        line |= {"accuracy": self.accuracy, "cross_entropy": self.cross_entropy}
        line |= {"loss": self.loss}
        line |= {} if self.losses is None else {"losses": list(self.losses)}
        line |= {"reused": self.reused, "failure": self.failure}
        line |= {"seconds": {part: round(value, 4) for part, value in self.seconds.items()}}
        line |= dataclasses.asdict(self.place) if self.place else {}
        return line | ({"traceback": self.traceback} if self.traceback else {})

    @classmethod
    def read(cls, fields: CheckedFields, earlier: Mapping[int, Candidate]) -> Candidate:
        """Reads a line that follows those of the `earlier` candidates. Raises `FileError`."""
        individual = _read_individual(fields, earlier)
        # Before version 0.4.0 the fitness was the accuracy, and no other score was kept.
        accuracy, cross_entropy, loss, losses = individual.fitness, None, None, None
        if "accuracy" in fields.data:
            accuracy = fields.optional("accuracy", float)
            cross_entropy = fields.optional("cross_entropy", float)
            loss = fields.optional("loss", float)
        if "losses" in fields.data:
            losses = tuple(fields.items("losses", float))
        return cls(
            individual,
            parameters=fields.count("parameters"),
            multiply_adds=fields.count("multiply_adds"),
            reused=fields.optional("reused", int),
            failure=fields.optional("failure", str),
            seconds=_read_seconds(fields),
            accuracy=accuracy,
            cross_entropy=cross_entropy,
            loss=loss,
            losses=losses,
            place=Place.read(fields),
        )


@dataclasses.dataclass(frozen=True)
class Retraining:
    """A training of one of the best with a fresh seed."""

    id: int
    repeat: int  # which of its fresh trainings, counted from 0
    fitness: float  # 0 for a failure, so that it cannot win
    failure: str | None = None
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """A line of the history; there the repeat is called `seed`."""
        line = {"kind": "retraining", "id": self.id, "seed": self.repeat, "fitness": self.fitness}
        return line | {"failure": self.failure, "seconds": dict(self.seconds)}

    @classmethod
    def read(cls, fields: CheckedFields, candidates: Mapping[int, Candidate]) -> Retraining:
        """Reads the record from a line. Raises `FileError`."""
        known = fields.take("id", int)
        repeat = fields.take("seed", int)
        fitness = fields.take("fitness", float)
        if known not in candidates:
            raise fields.error(f"individual {known} is not an earlier one")
        failure = fields.optional("failure", str)
        return cls(known, repeat, fitness, failure, _read_seconds(fields))


@dataclasses.dataclass(frozen=True)
class Stagnation:
    """A stagnation avoidance, at the end of a generation."""

    event: str  # "soft" or "hard"
    generation: int
    best_id: int

    def to_dict(self) -> dict[str, Any]:
        """A line of the history."""
        line = {"kind": "stagnation", "event": self.event}
        return line | {"generation": self.generation, "best": self.best_id}

    @classmethod
    def read(cls, fields: CheckedFields) -> Stagnation:
        """Reads the record from a line. Raises `FileError`."""
        event = fields.take("event", str)
        return cls(event, fields.take("generation", int), fields.take("best", int))


@dataclasses.dataclass(frozen=True)
class Stop:
    """The end of a search before its last candidate."""

    reason: str

    def to_dict(self) -> dict[str, Any]:
        """A line of the history."""
        return {"kind": "stop", "reason": self.reason}

    @classmethod
    def read(cls, fields: CheckedFields) -> Stop:
        """Reads the record from a line. Raises `FileError`."""
        return cls(fields.take("reason", str))


@dataclasses.dataclass(frozen=True)
class Change:
    """Settings with which a run goes on that it did not begin with, and its result until then.

    The three fields of the result are None if there was none; the test is None without test images.
    """

    time: str  # ISO 8601
    candidates: int  # known at that moment
    settings: Mapping[str, Any]  # those that changed, by flag name
    lifts_stop: bool  # True if the search goes on that a time limit had ended
    winner: int | None = None
    validation_accuracy: float | None = None
    test_accuracy: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """A line of the history, and an entry of `config.json`."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"kind": "change"} | fields | {"settings": dict(self.settings)}

    @classmethod
    def read(cls, fields: CheckedFields) -> Change:
        """Reads the record from a line or an entry. Raises `FileError`."""
        settings = fields.inner("settings")
        return cls(
            fields.take("time", str),
            fields.take("candidates", int),
            {name: settings.take(name, type(settings.data[name])) for name in settings.data},
            fields.take("lifts_stop", bool),
            fields.optional("winner", int),
            fields.optional("validation_accuracy", float),
            fields.optional("test_accuracy", float),
        )


def _read_individual(fields: CheckedFields, earlier: Mapping[int, Candidate]) -> Individual:
    try:
        genome = Genome.from_dict(fields.take("genome", dict))
    except (ValueError, RecursionError) as error:
        raise error if isinstance(error, FileError) else fields.error(str(error)) from None
    # It is new, and has either a fitness or a failure.
    new_id = fields.take("id", int)
    parents = fields.items("parents", int)
    fitness = fields.optional("fitness", float)
    failure = fields.optional("failure", str)
    if new_id < 0 or new_id in earlier:
        raise fields.error(f"id {new_id} is negative or taken by an earlier line")
    if (fitness is None) == (failure is None):
        raise fields.error("an individual has either a fitness or a failure")
    # All individuals that it refers to came before it.
    reused = fields.optional("reused", int)
    for other in (*parents, *(() if reused is None else (reused,))):
        if other not in earlier or earlier[other].fitness is None:
            raise fields.error(f"individual {other} is not an earlier one with a fitness")
    # The cost and the rival are there in searches that have them.
    generation = fields.take("generation", int)
    operators = fields.items("operators", str)
    cost = fields.optional("cost", int) if "cost" in fields.data else None
    if cost is not None and cost < 0:
        raise fields.error(f"cost is {cost}, a negative number")
    rival = fields.take("rival", int) if "rival" in fields.data else None
    if rival is not None and not (rival in earlier and earlier[rival].losses):
        raise fields.error(f"rival {rival} is not an earlier individual with losses")
    return Individual(new_id, genome, generation, parents, operators, fitness, cost, rival)


def _read_seconds(fields: CheckedFields) -> dict[str, float]:
    seconds = fields.inner("seconds")
    if unknown := seconds.data.keys() - set(PARTS):
        raise seconds.error(f"{min(unknown)!r} is not one of {', '.join(PARTS)}")
    return {part: seconds.take(part, float) for part in PARTS if part in seconds.data}
