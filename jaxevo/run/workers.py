"""Evaluation of candidates in worker processes, so that one that crashes harms no other.

A candidate that hangs or eats all memory harms no other either.

Each worker is a spawned process at the end of a pipe of its own and shares no lock with anyone.
However and whenever a worker ends, while starting and idle included, its pipe ends with it. Its
candidate is tried once more in a fresh process, and only that candidate fails if it does so again.
(Of the ready-made pools, `concurrent.futures` and `loky` lose every running task with one process;
`pebble` loses but one, yet breaks when a starting or an idle process is killed:
docs/reliability.md.)

JAX is imported in the worker after its memory has been limited, so not at the top of this module.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import dataclasses
import multiprocessing
import os
import resource
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.errors import InputError
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed

if TYPE_CHECKING:
    from jaxevo.run.evaluator import Evaluation

_ATTEMPTS = 2
_MAX_FAILED_STARTS = 3  # in a row; then something other than a candidate ends the workers
_PR_SET_PDEATHSIG = 1


class WorkerError(InputError):
    """Workers do not even start."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """Data and settings that a worker is given once, at its start."""

    config: SearchConfig
    num_classes: int
    # File with the training and validation images, their labels, and the subset to train on.
    arrays: str
    compilation_cache: str | None


Evaluate = Callable[[Genome, Seed], "Evaluation"]
Build = Callable[[Setup], Evaluate]


@dataclasses.dataclass
class _Job:
    """A candidate on its way."""

    genome: Genome
    seed: Seed
    problems: list[str] = dataclasses.field(default_factory=list)  # of each attempt that failed
    seconds: float = 0.0


@dataclasses.dataclass
class _Worker:
    process: Any
    pipe: connection.Connection
    left: int  # candidates until it is replaced
    ready: bool = False
    job: _Job | None = None
    begin: float = 0.0


class Workers:
    """Evaluates candidates in at most `limits.workers` processes.

    Processes are started when there is work, and dead ones are replaced. Nothing happens in the
    background: calls of `result` drive all of it. A training is known by its seed, which no other
    shares. The object is to be closed, as by `with`; a process that ends without closing it takes
    its workers along.

    Args:
        limits: How many processes, and what a candidate may take.
        setup: Given to `build` in each worker.
        build: Makes, in the worker, the function that evaluates; importable from there.
    """

    def __init__(self, limits: WorkerConfig, setup: Setup, build: Build):
        self.limits, self.setup, self.build = limits, setup, build
        self._workers: list[_Worker] = []
        self._queue: collections.deque[_Job] = collections.deque()
        self._done: dict[Seed, Evaluation] = {}
        self._failed_starts = 0

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all workers, whatever they are doing."""
        for worker in list(self._workers):
            self._stop(worker)

    def submit(self, genome: Genome, seed: Seed) -> None:
        """Submits a genome for evaluation, unless its training is under way already."""
        jobs = [*self._queue, *(worker.job for worker in self._workers if worker.job)]
        if seed not in self._done and all(job.seed != seed for job in jobs):
            self._queue.append(_Job(genome, seed))
            self._assign()

    def result(self, seed: Seed) -> Evaluation:
        """Waits for the result of a submitted training.

        Raises `WorkerError` if workers end before they have begun.
        """
        while seed not in self._done:
            self._assign()
            # Take the messages that come, waiting at most until a candidate has taken too long.
            for pipe in connection.wait(
                [worker.pipe for worker in self._workers], self._until_deadline()
            ):
                self._receive(next(worker for worker in self._workers if worker.pipe is pipe))
            # End the workers whose candidates have taken too long.
            for worker in [worker for worker in self._workers if self._left(worker) <= 0]:
                self._give_up(
                    worker,
                    f"it took longer than --candidate_timeout={self.limits.candidate_timeout:g}",
                )
        return self._done.pop(seed)

    def _assign(self) -> None:
        """Gives waiting jobs to idle workers, and starts those that are missing."""
        for worker in list(self._workers):
            if self._queue and worker.ready and worker.job is None:
                worker.job, worker.begin = self._queue.popleft(), time.monotonic()
                try:
                    worker.pipe.send((worker.job.genome.to_dict(), worker.job.seed))
                except OSError:  # it ended while idle, which is no fault of this candidate
                    self._queue.appendleft(worker.job)
                    worker.job = None
                    self._stop(worker)
        # Start workers for the jobs that idle and starting workers leave over.
        free = sum(worker.job is None for worker in self._workers)
        for _ in range(min(len(self._queue) - free, self.limits.workers - len(self._workers))):
            self._start()

    def _start(self) -> None:
        # A fork of a process that uses JAX can deadlock.
        spawn = multiprocessing.get_context("spawn")
        pipe, other = spawn.Pipe()
        process = spawn.Process(
            target=_work,
            args=(other, self.setup, self.build),
            kwargs={"memory_limit": self.limits.worker_memory_limit, "parent": os.getpid()},
            name="jaxevo worker",
            daemon=True,
        )
        process.start()
        other.close()  # the pipe ends with the process
        self._workers.append(_Worker(process, pipe, self.limits.candidates_per_worker))

    def _receive(self, worker: _Worker) -> None:
        """Takes a worker's message, or notices its end.

        A worker says that it is ready, or how its candidate did; its end says that it has died.
        """
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            return self._give_up(worker, _how_it_ended(worker.process))
        if worker.job is None:
            worker.ready, self._failed_starts = True, 0
            return
        self._finish(worker, message)

    def _finish(self, worker: _Worker, message: dict[str, Any]) -> None:
        """Takes a worker's result.

        After an exception the worker is replaced, as it may itself have used up what the training
        lacked.
        """
        from jaxevo.run.evaluator import Evaluation

        evaluation, job = Evaluation(**message), worker.job
        assert job is not None
        if evaluation.details is not None and len(job.problems) + 1 < _ATTEMPTS:
            return self._give_up(worker, evaluation.failure or "")
        self._done[job.seed], worker.job = evaluation, None
        worker.left -= 1
        if evaluation.details is not None or worker.left == 0:
            self._stop(worker)

    def _give_up(self, worker: _Worker, problem: str) -> None:
        """Ends a worker; its candidate is tried again, or has failed.

        Raises `WorkerError` after too many starts.
        """
        from jaxevo.run.evaluator import Evaluation

        job = worker.job
        self._stop(worker)
        if job is None:
            self._failed_starts += not worker.ready
            if self._failed_starts >= _MAX_FAILED_STARTS:
                raise WorkerError(
                    f"{self._failed_starts} workers in a row ended while they were starting "
                    f"({problem}); is there memory for {self.limits.workers} (--workers), and "
                    "--worker_memory_limit large enough?"
                )
            return
        # Try the candidate again, or record its failure.
        job.problems.append(problem)
        job.seconds += time.monotonic() - worker.begin
        if len(job.problems) < _ATTEMPTS:
            self._queue.appendleft(job)
            return
        reason = (
            f"{problem}, twice"
            if len(set(job.problems)) == 1
            else "; tried again: ".join(job.problems)
        )
        self._done[job.seed] = Evaluation(None, reason, seconds={"train": job.seconds})

    def _stop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.kill()
        worker.process.join()
        worker.process.close()

    def _left(self, worker: _Worker) -> float:
        """Seconds until a worker's candidate has taken too long."""
        if worker.job is None or not self.limits.candidate_timeout:
            return float("inf")
        return worker.begin + self.limits.candidate_timeout - time.monotonic()

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


def _work(
    pipe: connection.Connection, setup: Setup, build: Build, *, memory_limit: int, parent: int
) -> None:
    """A worker's life."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # even while a candidate hangs
    if os.getppid() != parent:
        return
    # A terminal sends the interrupt to all processes; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The limit is on writable memory: JAX reserves many times the address space that it uses.
    if memory_limit:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_limit << 20, memory_limit << 20))
    # Load the data, tell the parent that this worker is ready, and evaluate what it sends.
    evaluate = build(setup)
    pipe.send(None)
    while True:
        try:
            genome, seed = pipe.recv()
        except EOFError:
            return
        pipe.send(dataclasses.asdict(evaluate(Genome.from_dict(genome), seed)))


def build_evaluate(setup: Setup) -> Evaluate:
    """`Evaluator.evaluate` on the setup's data.

    Programs are compiled before the first candidate's time begins to run.
    """
    from jaxevo.machine import keep_compiled
    from jaxevo.networks.builder import NetworkBuilder
    from jaxevo.run.evaluator import Evaluator, class_weights
    from jaxevo.training.data import TrainingData

    if setup.compilation_cache:
        keep_compiled(setup.compilation_cache)
    # Read the data from the file of the parent.
    with np.load(setup.arrays, allow_pickle=False) as arrays:
        train = Images(arrays["train_images"], arrays["train_labels"])
        validation = Images(arrays["validation_images"], arrays["validation_labels"])
        weights = class_weights(setup.config, train.labels, setup.num_classes)
        data = TrainingData.of(train, arrays["subset"], weights)
    # Build the evaluator, and compile the program that all genomes share.
    builder = NetworkBuilder.for_images(setup.config.network, train.images, setup.num_classes)
    evaluator = Evaluator(setup.config, builder, data, validation=validation)
    evaluator.warm_up()
    return evaluator.evaluate


@contextlib.contextmanager
def start_workers(
    limits: WorkerConfig, config: SearchConfig, data: SearchData, *, subset: np.ndarray
) -> Iterator[Workers]:
    """Workers that train as `Evaluator` does on this data, and end with the block.

    The data goes through a file without a name, which is gone with this process, however that ends.
    """
    from jaxevo.machine import compilation_cache

    with tempfile.TemporaryFile() as file:
        np.savez(
            file,
            train_images=data.train.images,
            train_labels=data.train.labels,
            validation_images=data.validation.images,
            validation_labels=data.validation.labels,
            subset=subset,
        )
        file.flush()
        # The open file is reached through /proc, since it has no name.
        path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
        setup = Setup(config, data.num_classes, path, compilation_cache())
        with Workers(limits, setup, build_evaluate) as workers:
            yield workers
