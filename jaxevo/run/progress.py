"""Displays of a run: live on a terminal, plain lines elsewhere (a log, a pipe, a notebook)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jaxevo.config import SearchConfig
from jaxevo.run.crew import Crew
from jaxevo.run.pool import Member
from jaxevo.run.records import Candidate
from jaxevo.run.remaining import Remaining
from jaxevo.run.words import format_duration
from jaxevo.strategies.base import Strategy

FINAL = "final training"  # the stage of the winner's; the names of others begin so
TESTING = "testing"
_LONG = 2.0  # seconds, after which the epochs of a training are shown
# What a run does at the moment, by the part of the stopwatch that runs.
_DOING = {
    "compile": "compiling",
    "train": "training",
    "evaluate": "measuring",
    "checkpoint": "saving",
    "other": "timing a few steps",
}


@dataclasses.dataclass
class _Stage:
    """A line of the live display."""

    description: str
    done: int
    total: int


class RunReporter:
    """Prints a run's progress.

    Args:
        config: How many candidates to expect.
        console: Where it is printed.
        clock: Gives the time in seconds.
    """

    def __init__(
        self, config: SearchConfig, console: Console, clock: Callable[[], float] = time.monotonic
    ):
        self.total = config.num_candidates
        self.console = console
        self.plain = not console.is_terminal or console.is_jupyter
        self._clock = clock
        self._begin = clock()
        self._remaining: Remaining | None = None
        self._done = 0
        self._hits = 0
        self._failures = 0
        self._final_epochs = 0  # done of all final trainings, of so many:
        self._all_final_epochs = config.num_final_trainings * config.final_training.epochs
        # What the live display shows: stages by name, the newest note, the epoch of the training
        # at hand, the time of the last event, and the seconds that were left then.
        self._stages: dict[str, _Stage] = {}
        self._note = ""
        self._epoch = ""
        self._last = self._begin
        self._left = 0.0
        self._crew: Crew | None = None  # where other processes train

    @contextmanager
    def live(self) -> Iterator[RunReporter]:
        """Shows the display while the run goes on."""
        if self.plain:
            yield self
            return
        with Live(get_renderable=self.shown, console=self.console, refresh_per_second=4):
            yield self

    def begin(self, remaining: Remaining) -> None:
        """Shows the search, and takes note of how long the run takes."""
        self._remaining = remaining
        known = len(remaining.ledger.candidates) if remaining.ledger else 0
        self.stage("search", known, self.total)

    def message(self, text: str) -> None:
        """A line; a terminal's are broken between words."""
        self._event()
        self.console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=self.plain)

    def stage(self, name: str, done: int, total: int) -> None:
        """Advances the display; nothing is printed without a terminal."""
        # More than the total: candidates drawn for failed ones, or after hard stagnation avoidance.
        self._stages[name] = _Stage(name, done, max(total, done))
        if name.startswith(FINAL):
            # One final training follows the other: those that began before this one have ended.
            ended = [each for each in self._stages if each.startswith(FINAL) and each != name]
            self._final_epochs = len(ended) * total + done
        elif name == TESTING:
            self._final_epochs = self._all_final_epochs
        self._event()
        if name == TESTING and done == total:  # the end
            self._left = 0.0

    def epoch(self, done: int, total: int) -> None:
        """Advances the display; nothing is printed without a terminal."""
        self._epoch = f"epoch {done}/{total}"

    def members(self, members: Callable[[], Sequence[Member]]) -> None:
        """Shows the processes that train."""
        self._crew = Crew(members, self._clock)

    def candidate(self, candidate: Candidate, strategy: Strategy) -> None:
        """Advances the display; without a terminal, a line a candidate."""
        if self._crew is not None:
            self._crew.add(candidate)
        self._done += 1
        self._hits += candidate.reused is not None
        self._failures += candidate.failure is not None
        generation = candidate.individual.generation
        self.stage("search", candidate.id + 1, self.total)
        self._stages["search"].description = f"generation {generation}/{strategy.num_generations}"
        best = "none" if strategy.best is None else f"{strategy.best.fitness:.2%}"
        reused = f"{self._hits} reused ({self._hits / self._done:.0%})"
        self._note = f"best {best}, {reused}, {self._failures} failed"
        if self.plain:
            outcome, note = _outcome(candidate), _joined(self._note, self._left_in_words())
            self.message(
                f"generation {generation:3d}  candidate {candidate.id:4d}  {outcome}  {note}"
            )
        elif candidate.failure:
            self.message(f"candidate {candidate.id} failed: {candidate.failure}")

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        """Advances the display; without a terminal, a line."""
        self.stage(stage, done, total)
        self._note = note
        if self.plain:
            note = _joined(note, self._left_in_words())
            self.message(f"{stage}  {done}/{total}  {note}".rstrip())

    def shown(self) -> Group:
        """The live display: a bar for each stage, and below what is known and what is done."""
        grid = Table.grid(padding=(0, 1), expand=True)
        for ratio in (None, 1, None):
            grid.add_column(ratio=ratio, no_wrap=True)
        for stage in list(self._stages.values()):
            bar = ProgressBar(total=max(1, stage.total), completed=stage.done)
            grid.add_row(Text(stage.description), bar, Text(f"{stage.done}/{stage.total}"))
        return Group(grid, *map(Text, self._lines()))

    def _lines(self) -> list[str]:
        """The lines below the bars; parts that do not fit beside each other stand in two lines."""
        running = self._remaining.stopwatch.running if self._remaining else None
        now = self._clock()
        doing = [_DOING.get(running or "", "")]
        if running == "train" and now - self._last > _LONG:
            doing.append(self._epoch)
        doing.append(f"{format_duration(now - self._begin)} so far")
        doing.append(self._left_in_words(now - self._last))
        width = self.console.width
        crew = self._crew.words() if self._crew is not None else []
        parts = (self._note.split(", "), doing, crew)
        return [line for each in parts for line in _fitted(each, width)]

    def _event(self) -> None:
        """Takes note that something has happened, and of the time left at that moment."""
        self._last = self._clock()
        self._epoch = ""
        if self._remaining is not None:
            self._left = self._remaining.total(self._final_epochs)

    def _left_in_words(self, since: float = 0.0) -> str:
        """The time left in words, so many seconds after it was told; empty if none is known."""
        left = self._left - since
        return f"about {format_duration(left)} left" if left > 0 else ""


@contextmanager
def reading(console: Console) -> Iterator[Callable[[int, int], None]]:
    """Shows on a terminal that data are read, and of files how many, as the function is told."""
    if not console.is_terminal or console.is_jupyter:
        yield lambda done, total: None
        return
    columns = (TextColumn("reading the data{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(
            task, completed=done, total=total, description=f", {done}/{total} files"
        )


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _fitted(parts: Sequence[str], width: int) -> list[str]:
    """The parts in as few lines of this width as hold them whole."""
    lines: list[str] = []
    for part in filter(None, parts):
        if lines and len(joined := f"{lines[-1]}, {part}") <= width:
            lines[-1] = joined
        else:
            lines.append(part)
    return lines


def _outcome(candidate: Candidate) -> str:
    if candidate.failure:
        return f"failed: {candidate.failure}"
    outcome = f"{candidate.fitness:7.2%}"
    if candidate.accuracy != candidate.fitness:
        outcome += f"  accuracy {candidate.accuracy:7.2%}"
    outcome += f"  {candidate.parameters:>9,} parameters"
    return outcome + (f"  (as {candidate.reused})" if candidate.reused is not None else "")
