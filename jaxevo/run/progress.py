"""How a run is shown: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jaxevo.config import SearchConfig
from jaxevo.strategies.base import Strategy


class RunReporter:
    """Prints a run's progress; `total` candidates are expected.

    Args:
        config: How many candidates, and whether a generation's can be evaluated at once.
        console: Where it is printed.
        workers: Processes that evaluate candidates.
    """

    def __init__(self, config: SearchConfig, console: Console, workers: int = 0):
        self.total = config.num_candidates
        self.at_once = max(1, workers) if config.evolution.mating_pool == "survivors" else 1
        self.console = console
        self._seconds, self._done, self._hits, self._failures = 0.0, 0, 0, 0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, Any] = {}

    @contextmanager
    def live(self) -> Iterator[RunReporter]:
        """Shows the display while the run goes on."""
        with self._progress:
            yield self

    def message(self, text: str) -> None:
        """A line."""
        self.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)

    def candidate(self, record: dict[str, Any], strategy: Strategy) -> None:
        """Advances the display; without a terminal, a line a candidate."""
        self._done += 1
        self._seconds += sum(seconds for part, seconds in record["seconds"].items() if part != "compile")
        self._hits += record["reused"] is not None
        self._failures += record["failure"] is not None
        best = "none" if strategy.best is None else f"{strategy.best.fitness:.2%}"
        left = format_duration(self._remaining(record["id"]))
        reused = f"{self._hits} reused ({self._hits / self._done:.0%})"
        note = f"best {best}, {reused}, {self._failures} failed, about {left} left"
        description = f"generation {record['generation']}/{strategy.num_generations}"
        self._show("search", description, record["id"] + 1, self.total, note)
        if not self.console.is_terminal:
            self.message(
                f"generation {record['generation']:3d}  candidate {record['id']:4d}  {_outcome(record)}  {note}"
            )
        elif record["failure"]:
            self.message(f"candidate {record['id']} failed: {record['failure']}")

    def training(self, what: str, done: int, total: int, note: str) -> None:
        """Advances the display; without a terminal, a line."""
        self._show(what, what, done, total, note)
        if not self.console.is_terminal:
            self.message(f"{what}  {done}/{total}  {note}".rstrip())

    def _show(self, key: str, description: str, done: int, total: int, note: str) -> None:
        if key not in self._tasks:
            self._tasks[key] = self._progress.add_task(description, total=total, note=note)
        total = max(total, done)  # candidates drawn for failed ones, or after hard stagnation avoidance
        self._progress.update(self._tasks[key], description=description, completed=done, total=total, note=note)

    def _remaining(self, last_id: int) -> float:
        """Seconds until the search's last candidate, at this session's mean so far."""
        return self._seconds / self._done / self.at_once * max(0, self.total - last_id - 1)


def _outcome(record: dict[str, Any]) -> str:
    if record["failure"]:
        return f"failed: {record['failure']}"
    accuracy = f"{record['fitness']:7.2%}  {record['parameters']:>9,} parameters"
    return accuracy + (f"  (as {record['reused']})" if record["reused"] is not None else "")


def format_duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
