"""What all pools have in common: jobs that wait, are under way, or are done and not yet taken.

Nothing happens in the background: calls of `submit`, `result` and `first` drive all of it.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import time
from collections.abc import Collection
from typing import Self

from jaxevo.run.pool import ATTEMPTS, Job, Key, Outcome, failure_in_words


@dataclasses.dataclass
class QueuedJob:
    """A job on its way."""

    job: Job
    begin: float = 0.0  # of the attempt at hand
    problems: list[str] = dataclasses.field(default_factory=list)  # of each attempt that failed
    seconds: float = 0.0  # of these attempts
    lost: int = 0  # attempts that were lost with their nodes, which do not count


class QueuedPool(abc.ABC):
    """The queue of a `Pool`; who derives from it has the processes."""

    def __init__(self) -> None:
        self._queue: collections.deque[QueuedJob] = collections.deque()
        self._known: set[Key] = set()  # waiting, under way, or done and not yet taken
        self._done: dict[Key, Outcome] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abc.abstractmethod
    def close(self) -> None:
        """Ends all processes, whatever they are doing."""

    def submit(self, job: Job) -> None:
        """Takes a job, unless one of its key is waiting, under way, or done and not yet taken."""
        if job.key not in self._known:
            self._known.add(job.key)
            self._queue.append(QueuedJob(job))
            self._assign()

    def result(self, key: Key) -> Outcome:
        """Waits for the outcome of a job that was submitted, and forgets the job.

        Raises:
            KeyError: No such job was submitted, or its outcome was taken before.
            WorkerError: There is no process that can carry out jobs.
        """
        self.first((key,))
        self._known.remove(key)
        return self._done.pop(key)

    def first(self, keys: Collection[Key]) -> Key:
        """Waits until one of these submitted jobs is done, and names it; `result` takes it.

        Raises like `result`.
        """
        if not keys or not self._known.issuperset(keys):
            raise KeyError(*keys)
        while True:
            done = next((key for key in keys if key in self._done), None)
            if done is not None:
                return done
            self._proceed()

    def withdraw(self) -> None:
        """Forgets the jobs that have not begun."""
        self._known -= {task.job.key for task in self._queue}
        self._queue.clear()

    @abc.abstractmethod
    def _assign(self) -> None:
        """Gives waiting jobs to the processes that are free."""

    @abc.abstractmethod
    def _proceed(self) -> None:
        """Gives out jobs, waits until something happens, and takes note of it."""

    def _failed(
        self, task: QueuedJob, problem: str, *, where: str, details: str | None = None
    ) -> None:
        """Has a job tried again after an attempt that failed, or records that the job has."""
        task.problems.append(problem)
        task.seconds += time.monotonic() - task.begin
        if len(task.problems) < ATTEMPTS:
            self._queue.appendleft(task)
            return
        self._done[task.job.key] = Outcome(
            None,
            failure_in_words(task.problems, details),
            details,
            seconds=task.seconds,
            where=where,
            attempt=ATTEMPTS,
            lost=task.lost,
        )
