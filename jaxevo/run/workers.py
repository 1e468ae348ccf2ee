"""Worker processes of this machine, so that a job that crashes harms no other.

A job that hangs or eats all memory harms no other either.

Each worker is a spawned process at the end of a pipe of its own and shares no lock with anyone.
However and whenever a worker ends, while starting and idle included, its pipe ends with it. Its
job is tried once more in a fresh process, and only that job fails if it does so again.
(Of the ready-made pools, `concurrent.futures` and `loky` lose every running task with one process;
`pebble` loses but one, yet breaks when a starting or an idle process is killed:
docs/reliability.md.)

JAX is imported in the worker after its memory has been limited, so not at the top of this module.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import platform
import resource
import signal
import tempfile
import time
from collections.abc import Mapping
from multiprocessing import connection
from typing import Any

import numpy as np

from jaxevo.config import WorkerConfig
from jaxevo.run.pool import Function, Member, Outcome, Setup, WorkerError, carry_out
from jaxevo.run.queued_pool import QueuedJob, QueuedPool

_MAX_FAILED_STARTS = 3  # in a row; then something other than a job ends the workers
_PR_SET_PDEATHSIG = 1


@dataclasses.dataclass(frozen=True)
class ArrayFile:
    """Arrays in an `.npz` file of this machine."""

    path: str

    def load(self) -> dict[str, np.ndarray]:
        """The arrays by name. Raises `OSError`."""
        with np.load(self.path, allow_pickle=False) as arrays:
            return dict(arrays)


@dataclasses.dataclass
class _Worker:
    process: Any
    pipe: connection.Connection
    where: str
    left: int  # jobs until it is replaced
    setup: Setup  # that it was given last
    ready: bool = False  # whether it has built that
    task: QueuedJob | None = None


class Workers(QueuedPool):
    """A `Pool` of at most `limits.workers` processes.

    Processes are started when there is work, and dead ones are replaced. A process that ends
    without closing it takes its workers along.

    Args:
        limits: How many processes, and what a job may take.
    """

    def __init__(self, limits: WorkerConfig):
        super().__init__()
        self.limits = limits
        self._workers: list[_Worker] = []
        self._failed_starts = 0
        self._files = contextlib.ExitStack()

    def close(self) -> None:
        """Ends all workers, whatever they are doing."""
        for worker in list(self._workers):
            self._stop(worker)
        self._files.close()

    def share(self, arrays: Mapping[str, np.ndarray]) -> ArrayFile:
        """Puts arrays into a file without a name, gone with this process, however that ends."""
        file = self._files.enter_context(tempfile.TemporaryFile())
        named: dict[str, Any] = dict(arrays)
        np.savez(file, **named)
        file.flush()
        # The open file is reached through /proc, since it has no name.
        return ArrayFile(f"/proc/{os.getpid()}/fd/{file.fileno()}")

    def members(self) -> list[Member]:
        """The workers there are; another thread may ask."""
        now = time.monotonic()
        busy = [(worker.where, worker.task) for worker in tuple(self._workers)]
        return [
            Member(where, task.job.key, now - task.begin) if task else Member(where)
            for where, task in busy
        ]

    def _proceed(self) -> None:
        """Takes the messages that come, and ends the workers whose jobs have taken too long."""
        self._assign()
        # Wait at most until a job has taken too long.
        for pipe in connection.wait(
            [worker.pipe for worker in self._workers], self._until_deadline()
        ):
            self._receive(next(worker for worker in self._workers if worker.pipe is pipe))
        for worker in [worker for worker in self._workers if self._left(worker) <= 0]:
            limit = self.limits.candidate_timeout
            self._give_up(worker, f"it took longer than --candidate_timeout={limit:g}")

    def _assign(self) -> None:
        """Gives waiting jobs to idle workers, and starts those that are missing."""
        for worker in list(self._workers):
            if self._queue and worker.ready and worker.task is None:
                self._give(worker)
        # Start workers for the jobs that idle and starting workers leave over.
        free = sum(worker.task is None for worker in self._workers)
        for _ in range(min(len(self._queue) - free, self.limits.workers - len(self._workers))):
            self._start()

    def _give(self, worker: _Worker) -> None:
        """Gives the first waiting job to an idle worker, or before that the setup of the job."""
        task = self._queue[0]
        try:
            if worker.setup != task.job.setup:
                worker.setup, worker.ready = task.job.setup, False
                worker.pipe.send(("setup", worker.setup))
                return
            worker.pipe.send(("job", task.job.arguments))
        except OSError:  # it ended while idle, which is no fault of this job
            self._stop(worker)
            return
        worker.task = self._queue.popleft()
        worker.task.begin = time.monotonic()

    def _start(self) -> None:
        # A fork of a process that uses JAX can deadlock.
        spawn = multiprocessing.get_context("spawn")
        pipe, other = spawn.Pipe()
        setup = self._queue[0].job.setup
        process = spawn.Process(
            target=_work,
            args=(other, setup),
            kwargs={"memory_limit": self.limits.worker_memory_limit, "parent": os.getpid()},
            name="jaxevo worker",
            daemon=True,
        )
        process.start()
        other.close()  # the pipe ends with the process
        where = f"{platform.node()}/{process.pid}"
        left = self.limits.candidates_per_worker
        self._workers.append(_Worker(process, pipe, where, left=left, setup=setup))

    def _receive(self, worker: _Worker) -> None:
        """Takes a worker's message, or notices its end.

        A worker says that it is ready, or how its job went; its end says that it has died.
        """
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            return self._give_up(worker, _how_it_ended(worker.process))
        if worker.task is None:
            worker.ready, self._failed_starts = True, 0
        elif "failure" in message:
            # The worker is replaced, as it may itself have used up what the job lacked.
            self._give_up(worker, message["failure"], message["details"])
        else:
            self._finish(worker, worker.task, message["value"])

    def _finish(self, worker: _Worker, task: QueuedJob, value: Mapping[str, Any]) -> None:
        """Takes a job's value; its worker is replaced once it has had its number of jobs."""
        seconds = task.seconds + time.monotonic() - task.begin
        attempt = len(task.problems) + 1
        self._done[task.job.key] = Outcome(
            value, seconds=seconds, where=worker.where, attempt=attempt
        )
        worker.task = None
        worker.left -= 1
        if worker.left == 0:
            self._stop(worker)

    def _give_up(self, worker: _Worker, problem: str, details: str | None = None) -> None:
        """Ends a worker; its job is tried again, or has failed.

        Raises `WorkerError` after too many starts.
        """
        task = worker.task
        self._stop(worker)
        if task is None:
            self._failed_starts += not worker.ready
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise WorkerError(
                    f"{self._failed_starts} workers in a row ended while they were starting "
                    f"({problem}); is there memory for {self.limits.workers} (--workers), and "
                    "--worker_memory_limit large enough?"
                )
            return
        self._failed(task, problem, where=worker.where, details=details)

    def _stop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
        worker.process.close()

    def _left(self, worker: _Worker) -> float:
        """Seconds until a worker's job has taken too long."""
        if worker.task is None or not self.limits.candidate_timeout:
            return float("inf")
        return worker.task.begin + self.limits.candidate_timeout - time.monotonic()

    def _until_deadline(self) -> float | None:
        left = min((self._left(worker) for worker in self._workers), default=float("inf"))
        return None if left == float("inf") else max(0.0, left)


def _how_it_ended(process: Any) -> str:
    process.join()  # its pipe has ended, so it is about to
    if process.exitcode >= 0:
        return f"its process ended with exit code {process.exitcode}"
    name = signal.Signals(-process.exitcode).name
    hint = " (by the kernel, if memory ran out)" if name == "SIGKILL" else ""
    return f"its process ended by {name}{hint}"


def limit_memory(mebibytes: int) -> None:
    """Limits the writable memory of this process; 0: no limit.

    JAX reserves many times the address space that it uses, so that is not limited.
    """
    if mebibytes:
        resource.setrlimit(resource.RLIMIT_DATA, (mebibytes << 20, mebibytes << 20))


def _work(pipe: connection.Connection, setup: Setup, *, memory_limit: int, parent: int) -> None:
    """A worker's life."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # even while a job hangs
    if os.getppid() != parent:
        return
    # A terminal sends the interrupt to all processes; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    limit_memory(memory_limit)
    # Build what the jobs need, tell the parent that this worker is ready, and do what it sends.
    function: Function = setup.build()
    pipe.send(None)
    while True:
        try:
            kind, given = pipe.recv()
        except EOFError:
            return
        if kind == "setup":
            function = given.build()
            pipe.send(None)
        else:
            pipe.send(carry_out(function, given))
