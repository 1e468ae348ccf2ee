"""Faults for tests: what goes wrong, with which candidate, and in which attempt at it.

A plan names the faults of a candidate by its id, one for each attempt; `attempts` is a folder in which attempts are
counted, since each may be another process. `build_table` stands for training, `build_faulty` trains.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import pathlib
import signal
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxevo.genome import Genome
from jaxevo.workers import Evaluate, Setup

Plan = Mapping[int, tuple[str, ...]]
_SIGNALS = {"segfault": signal.SIGSEGV, "kill": signal.SIGKILL, "abort": signal.SIGABRT, "stop": signal.SIGSTOP}


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
        np.ones(1 << 36, np.uint8)
    elif fault == "raise":
        raise RuntimeError("injected")


def build_table(plan: Plan, attempts: pathlib.Path, wait_for: Mapping[int, int], setup: Setup) -> Evaluate:
    """Candidates get their fitness from the table, those in `wait_for` only after another one has got it."""

    def evaluate(genome: Genome, seed: tuple[int, ...]) -> Any:
        try:
            commit(next_fault(plan, attempts, seed))
        except (RuntimeError, MemoryError) as error:
            return Outcome(None, type(error).__name__, "Traceback")
        while seed[1] == 0 and seed[2] in wait_for and not (attempts / f"done.{wait_for[seed[2]]}").exists():
            time.sleep(0.001)
        accuracy = table_fitness(genome, seed)
        if seed[1] == 0:
            (attempts / f"done.{seed[2]}").touch()
        return Outcome(None, "by the table") if np.isnan(accuracy) else Outcome(float(accuracy), seconds={"train": 1.0})

    return evaluate


def build_dead(setup: Setup) -> Evaluate:
    """A worker that does not get that far."""
    os._exit(7)
