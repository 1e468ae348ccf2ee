"""Where a search's trainings take place: in this process, one by one or several in a step, or in workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxevo.run.evaluator import Evaluation, Evaluator
from jaxevo.run.workers import Workers
from jaxevo.search_space.genome import Genome
from jaxevo.training.engines import Seed

Job = tuple[Genome, Seed]  # no two have the same seed


class Dispatcher:
    """Has jobs done, and begins early with those that are known to follow.

    Args:
        evaluator: Trains in this process.
        subset: Indices of the images to train on.
        workers: Train instead, if there are any.
        spend: Is told seconds by what they went into.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        subset: np.ndarray,
        workers: Workers | None,
        spend: Callable[[Mapping[str, float]], None],
    ):
        self.evaluator, self.subset, self.workers, self.spend = evaluator, subset, workers, spend
        self._ahead: dict[Seed, Evaluation] = {}  # of jobs that were done in one step with an earlier one

    def evaluate(self, jobs: Sequence[Job]) -> Evaluation:
        """The result of the first; the others are those that will be asked for next, most likely."""
        _, seed = jobs[0]
        if self.workers is not None:
            return self._by_workers(jobs, self.workers)
        if seed not in self._ahead:
            self._here([job for job in jobs if job[1] not in self._ahead])
        return self._ahead.pop(seed)

    def _here(self, jobs: Sequence[Job]) -> None:
        """Does as many as one step takes, and has the genome after them compiled meanwhile."""
        number = self.evaluator.config.candidates_per_step
        genomes, seeds = zip(*jobs[:number], strict=True)
        following = next((genome for genome, _ in jobs[number:] if genome not in genomes), None)
        if following is not None:
            self.evaluator.expect(following)
        evaluations = self.evaluator.evaluate_several(genomes, seeds, self.subset)
        for evaluation in evaluations:
            self.spend(evaluation.seconds)
        self._ahead |= dict(zip(seeds, evaluations, strict=True))

    def _by_workers(self, jobs: Sequence[Job], workers: Workers) -> Evaluation:
        """As they work side by side, it is the waiting for them that is put down as training."""
        for job in jobs:
            workers.submit(*job)
        begin = time.perf_counter()
        evaluation = workers.result(jobs[0][1])
        self.spend({"train": time.perf_counter() - begin})
        return evaluation
