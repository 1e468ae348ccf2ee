"""What is in the folder of a run: read back, checked, and summed up without a network and without JAX.

`load` reads configuration, history and result; all else here are pure functions of the `Run` it returns. Records may
come from strangers: each value is checked as it is taken, and control characters, which a terminal obeys, are escaped.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import reprlib
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.errors import InputError
from jaxevo.evolution import Individual, RegularizedEvolution
from jaxevo.genome import NUM_INPUTS, Cell, Genome, dumps
from jaxevo.workdir import Workdir, WorkdirError, read_json

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
class Generation:
    """What one generation tried; `trainings` counts those that failed too."""

    generation: int
    best: float | None  # of all up to its end
    median: float | None  # of those born in it
    nodes_normal: float  # mean B of those born in it
    nodes_reduction: float
    trainings: int
    reused: int
    failed: int


@dataclasses.dataclass(frozen=True)
class Rate:
    """Successes with Wilson's 95 % interval of their probability."""

    successes: int
    trials: int
    low: float
    high: float

    def __str__(self) -> str:
        share = self.successes / self.trials
        return f"{self.successes}/{self.trials} = {share:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclasses.dataclass(frozen=True)
class OperatorSuccess:
    """How those fared that an operator had a part in; each counts for all of its operators, a failed one as worse."""

    operator: str
    applied: int
    beat_better_parent: Rate | None  # None without parents
    survived: Rate | None  # to the next generation, of those whose generation is complete


class Replay(RegularizedEvolution):
    """The paper's selection over recorded individuals: nothing is drawn, so another NumPy's run can be read too."""

    def __init__(self, config: SearchConfig) -> None:
        super().__init__(config.evolution, config.seed)
        self.survivors: set[int] = set()  # individuals that were still there when their generation was complete

    def take(self, individual: Individual) -> None:
        """Goes on by one. Raises `ValueError` for an individual that cannot be the next."""
        generation = self.generation
        if self.done or individual.generation != generation:
            raise ValueError(
                f"an individual of generation {individual.generation}, while the run is in generation {generation} "
                f"of {self.config.num_generations}"
            )
        self._pending[individual.id] = individual
        self.tell(individual)
        if self.generation > generation:
            self.survivors |= {member.id for member in self.population if member.generation == generation}


@dataclasses.dataclass(frozen=True)
class Run:
    """All that `load` has read; `replay` has gone through every candidate."""

    path: pathlib.Path
    config: SearchConfig
    about: dict[str, Any]  # preset, device and versions
    replay: Replay
    candidates: dict[int, Candidate]  # by id, in the order of their evaluation
    retrainings: list[Retraining]
    result: dict[str, Any] | None  # None while the run is incomplete
    checkpoints: dict[str, list[int]]  # numbers of those of the search and of the final training, oldest first

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
        """A value of exactly this type; a number where that is float, and finite; text without control characters."""
        if name not in self.data:
            raise self.error(f"{name} is missing")
        value = self.data[name]
        if kind is float and type(value) is int and abs(value) < 1 << 53:
            value = float(value)
        if type(value) is not kind or (isinstance(value, float) and not math.isfinite(value)):
            raise self.error(f"{name} is {reprlib.repr(value)}, not of type {kind.__name__}")
        return _printable(value) if isinstance(value, str) else value

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
    about["versions"] = {_printable(name): versions.take(name, str) for name in versions.data}
    config = _read_config(document)
    replay, candidates, retrainings, events = Replay(config), {}, [], 0
    for number, record in enumerate(workdir.read_history()[0], 1):
        fields = _Fields(f"{workdir.history}, line {number}", record)
        if record["kind"] == "individual":
            candidate = _read_candidate(fields, candidates)
            candidates[candidate.individual.id] = candidate
            try:
                replay.take(candidate.individual)
            except ValueError as error:
                raise fields.error(str(error)) from None
        elif record["kind"] == "stagnation":
            _check_event(fields, replay, events)
            events += 1
        elif record["kind"] == "retraining":
            retrainings.append(_read_retraining(fields, candidates))
    checkpoints = {"search": _numbered(workdir.checkpoints), "final": _numbered(workdir.final_checkpoints)}
    result = _read_result(workdir, candidates, replay.done)
    return Run(workdir.path, config, about, replay, candidates, retrainings, result, checkpoints)


def _read_config(document: _Fields) -> SearchConfig:
    stored, values = document.inner("config"), {}
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


def _check_event(fields: _Fields, replay: Replay, number: int) -> None:
    """The replay must come to the same avoidances: else its population is not the run's."""
    recorded = fields.take("event", str), fields.take("generation", int), fields.take("best", int)
    replayed = [(event.kind, event.generation, event.best_id) for event in replay.events]
    if replayed[number : number + 1] != [recorded]:
        raise fields.error("this version's search would not avoid stagnation here")


def _read_result(workdir: Workdir, candidates: Mapping[int, Candidate], done: bool) -> dict[str, Any] | None:
    if not workdir.result.exists():
        return None
    fields = _Fields(str(workdir.result), {"result": read_json(workdir.result)}).inner("result")
    kinds: dict[str, type] = dict.fromkeys(("id", "parameters", "multiply_adds", "trainings", "test_images"), int)
    kinds |= dict.fromkeys(("search_fitness", "validation_accuracy", "test_accuracy"), float)
    result = {name: fields.take(name, kind) for name, kind in kinds.items()}
    interval = fields.items("test_interval", float)
    if not done or result["id"] not in candidates or len(interval) != 2:
        raise fields.error("it is not the result of this history")
    return result | {"test_interval": list(interval), "final_seconds": fields.inner("seconds").take("final", float)}


def _numbered(folder: pathlib.Path) -> list[int]:
    """As `Checkpoints.steps`, which would import JAX."""
    numbered = [p for p in folder.glob("*") if p.name.isdecimal() and any(p.glob("*"))]
    return sorted(int(p.name) for p in numbered)


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def state(run: Run) -> str:
    """Complete, or how far it has come."""
    config, replay = run.config, run.replay
    if run.result:
        return "complete"
    if not replay.done:
        where = f"in generation {replay.generation} of {config.evolution.num_generations}"
        return f"incomplete: {where}, {len(run.candidates)} candidates known"
    asked = config.retrain_best * config.retrain_seeds
    if len(run.retrainings) < asked and not run.checkpoints["final"]:
        return f"incomplete: training the best again, {len(run.retrainings)} of at most {asked} trainings known"
    epoch = max(run.checkpoints["final"], default=0)
    return f"incomplete: in the final training, after epoch {epoch} of {config.final_training.epochs}"


def header(run: Run) -> dict[str, str]:
    """What run this is and what came out, in words."""
    data, about, result = run.config.data, run.about, run.result
    lines = {
        "run": _printable(str(run.path)),
        "state": state(run),
        "data set": f"{data.dataset}, preset {about['preset']}, seed {run.config.seed}",
        "device": about["device"],
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "checkpoints": "; ".join(f"{k} {', '.join(map(str, v)) or 'none'}" for k, v in run.checkpoints.items()),
    }
    if result:
        low, high = result["test_interval"]
        lines["result"] = (
            f"individual {result['id']}: test accuracy {result['test_accuracy']:.2%} (95 % interval {low:.2%} to "
            f"{high:.2%}, {result['test_images']:,} images), validation accuracy {result['validation_accuracy']:.2%}"
        )
    return lines


def generations(run: Run) -> list[Generation]:
    """The course of the search; individuals drawn after hard stagnation avoidance belong to the generation it ended."""
    rows: list[Generation] = []
    best: float | None = None
    for number in sorted({candidate.individual.generation for candidate in run.candidates.values()}):
        born = [candidate for candidate in run.candidates.values() if candidate.individual.generation == number]
        fitness = [c.individual.fitness for c in born if c.individual.fitness is not None]
        best = max((value for value in (best, *fitness) if value is not None), default=None)
        nodes = [(c.individual.genome.normal.num_nodes, c.individual.genome.reduction.num_nodes) for c in born]
        normal, reduction = (statistics.fmean(column) for column in zip(*nodes, strict=True))
        reused = sum(candidate.reused is not None for candidate in born)
        median = statistics.median(fitness) if fitness else None
        failed = len(born) - len(fitness)
        rows.append(Generation(number, best, median, normal, reduction, len(born) - reused, reused, failed))
    return rows


def operator_success(run: Run) -> list[OperatorSuccess]:
    """For each operator, the most often applied first, what became of the individuals it had a part in."""
    made: dict[str, list[Individual]] = {}
    for candidate in run.candidates.values():
        for operator in dict.fromkeys(candidate.individual.operators):
            made.setdefault(operator, []).append(candidate.individual)
    rows = []
    for operator, individuals in sorted(made.items(), key=lambda item: (-len(item[1]), item[0])):
        beat = _rate(_beats_parents(run, child) for child in individuals if child.parents)
        decided = [child for child in individuals if child.generation < run.replay.generation]
        survived = _rate(child.id in run.replay.survivors for child in decided)
        rows.append(OperatorSuccess(operator, len(individuals), beat, survived))
    return rows


def _beats_parents(run: Run, child: Individual) -> bool:
    parents = [run.candidates[parent].individual.fitness for parent in child.parents]
    return child.fitness is not None and all(value is not None and child.fitness > value for value in parents)


def _rate(outcomes: Iterable[bool]) -> Rate | None:
    listed = list(outcomes)
    if not listed:
        return None
    from scipy.stats import binomtest  # takes a second to import: not before the input is known to be good

    interval = binomtest(sum(listed), len(listed)).proportion_ci(0.95, method="wilson")
    return Rate(sum(listed), len(listed), float(interval.low), float(interval.high))


def ancestors(run: Run, of: int) -> list[Individual]:
    """An individual and all that it descends from, by id."""
    found, waiting = set(), {of}
    while waiting:
        found |= waiting
        waiting = {parent for known in waiting for parent in run.candidates[known].individual.parents} - found
    return [run.candidates[known].individual for known in sorted(found)]


def failures(run: Run) -> dict[str, int]:
    """How many candidates failed for each reason, the most frequent first."""
    return dict(Counter(c.failure for c in run.candidates.values() if c.failure is not None).most_common())


def seconds(run: Run) -> dict[str, dict[str, float]]:
    """Where the time went: step of the run -> part -> seconds; the final training's are known once it is complete."""
    spent = {}
    for step, records in (("search", list(run.candidates.values())), ("retraining", run.retrainings)):
        spent[step] = {part: math.fsum(record.seconds.get(part, 0.0) for record in records) for part in PARTS}
        spent[step]["total"] = math.fsum(spent[step].values())
    return spent | ({"final training": {"total": run.result["final_seconds"]}} if run.result else {})


def draw(cell: Cell) -> list[str]:
    """A cell as text: a line a node, by depth, which is the longest way from the input; then what makes the output."""
    depth = dict.fromkeys(range(NUM_INPUTS), 0)
    for s, node in enumerate(cell.nodes, NUM_INPUTS):
        depth[s] = 1 + max(depth[i] for i in node.inputs)
    names = {s: "input" if s < NUM_INPUTS else f"node {s - NUM_INPUTS}" for s in depth}  # both inputs are one tensor
    calls = {s: [f"{op}({names[i]})" for i, op in n.operands] for s, n in enumerate(cell.nodes, NUM_INPUTS)}
    width = max(len(left) for left, _ in calls.values()) + 1
    lines, shown = [], 0
    for s in sorted(calls, key=lambda s: (depth[s], s)):
        label = f"depth {depth[s]}" if depth[s] > shown else ""
        lines.append(f"{label:<8}  {names[s]:<7} = concat( {calls[s][0] + ',':<{width}} {calls[s][1]} )")
        shown = depth[s]
    outputs = ", ".join(names[s] for s in cell.unused_states())
    return [*lines, f"{'output':<17} = " + (f"concat( {outputs} )" if "," in outputs else outputs)]


def export_best(run: Run, path: pathlib.Path) -> None:
    """Writes the genome file of the best, as the search does at its end. Raises `InputError` where there is a file."""
    if run.best is None:
        raise InputError(f"{run.path} has no individual with a fitness yet, so there is nothing to export")
    metadata = {"dataset": run.config.data.dataset, "seed": run.config.seed, "id": run.best.id}
    metadata |= {"parameters": run.candidates[run.best.id].parameters, "search_fitness": run.best.fitness}
    if run.result:
        metadata |= {name: run.result[name] for name in ("search_fitness", "test_accuracy")}
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(dumps(run.best.genome, metadata))
    except FileExistsError:
        raise InputError(f"{path} exists already; give the genome file another name") from None


def document(run: Run, shown: Individual | None) -> dict[str, Any]:
    """All of the above as plain values for JSON, with `shown`'s genome and lineage."""
    best, lists = run.best, (run.replay.population, [] if shown is None else ancestors(run, shown.id))
    population, lineage = ([individual.to_dict() | _sizes(run, individual) for individual in those] for those in lists)
    return {
        "workdir": str(run.path),
        "dataset": run.config.data.dataset,
        "seed": run.config.seed,
        **run.about,
        "config": configs.flatten(run.config),
        "complete": run.result is not None,
        "state": state(run),
        "checkpoints": run.checkpoints,
        "best": None if best is None else best.id,
        "generations": [dataclasses.asdict(row) for row in generations(run)],
        "population": population,
        "individual": None if shown is None else shown.to_dict() | _sizes(run, shown),
        "lineage": lineage,
        "operators": [dataclasses.asdict(row) for row in operator_success(run)],
        "stagnation": [dataclasses.asdict(event) for event in run.replay.events],
        "retrainings": [dataclasses.asdict(retraining) for retraining in run.retrainings],
        "failures": failures(run),
        "seconds": seconds(run),
        "result": run.result,
    }


def _sizes(run: Run, individual: Individual) -> dict[str, Any]:
    candidate = run.candidates[individual.id]
    return {name: getattr(candidate, name) for name in ("parameters", "multiply_adds", "reused", "failure")}
