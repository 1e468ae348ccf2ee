"""Faults for tests: what goes wrong, with which candidate, and in which attempt at it.

A plan names the faults of a candidate by its id, one for each attempt; `attempts` is a folder in which attempts are
counted, since each may be another process. `build_table` stands for training, `build_faulty` trains.

As a script it is launch/search.py with faults, the first argument being a JSON object: `attempts`, a folder;
`candidates`, such a plan; and `history`, `checkpoint`, `document`: which of these writes (counted from 0) fail how.

    python tests/faults.py '{"attempts": "/tmp/a", "candidates": {"3": ["segfault"]}, "history": {"5": "ENOSPC"}}' ...
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import hashlib
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

from jaxevo.run.workers import Evaluate, Setup, build_evaluate
from jaxevo.search_space.genome import Genome

Plan = Mapping[int, tuple[str, ...]]
_SIGNALS = {
    "segfault": signal.SIGSEGV,
    "kill": signal.SIGKILL,
    "abort": signal.SIGABRT,
    "stop": signal.SIGSTOP,
}


@dataclasses.dataclass
class Outcome:
    """As `evaluation.Evaluation`, which would bring jax into the worker."""

    accuracy: float | None
    failure: str | None = None
    details: str | None = None
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)


def table_fitness(genome: Genome, seed: tuple[int, ...]) -> float:
    """As if trained: decided by genome and seed, between 0 and 1; every eighth fails."""
    digest = hashlib.sha256(f"{genome.canonical_key()} {seed}".encode()).digest()
    return np.nan if digest[0] < 32 else digest[1] / 256


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
    elif fault == "exit":
        os._exit(3)
    elif fault == "hang":
        while True:
            time.sleep(60)
    elif fault == "allocate":
        np.ones(8 << 30, np.uint8)
    elif fault == "raise":
        raise RuntimeError("injected")


def build_table(
    plan: Plan, attempts: pathlib.Path, wait_for: Mapping[int, int], setup: Setup
) -> Evaluate:
    """Candidates get their fitness from the table, those in `wait_for` only after another one has got it."""

    def evaluate(genome: Genome, seed: tuple[int, ...]) -> Any:
        try:
            commit(next_fault(plan, attempts, seed))
        except (RuntimeError, MemoryError) as error:
            return Outcome(None, type(error).__name__, "Traceback")
        while (
            seed[1] == 0
            and seed[2] in wait_for
            and not (attempts / f"done.{wait_for[seed[2]]}").exists()
        ):
            time.sleep(0.001)
        accuracy = table_fitness(genome, seed)
        if seed[1] == 0:
            (attempts / f"done.{seed[2]}").touch()
        return (
            Outcome(None, "by the table")
            if np.isnan(accuracy)
            else Outcome(float(accuracy), seconds={"train": 1.0})
        )

    return evaluate


def build_faulty(plan: Plan, attempts: pathlib.Path, setup: Setup) -> Evaluate:
    """As `build_evaluate`, with faults."""
    evaluate = build_evaluate(setup)
    patch_evaluator(plan, attempts)
    return evaluate


def patch_evaluator(plan: Plan, attempts: pathlib.Path) -> None:
    """Has this process's evaluations meet their faults."""
    from jaxevo.run.evaluator import Evaluator

    original = Evaluator._evaluate

    def faulty(self: Evaluator, genome: Genome, seed: tuple[int, ...], *args: Any) -> float:
        fault = next_fault(plan, attempts, seed)
        commit(fault)
        config = self.config
        if fault == "nan":
            self.config = dataclasses.replace(
                config, training=dataclasses.replace(config.training, learning_rate=1e30)
            )
        try:
            return original(self, genome, seed, *args)
        finally:
            self.config = config

    Evaluator._evaluate = faulty


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


def tear_line(history: Any, kind: str, **fields: Any) -> None:
    """The first half of the line that `History.append` is to write."""
    line = json.dumps({"kind": kind} | fields)
    with history._path.open("a") as file:
        file.write(line[: len(line) // 2])


def main() -> None:
    """launch/search.py with faults."""
    plan = json.loads(sys.argv.pop(1))
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "launch"))
    import common
    import search as launcher

    from jaxevo.run import search as searches
    from jaxevo.run import workdir, workers
    from jaxevo.training import checkpoints as checkpoint

    candidates = {int(k): tuple(faults) for k, faults in plan.get("candidates", {}).items()}
    attempts = pathlib.Path(plan["attempts"])
    workers.build_evaluate = functools.partial(build_faulty, candidates, attempts)
    patch_evaluator(candidates, attempts)
    workdir.History.append = failing(workdir.History.append, plan.get("history", {}), tear_line)
    checkpoint._content = failing(checkpoint._content, plan.get("checkpoint", {}))
    workdir.write_text = searches.write_text = failing(workdir.write_text, plan.get("document", {}))
    common.run(launcher.main, "", "nothing is lost: give the same command to go on")


def build_dead(setup: Setup) -> Evaluate:
    """A worker that does not get that far."""
    os._exit(7)


if __name__ == "__main__":
    import faults  # by a name under which workers find it too

    faults.main()
