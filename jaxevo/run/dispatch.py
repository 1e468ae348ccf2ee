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
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed

# A genome and its training's seed. The seed contains the individual's id, so it identifies the job.
Job = tuple[Genome, Seed]


class Dispatcher:
    """Evaluates jobs; compiles or submits the next ones ahead of time.

    Args:
        evaluator: Trains in this process.
        workers: Train instead, if there are any.
    """

    def __init__(self, evaluator: Evaluator, workers: Trainings | None = None):
        self.evaluator = evaluator
        self.workers = workers
        # Results of jobs that were done in one step with an earlier one.
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

    def evaluate(self, jobs: Sequence[Job]) -> Evaluation:
        """Returns the result of the first job.

        The other jobs are the ones that will most likely be asked for next, so they may be begun
        early.
        """
        _, seed = jobs[0]
        if self.workers is not None:
            return self._by_workers(jobs, self.workers)
        if seed not in self._ahead:
            self._here([job for job in jobs if job[1] not in self._ahead])
        return self._ahead.pop(seed)

    def withdraw(self) -> None:
        """Forgets the jobs that were submitted early and have not begun."""
        if self.workers is not None:
            self.workers.withdraw()

    def _here(self, jobs: Sequence[Job]) -> None:
        """Does as many jobs as one step takes, and has the genome after them compiled meanwhile."""
        number = self.evaluator.config.candidates_per_step
        genomes, seeds = zip(*jobs[:number], strict=True)
        following = next((genome for genome, _ in jobs[number:] if genome not in genomes), None)
        if following is not None:
            self.evaluator.expect(following)
        evaluations = self.evaluator.evaluate_several(genomes, seeds)
        self._ahead |= dict(zip(seeds, evaluations, strict=True))

    def _by_workers(self, jobs: Sequence[Job], workers: Trainings) -> Evaluation:
        """Workers overlap, so only this process's waiting time counts as training."""
        for job in jobs:
            workers.submit(*job)
        with self.evaluator.stopwatch.part("train"):
            return workers.result(jobs[0][1])
