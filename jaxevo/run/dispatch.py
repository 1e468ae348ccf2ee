"""Places where a search's trainings run: this process or worker processes.

In this process candidates are trained one by one, or several in a step.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from jaxevo.config import WorkerConfig
from jaxevo.datasets import SearchData
from jaxevo.run.evaluator import Evaluation, Evaluator
from jaxevo.run.open_pool import open_pool
from jaxevo.run.reporter import Reporter
from jaxevo.run.share import Share
from jaxevo.run.trainings import Trainings, TrainingSetup, share_images
from jaxevo.run.trial import Trial
from jaxevo.seeds import Seed


class Dispatcher:
    """Evaluates trials; compiles or submits the next ones ahead of time.

    Args:
        evaluator: Trains in this process.
        workers: Train instead, if there are any.
    """

    def __init__(self, evaluator: Evaluator, workers: Trainings | None = None):
        self.evaluator = evaluator
        self.workers = workers
        # Results of trials that were done in one step with an earlier one.
        self._ahead: dict[Seed, Evaluation] = {}

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, evaluator: Evaluator, limits: WorkerConfig, data: SearchData, *, reporter: Reporter
    ) -> Iterator[Dispatcher]:
        """Opens a dispatcher with the workers that the limits ask for, which end with the block.

        Raises `InputError` if their cluster cannot be joined.
        """
        if not limits.apart:
            yield cls(evaluator)
            return
        with open_pool(limits, reporter.message) as pool:
            reporter.members(pool.members)
            images = share_images(pool, data, evaluator.data.subset)
            setup = TrainingSetup(evaluator.config, data.num_classes, images, Share.of(limits))
            yield cls(evaluator, Trainings(pool, setup))

    def evaluate_first(self, trials: Sequence[Trial]) -> Evaluation:
        """Returns the result of the first trial.

        The other trials are the ones that will most likely be asked for next, so they may be begun
        early.
        """
        seed = trials[0].seed
        if self.workers is not None:
            return self._by_workers(trials, self.workers)
        if seed not in self._ahead:
            self._here([trial for trial in trials if trial.seed not in self._ahead])
        return self._ahead.pop(seed)

    def withdraw(self) -> None:
        """Forgets the trials that were submitted early and have not begun."""
        if self.workers is not None:
            self.workers.withdraw()

    def _here(self, trials: Sequence[Trial]) -> None:
        """Does as many as one step takes, and has the genome after them compiled meanwhile."""
        number = self.evaluator.config.candidates_per_step
        now = trials[:number]
        genomes = {trial.genome for trial in now}
        following = next((t.genome for t in trials[number:] if t.genome not in genomes), None)
        if following is not None:
            self.evaluator.expect(following)
        for trial, evaluation in zip(now, self.evaluator.evaluate_several(now), strict=True):
            self._ahead[trial.seed] = evaluation

    def _by_workers(self, trials: Sequence[Trial], workers: Trainings) -> Evaluation:
        """Submits all trials, and waits for the first.

        Workers overlap, so only this process's waiting time counts as training.
        """
        for trial in trials:
            workers.submit(trial)
        with self.evaluator.stopwatch.part("train"):
            return workers.result(trials[0].seed)
