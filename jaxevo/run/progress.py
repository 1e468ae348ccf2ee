"""Displays of a run: live on a terminal, plain lines elsewhere (a log, a pipe, a notebook)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jaxevo.config import SearchConfig
from jaxevo.run.records import Candidate
from jaxevo.run.remaining import Remaining
from jaxevo.run.words import format_duration
from jaxevo.strategies.base import Strategy


class RunReporter:
    """Prints a run's progress.

    Args:
        config: How many candidates to expect.
        console: Where it is printed.
    """

    def __init__(self, config: SearchConfig, console: Console):
        self.total = config.num_candidates
        self.console = console
        self.plain = not console.is_terminal or console.is_jupyter
        self._remaining: Remaining | None = None
        self._done = 0
        self._hits = 0
        self._failures = 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=self.plain,
        )
        self._tasks: dict[str, Any] = {}

    @contextmanager
    def live(self) -> Iterator[RunReporter]:
        """Shows the display while the run goes on."""
        with self._progress:
            yield self

    def begin(self, remaining: Remaining) -> None:
        """Takes note of how long the run takes."""
        self._remaining = remaining

    def message(self, text: str) -> None:
        """A line."""
        self.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def candidate(self, candidate: Candidate, strategy: Strategy) -> None:
        """Advances the display; without a terminal, a line a candidate."""
        self._count(candidate)
        best = "none" if strategy.best is None else f"{strategy.best.fitness:.2%}"
        reused = f"{self._hits} reused ({self._hits / self._done:.0%})"
        parts = (f"best {best}", reused, f"{self._failures} failed", self._left())
        note = ", ".join(part for part in parts if part)
        generation = candidate.individual.generation
        description = f"generation {generation}/{strategy.num_generations}"
        self._show("search", description, candidate.id + 1, total=self.total, note=note)
        if self.plain:
            outcome = _outcome(candidate)
            self.message(
                f"generation {generation:3d}  candidate {candidate.id:4d}  {outcome}  {note}"
            )
        elif candidate.failure:
            self.message(f"candidate {candidate.id} failed: {candidate.failure}")

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        """Advances the display; without a terminal, a line."""
        left = self._left(done if stage == "final training" else 0)
        note = ", ".join(part for part in (note, left) if part)
        self._show(stage, stage, done, total=total, note=note)
        if self.plain:
            self.message(f"{stage}  {done}/{total}  {note}".rstrip())

    def _count(self, candidate: Candidate) -> None:
        self._done += 1
        self._hits += candidate.reused is not None
        self._failures += candidate.failure is not None

    def _show(self, key: str, description: str, done: int, *, total: int, note: str) -> None:
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(description, total=total, note=note)
        # More than the total: candidates drawn for failed ones, or after hard stagnation avoidance.
        total = max(total, done)
        self._progress.update(
            self._tasks[key], description=description, completed=done, total=total, note=note
        )

    def _left(self, final_epochs: int = 0) -> str:
        """The time left in words, once it is known."""
        if self._remaining is None:
            return ""
        return f"about {format_duration(self._remaining.total(final_epochs))} left"


def _outcome(candidate: Candidate) -> str:
    if candidate.failure:
        return f"failed: {candidate.failure}"
    outcome = f"{candidate.fitness:7.2%}"
    if candidate.accuracy != candidate.fitness:
        outcome += f"  accuracy {candidate.accuracy:7.2%}"
    outcome += f"  {candidate.parameters:>9,} parameters"
    return outcome + (f"  (as {candidate.reused})" if candidate.reused is not None else "")
