"""What a run prints where there is no terminal, and on one."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from builders import chain
from rich.console import Console

from jaxevo.config import EvolutionConfig, SearchConfig
from jaxevo.run.progress import RunReporter
from jaxevo.run.records import Candidate
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
    """In place of what tells the time left: so many seconds, told one after the other."""

    def __init__(self, *seconds: float):
        self.seconds = list(seconds)

    def total(self, final_epochs: int = 0) -> float:
        """The next ones; in the final training, those of the epochs to come."""
        return 10.0 * (40 - final_epochs) if final_epochs else self.seconds.pop(0)


def test_lines_without_a_terminal():
    file = io.StringIO()
    reporter = reporter_to(file)
    reporter.message("resuming: 0 candidates are known already")
    reporter.candidate(candidate(0, failure="the loss was nan in epoch 1"), strategy(None))
    left: Any = Left(30, 13, 8, 0, 0, 400)
    reporter.begin(left)
    reporter.candidate(candidate(1, fitness=0.925), strategy(0.925))
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
        "best 92.50%, 1 reused (33%), 1 failed, about 13 s left",
        "generation   2  candidate    3  100.00%          7  "
        "best 100.00%, 1 reused (25%), 1 failed, about 8 s left",
        "generation   3  candidate    4    5.00%     12,345  "
        "best 100.00%, 1 reused (20%), 1 failed, about 0 s left",
        "generation   4  candidate    5    5.00%     12,345  "
        "best 100.00%, 1 reused (17%), 1 failed, about 0 s left",
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


def test_terminal_shows_bars_and_no_line_a_candidate():
    file = io.StringIO()
    reporter = reporter_to(file, terminal=True)
    with reporter.live():
        reporter.candidate(candidate(0, fitness=0.5), strategy(0.5))
        reporter.training("final training", 3, 40, note="loss 0.1234")
    shown = file.getvalue()
    assert (
        "generation 0/3" in shown
        and "1/5" in shown
        and "best 50.00%, 0 reused (0%), 0 failed" in shown
    )
    assert "final training" in shown and "3/40" in shown and "loss 0.1234" in shown
    assert "candidate" not in shown
