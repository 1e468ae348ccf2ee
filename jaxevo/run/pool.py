"""The interface of worker processes: jobs go in, and their outcomes come out.

`Workers` (workers.py) are processes of this machine; `open_pool` gives what the settings ask for.

A job consists of a key, a setup and arguments. The setup is what a process is given once, settings
and data, and makes there the function that is called with the arguments of each job::

    class Sum:
        def __init__(self, terms: Shared):
            self.terms = terms

        def build(self) -> Function:  # called in the worker
            terms = self.terms.load()["terms"]
            return lambda factor: {"sum": float(terms.sum()) * factor}

    with open_pool(WorkerConfig(workers=2)) as pool:
        setup = Sum(pool.share({"terms": np.arange(5)}))
        for factor in (1, 2, 3):
            pool.submit(Job(factor, setup, (factor,)))
        values = [pool.result(factor).value for factor in (1, 2, 3)]

Setups, arguments and values are pickled, so their classes are importable in the worker. JAX is not
imported.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from jaxevo.errors import InputError

ATTEMPTS = 2  # at a job; a node that is lost with it does not count
_MAX_WORDS = 300  # characters of an exception

Key = Hashable
Function = Callable[..., Mapping[str, Any]]  # from a job's arguments to its value


class WorkerError(InputError):
    """Workers do not even start."""


class JobFailed(Exception):
    """Raised by a job's function where it knows itself what went wrong.

    Args:
        words: What went wrong, in a line.
        details: The traceback.
    """

    def __init__(self, words: str, details: str):
        super().__init__(words, details)
        self.words, self.details = words, details


class Shared(Protocol):
    """Arrays that were given to a pool once."""

    def load(self) -> dict[str, np.ndarray]:
        """The arrays by name, in a worker."""
        ...


class Setup(Protocol):
    """What a process is given once. Setups that are equal are the same one."""

    def build(self) -> Function:
        """Makes the function of the jobs, in a worker; no job's time runs meanwhile."""
        ...


@dataclasses.dataclass(frozen=True)
class Job:
    """Work for a process.

    Attributes:
        key: Names the job: two of the same key are one.
        setup: What the process has to be given before.
        arguments: Of the setup's function.
    """

    key: Key
    setup: Setup
    arguments: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a job; either `value` or `failure` is set.

    Attributes:
        value: What the function returned.
        failure: In words, what went wrong in each attempt.
        details: Traceback of an exception in the last attempt.
        seconds: That the attempts took.
        where: Node and process of the last attempt, as `node/process`.
        attempt: Which one was the last, counted from 1.
        lost: How many more were lost with their nodes.
    """

    value: Mapping[str, Any] | None
    failure: str | None = None
    details: str | None = None
    seconds: float = 0.0
    where: str = ""
    attempt: int = 1
    lost: int = 0


@dataclasses.dataclass(frozen=True)
class Member:
    """A process of a pool, for displays: where it runs, its job, and for how many seconds."""

    where: str
    key: Key | None = None  # None: it is starting or idle
    seconds: float = 0.0


class Pool(Protocol):
    """Processes that carry out jobs.

    A job whose process dies, takes too long, or raises an exception is tried once more in a fresh
    process, and then that job alone has failed. Jobs begin in the order in which they were
    submitted and end in any order. To be closed, as by `with`, which ends all processes.
    """

    def share(self, arrays: Mapping[str, np.ndarray]) -> Shared:
        """Puts arrays where every worker can load them, as long as the pool is open."""
        ...

    def submit(self, job: Job) -> None:
        """Takes a job, unless one of its key is waiting, under way, or done and not yet taken."""
        ...

    def result(self, key: Key) -> Outcome:
        """Waits for the outcome of a job that was submitted, and forgets the job.

        Raises:
            KeyError: No such job was submitted, or its outcome was taken before.
            WorkerError: Workers end before they have begun.
        """
        ...

    def first(self, keys: Collection[Key]) -> Key:
        """Waits until one of these submitted jobs is done, and names it; `result` takes it.

        Raises like `result`.
        """
        ...

    def withdraw(self) -> None:
        """Forgets the jobs that have not begun."""
        ...

    def members(self) -> Sequence[Member]:
        """The processes there are; another thread may ask."""
        ...

    def close(self) -> None:
        """Ends all processes, whatever they are doing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def carry_out(function: Function, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """What a worker answers: a job's `value`, or its `failure` and `details`."""
    try:
        return {"value": function(*arguments)}
    except JobFailed as error:
        return {"failure": error.words, "details": error.details}
    except Exception as error:  # whatever it is, the job is tried again or has failed
        words = " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_WORDS]
        return {"failure": words, "details": traceback.format_exc()}


def failure_in_words(problems: Sequence[str], details: str | None) -> str:
    """Why a job has failed, from the problem of each attempt.

    After an exception, which has `details`, its words alone: a job that raises it in every process
    fails with the same words wherever it is carried out.
    """
    if details is not None:
        return problems[-1]
    return f"{problems[0]}, twice" if len(set(problems)) == 1 else "; tried again: ".join(problems)
