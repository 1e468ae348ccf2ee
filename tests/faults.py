"""Faults for tests: what goes wrong, with which candidate, and in which attempt at it.

A plan names the faults of a candidate by its id, one for each attempt; `attempts` is a folder in
which attempts are counted, since each may be another process. `TableSetup` stands for training,
`FaultySetup` trains.

As a script it is the command `search` with faults, the first argument being a JSON object:
`attempts`, a folder; `candidates`, such a plan; and `history`, `checkpoint`, `document`: which of
these writes (counted from 0) fail how.

    python tests/faults.py \
        '{"attempts": "/tmp/a", "candidates": {"3": ["segfault"]}, "history": {"5": "ENOSPC"}}' ...
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import itertools
import json
import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from builders import table_outcome

from jaxevo.config import replace
from jaxevo.run.pool import Function, JobFailed
from jaxevo.run.trainings import TrainingSetup
from jaxevo.search_space.genome import Genome

Plan = Mapping[int, tuple[str, ...]]
_SIGNALS = {
    "segfault": signal.SIGSEGV,
    "kill": signal.SIGKILL,
    "abort": signal.SIGABRT,
    "stop": signal.SIGSTOP,
}


def count_attempt(attempts: pathlib.Path, name: str) -> int:
    """How many attempts there were before this one."""
    number = 0
    while True:
        try:
            (attempts / f"{name}.{number}").touch(exist_ok=False)
            return number
        except FileExistsError:
            number += 1


def next_fault(plan: Plan, attempts: pathlib.Path, seed: tuple[int, ...]) -> str:
    """The fault that this attempt at a candidate of the search is to have; "" for none."""
    number = count_attempt(attempts, "-".join(map(str, seed)))
    faults = plan.get(seed[2], ()) if seed[1] == 0 else ()
    return faults[number] if number < len(faults) else ""


def commit(fault: str) -> None:
    """Does what ends a process, or takes what it must not have."""
    if fault in _SIGNALS:
        os.kill(os.getpid(), _SIGNALS[fault])
    elif fault == "kill parent":  # on a cluster a process of Ray, whose worker dies with it
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    elif fault == "exit":
        os._exit(3)
    elif fault == "orphan":
        os.kill(os.getppid(), signal.SIGKILL)
        commit("hang")
    elif fault == "hang":
        while True:
            time.sleep(60)
    elif fault == "allocate":
        np.ones(8 << 30, np.uint8)
    elif fault == "raise":
        raise RuntimeError("injected")


@dataclasses.dataclass(frozen=True)
class TableSetup:
    """The table in place of training; those in `wait_for` wait for another candidate."""

    plan: Plan
    attempts: pathlib.Path
    wait_for: Mapping[int, int] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0  # that a candidate takes

    def build(self) -> Function:
        return self.evaluate

    def evaluate(self, genome: Genome, seed: tuple[int, ...], rival: None = None) -> dict[str, Any]:
        try:
            commit(next_fault(self.plan, self.attempts, seed))
        except (RuntimeError, MemoryError) as error:
            raise JobFailed(type(error).__name__, "Traceback") from None
        while (
            seed[1] == 0
            and seed[2] in self.wait_for
            and not (self.attempts / f"done.{self.wait_for[seed[2]]}").exists()
        ):
            time.sleep(0.001)
        time.sleep(self.seconds)
        outcome = table_outcome(genome, seed)
        if seed[1] == 0:
            (self.attempts / f"done.{seed[2]}").touch()
        return dataclasses.asdict(outcome)


@dataclasses.dataclass(frozen=True)
class FaultySetup(TrainingSetup):
    """Trains, with faults."""

    plan: Plan = dataclasses.field(default_factory=dict)
    attempts: pathlib.Path = pathlib.Path()

    def build(self) -> Function:
        function = super().build()
        patch_evaluator(self.plan, self.attempts)
        return function


def patch_evaluator(plan: Plan, attempts: pathlib.Path) -> None:
    """Has this process's trainings meet their faults."""
    from jaxevo.run.evaluator import Evaluator

    original = Evaluator.train

    def faulty(self: Evaluator, genome: Genome, seed: tuple[int, ...], rival: Any) -> Any:
        fault = next_fault(plan, attempts, seed)
        commit(fault)
        config = self.config
        if fault == "nan":
            self.config = replace(config, {"learning_rate": 1e30})
        try:
            return original(self, genome, seed, rival)
        finally:
            self.config = config

    Evaluator.train = faulty


def failing(
    function: Callable[..., Any], faults: Mapping[str, str], tear: Callable[..., None] | None = None
) -> Any:
    """The function, of which some calls fail with an `OSError`; `tear` first does half of it."""
    calls = itertools.count()

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        fault = faults.get(str(next(calls)))
        if fault is None:
            return function(*args, **kwargs)
        if tear is not None:
            tear(*args, **kwargs)
        if fault == "torn":
            os.kill(os.getpid(), signal.SIGKILL)
        number = getattr(errno, fault)
        raise OSError(number, os.strerror(number))

    return wrapped


def tear_line(history: Any, record: Mapping[str, Any]) -> None:
    """The first half of the line that `History.append` is to write."""
    line = json.dumps(record)
    with history.path.open("a") as file:
        file.write(line[: len(line) // 2])


def main() -> None:
    """The command `search` with faults."""
    plan = json.loads(sys.argv.pop(1))
    from jaxevo import files
    from jaxevo.commands import search
    from jaxevo.run import dispatch, history
    from jaxevo.training import checkpoints

    candidates = {int(k): tuple(faults) for k, faults in plan.get("candidates", {}).items()}
    attempts = pathlib.Path(plan["attempts"])
    faulty = functools.partial(FaultySetup, plan=candidates, attempts=attempts)
    dispatch.TrainingSetup = faulty
    patch_evaluator(candidates, attempts)
    append = history.History.append
    history.History.append = failing(append, plan.get("history", {}), tear_line)
    checkpoints._content = failing(checkpoints._content, plan.get("checkpoint", {}))
    files.write_bytes = failing(files.write_bytes, plan.get("document", {}))
    search.start(sys.argv)


class DeadSetup:
    """A worker that does not get that far."""

    def build(self) -> Function:
        os._exit(7)


if __name__ == "__main__":
    import faults  # by a name under which workers find it too

    faults.main()
