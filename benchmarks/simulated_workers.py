"""Workers in virtual time, for `scaleout.py`: trainings last as long as was measured, and take no
time.

They stand where a search's trainings run otherwise: given the first trial and those that follow,
they begin the trials in this order as workers are free, and time passes until the first one is
done. A training dies at times and is tried once more; a node of several workers is lost at times,
which its trainings are not blamed for, and comes back. All is drawn with seeds, and a training's
fate with its own, so that it is the same on any number of workers.
"""

from __future__ import annotations

import collections
import dataclasses
import heapq
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from jaxevo.run.evaluator import Evaluation
from jaxevo.run.trial import Trial
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed

ATTEMPTS = 2  # as of real workers; the second death is a failure
WORKERS_PER_NODE = 4


@dataclasses.dataclass(frozen=True)
class Conditions:
    """How trainings and nodes fare. Times are in mean trainings."""

    name: str
    histories: str  # pattern of the runs in `docs/` whose trainings lasted so long
    reuse: bool = True  # of the fitness of an isomorphic genome, which so takes no training
    most_workers: int = 100  # that a table has; searches with more take minutes
    slow_share: float = 0.0  # of trainings: these take `slow_times` as long
    slow_times: float = 5.0
    dying_share: float = 0.0  # of attempts: these die at any moment
    node_life: float = math.inf  # mean time until a node is lost, whose workers are new then
    node_absence: float = 0.0  # until it is back


@dataclasses.dataclass
class _Training:
    genome: Genome
    seed: Seed
    duration: float
    deaths: list[float | None]  # of each attempt, the share of the duration after which it dies
    attempt: int = 0
    run: int = 0  # how often it was begun or stopped, by which an event that is void is known
    begin: float = 0.0
    worker: int | None = None


class SimulatedWorkers:
    """Evaluates the trials of a search in virtual time.

    Args:
        number: Of workers, all there at first.
        durations: Measured durations to draw from, in mean trainings.
        conditions: How trainings and nodes fare.
        fitness: Gives the fitness of a genome trained with a seed.
        seed: Of all that is drawn here.

    Attributes:
        now: The time, in mean trainings.
        busy: Worker-time in which something was trained.
        available: Worker-time of the workers that were there.
        lost: The part of `busy` that was lost with a death or a node.
    """

    def __init__(
        self,
        number: int,
        durations: np.ndarray,
        conditions: Conditions,
        *,
        fitness: Callable[[Genome, Seed], float],
        seed: int,
    ) -> None:
        self.durations, self.conditions, self.fitness = durations, conditions, fitness
        self.seed = seed
        self.now = self.busy = self.available = self.lost = 0.0
        self._present = number
        self._free = list(range(number))  # a heap
        self._running: dict[int, _Training] = {}  # by worker
        self._queue: collections.deque[_Training] = collections.deque()
        self._known: set[Seed] = set()
        self._done: dict[Seed, Evaluation] = {}
        # Time, a number that makes each event's place definite, and what happens.
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._rng = np.random.default_rng([4, seed])
        for first in range(0, number, WORKERS_PER_NODE):
            self._expect_loss(range(first, min(first + WORKERS_PER_NODE, number)))

    def evaluate(self, trials: Sequence[Trial]) -> Evaluation:
        """The result of the first trial; the others are begun too as workers are free."""
        for genome, seed, _ in trials:
            if seed not in self._known:
                self._known.add(seed)
                self._queue.append(self._training(genome, seed))
        first = trials[0].seed
        self._assign()
        while first not in self._done:
            self._pass_until_event()
            self._assign()
        return self._done.pop(first)

    def _training(self, genome: Genome, seed: Seed) -> _Training:
        rng = np.random.default_rng([5, self.seed, seed[-1]])
        duration, slow = float(rng.choice(self.durations)), rng.random()
        if slow < self.conditions.slow_share:
            duration *= self.conditions.slow_times
        dies, moments = rng.random(ATTEMPTS) < self.conditions.dying_share, rng.random(ATTEMPTS)
        deaths = [
            float(moment) if dead else None for dead, moment in zip(dies, moments, strict=True)
        ]
        return _Training(genome, seed, duration, deaths)

    def _assign(self) -> None:
        while self._queue and self._free:
            training = self._queue.popleft()
            training.worker, training.begin = heapq.heappop(self._free), self.now
            training.run += 1
            self._running[training.worker] = training
            share = training.deaths[training.attempt]
            after = training.duration * (1.0 if share is None else share)
            run = training.run
            self._at(self.now + after, lambda t=training, r=run: self._end(t, r))

    def _at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._numbers), event))

    def _pass_until_event(self) -> None:
        time, _, event = heapq.heappop(self._events)
        self.busy += (time - self.now) * len(self._running)
        self.available += (time - self.now) * self._present
        self.now = time
        event()

    def _end(self, training: _Training, run: int) -> None:
        """A training ends or dies, unless its node was lost meanwhile."""
        if training.run != run:
            return
        died = training.deaths[training.attempt] is not None
        assert training.worker is not None
        heapq.heappush(self._free, training.worker)
        self._stop(training)
        if not died:
            value = self.fitness(training.genome, training.seed)
            self._done[training.seed] = Evaluation(value)
            return
        self.lost += self.now - training.begin
        training.attempt += 1
        if training.attempt < ATTEMPTS:
            self._queue.appendleft(training)
        else:
            self._done[training.seed] = Evaluation(None, "the process died, twice")

    def _stop(self, training: _Training) -> None:
        assert training.worker is not None
        del self._running[training.worker]
        training.worker = None
        training.run += 1

    def _expect_loss(self, workers: range) -> None:
        if math.isfinite(self.conditions.node_life):
            life = self._rng.exponential(self.conditions.node_life)
            self._at(self.now + life, lambda: self._lose(workers))

    def _lose(self, workers: range) -> None:
        """A node goes; its trainings are the next to be begun, in the order of the trials."""
        stopped = [self._running[worker] for worker in workers if worker in self._running]
        for training in sorted(stopped, key=lambda each: each.seed, reverse=True):
            self.lost += self.now - training.begin
            self._stop(training)
            self._queue.appendleft(training)
        self._free = [worker for worker in self._free if worker not in workers]
        heapq.heapify(self._free)
        self._present -= len(workers)
        self._at(self.now + self.conditions.node_absence, lambda: self._return(workers))

    def _return(self, workers: range) -> None:
        for worker in workers:
            heapq.heappush(self._free, worker)
        self._present += len(workers)
        self._expect_loss(workers)
