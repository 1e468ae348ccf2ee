"""Trials are done once each, in groups of the size of a step, and workers are told early."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import random_genomes

from jaxevo import config as configs
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.run.dispatch import Dispatcher
from jaxevo.run.evaluator import Evaluation
from jaxevo.run.reporter import Silent
from jaxevo.run.trial import Trial
from jaxevo.stopwatch import Stopwatch

GENOMES = random_genomes(5, 1, 2, seed=4)
TRIALS = [Trial(genome, (0, number)) for number, genome in enumerate(GENOMES)]


class Written:
    """Stands for an evaluator and for workers; writes down what it is asked.

    A result is waited for for two seconds, by a clock of its own.
    """

    def __init__(self, candidates_per_step: int = 1):
        settings = {"candidates_per_step": candidates_per_step, "mating_pool": "survivors"}
        self.config = configs.replace(SearchConfig(), settings)
        self.asked: list[object] = []
        self.now = 0.0
        self.stopwatch = Stopwatch(lambda: self.now)

    def evaluate_several(self, trials):
        assert [TRIALS[trial.seed[1]] for trial in trials] == trials
        self.asked.append([trial.seed[1] for trial in trials])
        return [Evaluation(trial.seed[1] / 10) for trial in trials]

    def expect(self, genome):
        self.asked.append(f"expect {GENOMES.index(genome)}")

    def submit(self, trial):
        assert TRIALS[trial.seed[1]] == trial
        self.asked.append(f"submit {trial.seed[1]}")

    def result(self, seed):
        self.asked.append(f"result {seed[1]}")
        self.now += 2
        return Evaluation(seed[1] / 10)


def dispatch(written: Any, by_workers: bool = False) -> Dispatcher:
    return Dispatcher(written, written if by_workers else None)


@pytest.mark.parametrize(
    ("at_once", "expected"),
    [
        (1, ["expect 1", [0], "expect 2", [1], "expect 3", [2], "expect 4", [3], [4]]),
        (2, ["expect 2", [0, 1], "expect 4", [2, 3], [4]]),
        (5, [[0, 1, 2, 3, 4]]),
        (8, [[0, 1, 2, 3, 4]]),
    ],
)
def test_as_many_in_a_step_as_it_takes_and_the_next_is_expected(at_once: int, expected: list):
    written = Written(at_once)
    dispatcher = dispatch(written)
    found = [dispatcher.evaluate_first(TRIALS[number:]).accuracy for number in range(5)]
    assert found == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert written.asked == expected


def test_what_was_done_ahead_is_not_done_again_where_others_come_between():
    written = Written(3)
    dispatcher = dispatch(written)
    dispatcher.evaluate_first([TRIALS[0], TRIALS[2], TRIALS[4]])
    dispatcher.evaluate_first([TRIALS[1], TRIALS[2], TRIALS[3], TRIALS[4]])
    assert dispatcher.evaluate_first([TRIALS[4]]).accuracy == 0.4
    assert written.asked == [[0, 2, 4], [1, 3]]


def test_the_genome_at_hand_is_not_expected_for_its_other_seeds():
    written = Written()
    written.evaluate_several = lambda trials: [Evaluation(0.5)]
    twice = [Trial(GENOMES[0], (0, 0)), Trial(GENOMES[0], (0, 1)), Trial(GENOMES[1], (0, 2))]
    dispatch(written).evaluate_first(twice)
    assert written.asked == ["expect 1"]


def test_workers_are_given_everything_and_waited_for_the_first():
    written = Written()
    assert dispatch(written, by_workers=True).evaluate_first(TRIALS[1:4]).accuracy == 0.1
    assert written.asked == ["submit 1", "submit 2", "submit 3", "result 1"]
    assert written.stopwatch.seconds == {"train": 2.0}  # workers overlap, so the waiting counts


def test_no_worker_is_started_where_none_is_asked_for(digits):
    written: Any = Written()
    none = WorkerConfig(workers=0)
    with Dispatcher.open(written, none, digits, reporter=Silent()) as dispatcher:
        assert dispatcher.workers is None
        assert dispatcher.evaluate_first(TRIALS).accuracy == 0
