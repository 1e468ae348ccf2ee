"""The descent of a run's individuals, and the success of the operators that made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from jaxevo.intervals import wilson_interval
from jaxevo.run.reader import Run
from jaxevo.strategies.individual import Individual


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
    """Outcome of the individuals an operator helped to make.

    Each individual counts for all of its operators, a failed one as worse.
    """

    operator: str
    applied: int
    beat_better_parent: Rate | None  # None without parents
    survived: Rate | None  # to the next generation, of those whose generation is complete


def operator_success(run: Run) -> list[OperatorSuccess]:
    """Outcomes of the individuals of each operator, the most often applied operator first."""
    made: dict[str, list[Individual]] = {}
    for candidate in run.candidates.values():
        for operator in dict.fromkeys(candidate.individual.operators):
            made.setdefault(operator, []).append(candidate.individual)
    rows = []
    for operator, individuals in sorted(made.items(), key=lambda item: (-len(item[1]), item[0])):
        beat = _rate(beats_parents(run, child) for child in individuals if child.parents)
        decided = [child for child in individuals if child.generation < run.replay.generation]
        survived = _rate(child.id in run.records.survivors for child in decided)
        rows.append(OperatorSuccess(operator, len(individuals), beat, survived))
    return rows


def beats_parents(run: Run, child: Individual) -> bool:
    """True if a child is better than both parents, or its only one."""
    parents = [run.candidates[parent].individual.fitness for parent in child.parents]
    return child.fitness is not None and all(
        value is not None and child.fitness > value for value in parents
    )


def _rate(outcomes: Iterable[bool]) -> Rate | None:
    listed = list(outcomes)
    if not listed:
        return None
    return Rate(sum(listed), len(listed), *wilson_interval(sum(listed), len(listed)))


def ancestors(run: Run, of: int) -> list[Individual]:
    """An individual and all that it descends from, by id."""
    found = set()
    waiting = {of}
    while waiting:
        found |= waiting
        waiting = {
            parent for known in waiting for parent in run.candidates[known].individual.parents
        } - found
    return [run.candidates[known].individual for known in sorted(found)]
