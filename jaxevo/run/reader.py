"""Reading a run: configuration, history and result.

Every value is checked, since the files may come from strangers. The history is gone through again
with the search's own strategy. As the strategy draws nothing meanwhile, a run of another NumPy can
be read too. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
import pathlib
import reprlib
from collections.abc import Mapping
from typing import Any

from jaxevo.checked import CheckedFields
from jaxevo.config import SearchConfig, leaf_fields, replace
from jaxevo.errors import InputError, printable
from jaxevo.files import checkpoint_steps
from jaxevo.run.history import read_lines
from jaxevo.run.records import Candidate, Change, Retraining, Stagnation, Stop
from jaxevo.run.result import Result, read_result
from jaxevo.run.workdir import Workdir
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import initial_genomes, make_strategy


@dataclasses.dataclass
class Records:
    """The lines of a history, typed.

    `replay` is the strategy that has gone through every candidate.
    """

    replay: Strategy
    # Candidates as evaluated, by id.
    candidates: dict[int, Candidate] = dataclasses.field(default_factory=dict)
    retrainings: list[Retraining] = dataclasses.field(default_factory=list)
    stagnations: list[Stagnation] = dataclasses.field(default_factory=list)
    stop: Stop | None = None
    changes: list[Change] = dataclasses.field(default_factory=list)
    sessions: int = 0  # since the last change
    earlier_retrainings: int = 0  # before the last change
    # Ids of individuals still there when their generation was complete.
    survivors: set[int] = dataclasses.field(default_factory=set)
    trainings: int = 0  # of candidates
    length: int = 0  # of the history, in bytes

    def searched(self, config: SearchConfig) -> bool:
        """True if no candidate will follow."""
        best = max((each.accuracy or 0.0 for each in self.candidates.values()), default=0.0)
        enough = config.target_reached(best)
        spent = config.budget_spent(self.trainings)
        return self.replay.done or spent or enough or self.stop is not None


@dataclasses.dataclass(frozen=True)
class Run:
    """All that `load_run` has read."""

    path: pathlib.Path
    config: SearchConfig  # the present one
    changes: list[Change]  # of the configuration since the run began
    about: dict[str, Any]  # preset, device, versions and the summary of the data
    records: Records
    result: Result | None  # None while the run is incomplete
    # Numbers of the checkpoints of the search and of the final training, oldest first.
    checkpoints: dict[str, list[int]]

    @property
    def candidates(self) -> dict[int, Candidate]:
        """Candidates by id, in the order of their evaluation."""
        return self.records.candidates

    @property
    def replay(self) -> Strategy:
        """The strategy after every candidate."""
        return self.records.replay

    @property
    def searched(self) -> bool:
        """True if no candidate will follow."""
        return self.records.searched(self.config)

    @property
    def best(self) -> Individual | None:
        """The winner of a complete run, else the best so far by the fitness it was selected for."""
        return self.candidates[self.result.id].individual if self.result else self.replay.best

    def find(self, known: int | None) -> Individual | None:
        """The individual of an id, the best without one. Raises `InputError` for an unknown id."""
        if known is not None and known not in self.candidates:
            number = len(self.candidates)
            raise InputError(
                f"{self.path} has no individual {known}; it has {number}, counted from 0"
            )
        return self.best if known is None else self.candidates[known].individual


def load_run(workdir: Workdir) -> Run:
    """Reads a run, finished or not.

    Raises `FileError` naming file and line of what cannot be used.
    """
    # What the run says of itself: its preset, device, versions and configuration.
    document = CheckedFields(str(workdir.config), workdir.read_config())
    versions = document.inner("versions")
    about: dict[str, Any] = {name: document.take(name, str) for name in ("preset", "device")}
    about["versions"] = {printable(name): versions.take(name, str) for name in versions.data}
    config = read_config(workdir)
    # Runs of earlier versions do not say of their data what a search prints.
    about["summary"] = document.take("summary", str) if "summary" in document.data else ""
    changes = workdir.changes(document.data)
    # The history, and the result if it fits the history. One from before a change does not count.
    records = read_records(workdir, config)
    genomes = {
        known: candidate.individual.genome for known, candidate in records.candidates.items()
    }
    result = None
    if len(records.changes) >= len(changes):
        result = read_result(workdir, genomes, records.searched(config))
    folders = {"search": workdir.checkpoints, "final": workdir.final_checkpoints}
    return Run(
        path=workdir.path,
        config=config,
        changes=changes,
        about=about,
        records=records,
        result=result,
        checkpoints={name: checkpoint_steps(folder) for name, folder in folders.items()},
    )


def read_records(workdir: Workdir, config: SearchConfig) -> Records:
    """Reads the history of a run of this configuration.

    Raises `FileError` for a line that cannot belong to such a run.
    """
    records = Records(make_strategy(config))
    lines, records.length = read_lines(workdir.history)
    for number, line in enumerate(lines, 1):
        fields = CheckedFields(f"{workdir.history}, line {number}", line)
        _take(records, fields)
        if config.evolution.racing and fields.data["kind"] == "individual":
            _check_losses(records.candidates[fields.data["id"]], config, fields)
    return records


def _check_losses(candidate: Candidate, config: SearchConfig, fields: CheckedFields) -> None:
    """In a race anyone may become a rival, so each candidate with a fitness needs losses."""
    losses, loss = candidate.losses or (), candidate.loss
    number = 1 <= len(losses) <= config.training.epochs
    if candidate.fitness is not None and (loss is None or not number or min(*losses, loss) < 0):
        raise fields.error("its losses are not those of a training in a race")


def _take(records: Records, fields: CheckedFields) -> None:
    """Adds a line; kinds that are not known are passed over."""
    kind = fields.data["kind"]
    if kind == "individual":
        _take_candidate(records, Candidate.read(fields, records.candidates), fields)
    elif kind == "retraining":
        records.retrainings.append(Retraining.read(fields, records.candidates))
    elif kind == "stagnation":
        _take_stagnation(records, Stagnation.read(fields), fields)
    elif kind == "stop":
        records.stop = Stop.read(fields)
    elif kind == "change":
        _take_change(records, Change.read(fields), fields)
    elif kind == "session":
        records.sessions += 1


def _take_candidate(records: Records, candidate: Candidate, fields: CheckedFields) -> None:
    replay = records.replay
    generation = replay.generation
    records.candidates[candidate.id] = candidate
    records.trainings += candidate.reused is None
    try:
        replay.replay(candidate.individual)
    except ValueError as error:
        raise fields.error(str(error)) from None
    if replay.generation > generation:
        survivors = (member for member in replay.population if member.generation == generation)
        records.survivors |= {member.id for member in survivors}


def _take_stagnation(records: Records, stagnation: Stagnation, fields: CheckedFields) -> None:
    """The replay must come to the same avoidances: else its population is not the run's."""
    number = len(records.stagnations)
    replayed = [
        Stagnation(event.kind, event.generation, event.best_id) for event in records.replay.events
    ]
    if replayed[number : number + 1] != [stagnation]:
        raise fields.error("this version's search would not avoid stagnation here")
    records.stagnations.append(stagnation)


def _take_change(records: Records, change: Change, fields: CheckedFields) -> None:
    """From here on the search may go beyond the end that it had."""
    winner = change.winner
    if winner is not None:
        known = records.candidates.get(winner)
        if known is None or known.fitness is None:
            raise fields.error(f"individual {winner} is not an earlier one with a fitness")
    records.changes.append(change)
    records.sessions = 0
    records.earlier_retrainings = len(records.retrainings)
    if change.lifts_stop:
        records.stop = None


def check_state(state: Mapping[str, Any], candidates: Mapping[int, Candidate]) -> None:
    """Raises `ValueError` unless a strategy's state is one of these candidates."""
    fields = CheckedFields("the state", state)
    # Counts cannot be larger than the history.
    pending = fields.items("pending", dict)
    number = len(candidates)
    for name, most in (("next_id", number + len(pending)), ("generation", number)):
        if not 0 <= fields.take(name, int) <= most:
            raise ValueError(f"{name} is {reprlib.repr(state[name])} after {number} individuals")
    # Each individual is as the history has it.
    members = fields.items("population", dict)
    members += fields.items("known", dict) if "known" in state else ()
    members += () if state["best"] is None else (fields.take("best", dict),)
    for member in members:
        known = candidates[CheckedFields("an individual", member).take("id", int)]
        recorded = known.individual.to_dict()
        if known.fitness is None or any(recorded.get(k) != v for k, v in member.items()):
            raise ValueError(f"individual {known.id} is not as in the history")
    if state.get("told"):
        raise ValueError("a run tells its candidates in order, so none is told before another")
    for waiting in pending:
        known = CheckedFields("a pending individual", waiting)
        rival = known.take("rival", int) if "rival" in waiting else None
        if rival is not None and not candidates[rival].losses:
            raise ValueError(f"rival {rival} has no losses")
    for event in fields.items("events", dict):
        CheckedFields("an event", event).take("generation", int)
        CheckedFields("an event", event).take("kind", str)


def read_config(workdir: Workdir) -> SearchConfig:
    """The present configuration of a run. Raises `FileError`."""
    document = workdir.read_config()
    stored = CheckedFields(f"{workdir.config}, config", workdir.settings(document))
    values = {
        name: stored.take(name, type(field.default))
        for name, (_, field) in leaf_fields(SearchConfig).items()
    }
    try:
        config = replace(SearchConfig(), values)
        initial_genomes(config)
        return config
    except InputError as error:
        raise stored.error(str(error)) from None
