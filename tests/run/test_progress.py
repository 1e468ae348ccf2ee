"""What a run prints where there is no terminal, and on one."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest
from builders import chain
from rich.console import Console

from jaxevo.config import EvolutionConfig, SearchConfig, replace
from jaxevo.run.pool import Member
from jaxevo.run.progress import RunReporter, reading
from jaxevo.run.records import Candidate, Place
from jaxevo.strategies.individual import Individual

EVOLUTION = EvolutionConfig(
    population_size=2, num_offspring=1, num_generations=3
)  # 2 + 1 * 3 = 5 candidates
CONFIG = SearchConfig(evolution=EVOLUTION)


def reporter_to(file: io.StringIO, terminal: bool = False) -> RunReporter:
    return RunReporter(CONFIG, Console(file=file, force_terminal=terminal, width=300))


def candidate(number: int, fitness: float | None = None, **fields: Any) -> Candidate:
    seconds = {"compile": 100.0, "train": 9.0, "evaluate": 1.0}
    individual = Individual(number, chain(1), max(0, number - 1), fitness=fitness)
    sizes = {"parameters": 12_345, "multiply_adds": 1, "seconds": seconds, "accuracy": fitness}
    return Candidate(individual, **sizes | fields)


def strategy(fitness: float | None) -> Any:
    return SimpleNamespace(
        num_generations=3, best=None if fitness is None else SimpleNamespace(fitness=fitness)
    )


class Left:
    """In place of what tells the time left."""

    ledger = None

    def __init__(self) -> None:
        self.seconds = 0.0
        self.stopwatch = SimpleNamespace(running=None)

    def total(self, final_epochs: int = 0) -> float:
        """So many seconds; in the final training, 10 for each epoch to come."""
        return 10.0 * (40 - final_epochs) if final_epochs else self.seconds


def test_lines_without_a_terminal():
    file = io.StringIO()
    reporter = reporter_to(file)
    reporter.message("resuming: 0 candidates are known already")
    reporter.candidate(candidate(0, failure="the loss was nan in epoch 1"), strategy(None))
    left: Any = Left()
    left.seconds = 30.0
    reporter.begin(left)
    reporter.candidate(candidate(1, fitness=0.925), strategy(0.925))
    left.seconds = 400.0
    reporter.candidate(candidate(2, fitness=0.925, reused=1, seconds={}), strategy(0.925))
    reporter.candidate(candidate(3, fitness=1.0, parameters=7), strategy(1.0))
    reporter.candidate(candidate(4, fitness=0.05), strategy(1.0))
    # One more than expected, as one failed.
    reporter.candidate(candidate(5, fitness=0.05), strategy(1.0))
    reporter.training("retraining the best", 1, 6, note="")
    reporter.training("final training", 3, 40, note="loss 0.1234")
    assert file.getvalue().replace(" parameters", "").splitlines() == [
        "resuming: 0 candidates are known already",
        "generation   0  candidate    0  failed: the loss was nan in epoch 1  "
        "best none, 0 reused (0%), 1 failed",
        "generation   0  candidate    1   92.50%     12,345  "
        "best 92.50%, 0 reused (0%), 1 failed, about 30 s left",
        "generation   1  candidate    2   92.50%     12,345  (as 1)  "
        "best 92.50%, 1 reused (33%), 1 failed, about 7 min left",
        "generation   2  candidate    3  100.00%          7  "
        "best 100.00%, 1 reused (25%), 1 failed, about 7 min left",
        "generation   3  candidate    4    5.00%     12,345  "
        "best 100.00%, 1 reused (20%), 1 failed, about 7 min left",
        "generation   4  candidate    5    5.00%     12,345  "
        "best 100.00%, 1 reused (17%), 1 failed, about 7 min left",
        "retraining the best  1/6  about 7 min left",
        "final training  3/40  loss 0.1234, about 6 min left",
    ]


@pytest.mark.parametrize(
    "reason", ["bad shape [/tmp/x]", "axis [batch] of f32[64,8]", "[bold]", "\\[red]", ":boom:"]
)
@pytest.mark.parametrize("terminal", [False, True])
def test_reasons_are_shown_as_they_are(reason: str, terminal: bool):
    # Rich takes square brackets for markup, and stops at a closing tag that was not opened.
    file = io.StringIO()
    reporter = reporter_to(file, terminal)
    with reporter.live():
        reporter.candidate(candidate(0, failure=reason), strategy(None))
    assert f"failed: {reason}" in file.getvalue()


def test_other_processes_are_shown_with_what_they_are_at():
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    reporter = RunReporter(CONFIG, console, Clock())
    reporter.begin(Left())  # type: ignore[arg-type]
    reporter.members(lambda: [Member("n1", (0, 0, 12)), Member("n2")])
    reporter.candidate(candidate(0, fitness=0.5, place=Place("n1/7", lost=1)), strategy(0.5))
    assert frame(reporter, console)[-1] == "n1: 12, n2: idle, 1 lost with nodes"


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def frame(reporter: RunReporter, console: Console) -> list[str]:
    """The lines that the display has at the moment, without the bars' own characters."""
    with console.capture() as capture:
        console.print(reporter.shown())
    return [line.rstrip() for line in capture.get().splitlines()]


def words(line: str) -> str:
    """A line without its bar."""
    return " ".join(re.sub("[━╸╺]", " ", line).split())


@pytest.mark.parametrize("width", [60, 80, 120])
def test_terminal_shows_the_run_from_the_first_second_in_whole_words(width: int):
    clock, left = Clock(), Left()
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    reporter = RunReporter(CONFIG, console, clock)

    def look(seconds: float, part: str | None) -> list[str]:
        clock.now, left.stopwatch.running = seconds, part
        lines = frame(reporter, console)
        assert all(len(line) <= width and "…" not in line for line in lines)
        return [words(line) for line in lines]

    reporter.begin(left)  # type: ignore[arg-type]
    assert look(1, "compile") == ["search 0/5", "compiling, 1 s so far"]
    left.seconds = 100.0
    reporter.message("estimate: about 2 min")
    # Epochs are shown of a training that takes long.
    reporter.epoch(1, 6)
    assert look(2, "train")[-1] == "training, 2 s so far, about 2 min left"
    assert look(21, "train")[-1] == "training, epoch 1/6, 21 s so far, about 80 s left"
    reporter.candidate(candidate(0, fitness=0.5), strategy(0.5))
    bar, note, doing = look(22, "train")
    assert bar == "generation 0/3 1/5"
    assert note == "best 50.00%, 0 reused (0%), 0 failed"
    assert doing == "training, 22 s so far, about 2 min left"
    reporter.stage("retraining the best", 0, 6)
    assert look(50, "train")[1] == "retraining the best 0/6"
    reporter.training("final training", 3, 40, note="loss 0.1234")
    bar, note, doing = look(4000, "train")[2:]
    assert (bar, note) == ("final training 3/40", "loss 0.1234")
    assert doing == "training, 67 min so far"  # 370 s were left at 50 s, and are over
    reporter.stage("testing", 0, 1)
    assert look(4001, "evaluate")[3] == "testing 0/1"


def test_nothing_is_left_once_the_test_is_done():
    clock, left = Clock(), Left()
    console = Console(file=io.StringIO(), force_terminal=True, width=80, color_system=None)
    reporter = RunReporter(replace(CONFIG, {"final_epochs": 30}), console, clock)
    reporter.begin(left)  # type: ignore[arg-type]
    clock.now = 10
    reporter.stage("testing", 0, 1)
    assert words(frame(reporter, console)[-1]) == "10 s so far, about 2 min left"
    reporter.stage("testing", 1, 1)
    assert words(frame(reporter, console)[-1]) == "10 s so far"


def test_the_time_left_counts_the_final_trainings_one_after_the_other():
    told = []

    class Telling(Left):
        def total(self, final_epochs: int = 0) -> float:
            told.append(final_epochs)
            return 1.0

    config = replace(CONFIG, {"keep": 2, "compare_winner": True, "final_epochs": 4})
    reporter = RunReporter(config, Console(file=io.StringIO(), force_terminal=True))
    reporter.begin(Telling())  # type: ignore[arg-type]
    told.clear()
    reporter.training("final training", 4, 4, note="")
    # The second fails after an epoch.
    reporter.stage("final training of individual 7", 0, 4)
    reporter.training("final training of individual 7", 1, 4, note="")
    reporter.stage("final training of the small CNN", 0, 4)
    reporter.training("final training of the small CNN", 2, 4, note="")
    reporter.stage("testing", 0, 1)
    assert told == [4, 4, 5, 8, 10, 12]


def test_terminal_shows_no_line_a_candidate():
    file = io.StringIO()
    reporter = reporter_to(file, terminal=True)
    with reporter.live():
        reporter.candidate(candidate(0, fitness=0.5), strategy(0.5))
        reporter.training("final training", 3, 40, note="loss 0.1234")
    shown = file.getvalue()
    assert "generation 0/3" in shown and "1/5" in shown and "3/40" in shown
    assert "candidate" not in shown


def test_a_terminal_breaks_messages_between_words():
    console = Console(file=io.StringIO(), force_terminal=True, width=60, record=True)
    message = "estimate: about 30 min: 17 min for 36 candidates of about 28 s, and so on to the end"
    RunReporter(CONFIG, console).message(message)
    lines = console.export_text().splitlines()
    assert len(lines) == 2 and " ".join(map(str.strip, lines)) == message


@pytest.mark.parametrize("terminal", [False, True])
def test_images_that_are_read_are_counted_on_a_terminal_alone(terminal: bool):
    file = io.StringIO()
    with reading(Console(file=file, force_terminal=terminal, width=60)) as on_image:
        for done in range(1, 201):
            on_image(done, 200)
    assert ("reading the data" in file.getvalue()) == terminal
    assert ("200/200 files" in file.getvalue()) == terminal


def test_data_whose_files_are_not_counted_show_no_number():
    file = io.StringIO()
    with reading(Console(file=file, force_terminal=True, width=60)):
        pass
    assert "reading the data" in file.getvalue() and "0/" not in file.getvalue()
