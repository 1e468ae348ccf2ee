"""Seconds that a run still takes to its end, from the pace of its trainings so far.

The display, the time limit and the estimate before the start all ask here. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import islice

import numpy as np

from jaxevo.config import SearchConfig, TrainingConfig
from jaxevo.run.ledger import Ledger
from jaxevo.run.records import Candidate, Retraining
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.registry import waits

_RECENT = 20  # trainings: at earlier ones networks were smaller, or other jobs took the processor
_RESERVE = 1.2  # on the time that what follows the search should take: the winner may be large


@dataclasses.dataclass(frozen=True)
class Pace:
    """Seconds of an image in training, of measuring an accuracy, and of compiling a candidate."""

    image: float
    evaluation: float
    compiling: float = 0.0


class Remaining:
    """Seconds until the end of a run: candidates, retrainings, final trainings and the test.

    Args:
        config: The search's.
        ledger: What is done; None: nothing.
        stopwatch: Of the session.
        num_train: Training images, all of which the final training sees.
        scored: How many times the validation images the images of the last measurement are.
        workers: Processes that evaluate candidates.
        time_limit: Seconds that the session may take; None: no limit.

    Attributes:
        sample: The pace until a candidate was trained; None: it is not known.
        chosen: True once the winner is chosen: nothing is left of the search and of the choice.
    """

    def __init__(
        self,
        config: SearchConfig,
        ledger: Ledger | None,
        stopwatch: Stopwatch,
        *,
        num_train: int,
        scored: float = 1.0,
        workers: int = 0,
        time_limit: float | None = None,
    ):
        self.config = config
        self.ledger = ledger
        self.stopwatch = stopwatch
        self.time_limit = time_limit
        self.sample: Pace | None = None
        self.chosen = False
        self._scored = scored
        self._seen = _images_seen(config.training, config.data.train_examples or num_train)
        self._final_seen = _images_seen(config.final_training, num_train)
        # Trainings at once in the search and in the choice.
        self._at_once = max(1, min(workers, config.evolution.lag) if waits(config) else workers)
        self._chosen_at_once = max(1, workers)
        # Epochs of final trainings that were done when one was first heard of, and the time.
        self._final_begin: tuple[int, float] | None = None

    def pace(self) -> Pace:
        """The mean pace of the newest trainings; before the first, that of the sample."""
        # The newest trainings first.
        trained: list[Mapping[str, float]] = []
        shares: list[float] = []  # of its epochs, that each was trained for
        if self.ledger is not None:
            groups = (self.ledger.retrainings, self.ledger.candidates)
            newest = (record for group in groups for record in reversed(group.values()))
            for record in islice((each for each in newest if "train" in each.seconds), _RECENT):
                trained.append(record.seconds)
                shares.append(self._share(record))
        if not trained:
            return self.sample or Pace(0.0, 0.0)
        train, evaluate, compiling = (
            float(np.mean([seconds.get(part, 0.0) for seconds in trained]))
            for part in ("train", "evaluate", "compile")
        )
        # A program that all genomes share is compiled once.
        each = self.config.engine == "compiled"
        images = self._seen * float(np.mean(shares))
        return Pace(train / images, evaluate, compiling if each else 0.0)

    def _share(self, record: Candidate | Retraining) -> float:
        """The part of its epochs that a training went through: a race ends some early."""
        most = self.config.training.epochs
        return record.epochs(most) / most if isinstance(record, Candidate) else 1.0

    def training(self) -> float:
        """Seconds of a candidate's training, its measurement included."""
        pace = self.pace()
        return pace.image * self._seen + pace.evaluation + pace.compiling

    def search(self) -> float:
        """Seconds until the last candidate, as far as the time limit lets candidates begin."""
        seconds = self._trainings_left() * self.training() / self._at_once
        if self.time_limit is None:
            return seconds
        following = _RESERVE * (self.choice() + self.final())
        return min(seconds, max(0.0, self.time_limit - self.stopwatch.total() - following))

    def choice(self) -> float:
        """Seconds of training the best again, and the best of the first generation, at most."""
        left = 0 if self.chosen else max(0, self.config.num_retrainings - self._retrained())
        return left * self.training() / self._chosen_at_once

    def final(self, epochs: int = 0) -> float:
        """Seconds of all final trainings, of which so many epochs are done, and of the test."""
        pace = self.pace()
        per_epoch = pace.image * self._final_seen / self.config.final_training.epochs
        per_epoch += pace.evaluation  # after each epoch, for the curve
        # The pace of the final trainings themselves counts once it is known.
        if epochs:
            now = self.stopwatch.total()
            first, begin = self._final_begin = self._final_begin or (epochs, now)
            per_epoch = (now - begin) / (epochs - first) if epochs > first else per_epoch
        test = pace.evaluation * self._scored
        # The test's network is compiled for itself. It is part of the program that engine native
        # has for all genomes, whose compiling took about twice as long.
        if self.config.engine == "native":
            test += self.stopwatch.seconds.get("compile", 0.0) / 2
        all_epochs = self.config.num_final_trainings * self.config.final_training.epochs
        return (all_epochs - epochs) * per_epoch + test

    def total(self, final_epochs: int = 0) -> float:
        """Seconds until the end, after so many epochs of all final trainings."""
        if final_epochs:
            return self.final(final_epochs)
        return self.search() + self.choice() + self.final()

    def out_of_time(self) -> bool:
        """True once what is left of the time limit is needed for what follows the next candidate.

        The winner's network may be larger than the mean, hence a reserve.
        """
        if self.time_limit is None:
            return False
        needed = self.training() + self.choice() + self.final()
        return self.stopwatch.total() + _RESERVE * needed > self.time_limit

    def _retrained(self) -> int:
        """Retrainings that are known, without those of before the run was continued."""
        if self.ledger is None:
            return 0
        return len(self.ledger.retrainings) - self.ledger.earlier_retrainings

    def _trainings_left(self) -> float:
        """Trainings of candidates to expect, if isomorphic ones are as frequent as so far."""
        config, ledger = self.config, self.ledger
        expected = config.evolution.num_candidates
        if ledger is None or not ledger.candidates:
            return min(expected, config.max_trainings) if config.max_trainings else expected
        enough = config.target_reached(ledger.best_accuracy)
        if self.chosen or ledger.stop is not None or self._retrained() or enough:
            return 0
        done = len(ledger.candidates)
        left = max(0, expected - done) * ledger.trainings / done
        if not config.max_trainings:
            return left
        return min(left, max(0, config.max_trainings - ledger.trainings))


def _images_seen(training: TrainingConfig, num_images: int) -> int:
    """Images that a training sees in all of its steps."""
    steps = max(1, num_images // training.batch_size)
    return training.epochs * steps * training.batch_size
