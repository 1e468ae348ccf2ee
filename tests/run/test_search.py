"""A whole run in its folder: it resumes from anywhere to the same end, and is not done twice."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import itertools
import json
import os
import shutil
from typing import Any

import faults
import numpy as np
import pytest
from builders import SMALL, Table, explore_and_choose, history_of, open_ledger
from conftest import timeless

from jaxevo.config import SearchConfig, WorkerConfig, replace
from jaxevo.datasets import SearchData
from jaxevo.files import FileError
from jaxevo.run import history as history_file
from jaxevo.run.dispatch import Dispatcher
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.result import Result
from jaxevo.run.search import Task, find_winner, run_search
from jaxevo.run.trainings import Trainings
from jaxevo.run.workdir import Workdir
from jaxevo.run.workers import Workers
from jaxevo.stopwatch import Stopwatch
from jaxevo.training import checkpoints

TINY: SearchConfig = replace(
    SMALL, {"num_generations": 2, "epochs": 1, "learning_rate": 0.01, "train_examples": 64}
)


@pytest.fixture(scope="module")
def data(digits) -> SearchData:
    train = digits.train.take(np.arange(100))
    return SearchData("digits", train, digits.validation, digits.class_names)


@pytest.fixture(scope="module")
def make(data):
    """A task in a folder; its test images are the validation images."""

    def make(path, config: SearchConfig = TINY, **fields: Any) -> Task:
        defaults: dict[str, Any] = {"load_test": lambda: data.validation}
        return Task(config, Workdir(path), data, **defaults | fields)

    return make


def without_place_and_time(result: Result) -> dict[str, Any]:
    return {name: value for name, value in timeless(vars(result)).items() if name != "path"}


def without_session(path) -> list[dict[str, Any]]:
    return [record for record in history_of(path) if record["kind"] != "session"]


class Interrupting(Silent):
    """Interrupts after so many records and epochs."""

    def __init__(self, number: int):
        super().__init__()
        self.left = number

    def candidate(self, candidate, strategy) -> None:
        self.training(note="")

    def training(self, *_: Any, note: str) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory, make) -> Result:
    """An uninterrupted run."""
    return run_search(make(tmp_path_factory.mktemp("runs") / "whole"), Silent())


def test_interrupted_in_every_phase_it_comes_to_the_same_end(tmp_path, make, whole):
    expected = without_session(whole.path)
    candidates = len(history_of(whole.path, "individual"))
    assert len(history_of(whole.path, "retraining")) == 4
    # After three candidates, two trainings of the best, and one epoch of the final training; each
    # session counts anew.
    for number in (3, candidates - 3 + 2, 4 - 2 + 1):
        with pytest.raises(KeyboardInterrupt):
            run_search(make(tmp_path), Interrupting(number))
        with pytest.raises(FileError, match="another configuration"):
            run_search(make(tmp_path, replace(TINY, {"seed": 1})), Silent())
    resumed = run_search(make(tmp_path), Silent())
    assert without_place_and_time(resumed) == without_place_and_time(whole)
    assert without_session(tmp_path) == expected


def test_a_finished_run_called_again_returns_the_same_result_and_does_nothing(make, whole):
    def load_test():
        raise AssertionError("the test images were loaded again")

    files = {path: path.stat().st_mtime_ns for path in whole.path.rglob("*") if path.is_file()}
    reporter = Interrupting(1)
    assert run_search(make(whole.path, load_test=load_test), reporter) == whole
    assert find_winner(make(whole.path), Silent()).id == whole.id
    again = {path: path.stat().st_mtime_ns for path in whole.path.rglob("*") if path.is_file()}
    history = Workdir(whole.path).history
    assert again | {history: 0} == files | {history: 0}
    assert load_run(Workdir(whole.path)).result == whole
    assert reporter.messages == []


SHORT: SearchConfig = replace(TINY, {"num_generations": 0, "final_epochs": 1})


@pytest.fixture(scope="module")
def short(tmp_path_factory, make) -> Result:
    """A run of the first generation, with a shorter final training."""
    return run_search(make(tmp_path_factory.mktemp("runs") / "short", SHORT), Silent())


def continued(result: Result, path):
    """A copy of a run's folder, which tests go on with."""
    return shutil.copytree(result.path, path)


class InterruptingAt(Silent):
    """Interrupts after the first candidate, or the first step of another stage."""

    def __init__(self, stage: str):
        super().__init__()
        self._awaited = stage

    def candidate(self, candidate, strategy) -> None:
        self.training("a candidate", note="")

    def training(self, stage: str, *_: Any, note: str) -> None:
        if stage == self._awaited:
            raise KeyboardInterrupt


STAGES = ("a candidate", "a candidate", "final training")


@pytest.mark.parametrize("moments", [(), STAGES], ids=["at once", "interrupted"])
def test_a_continued_run_is_the_run_that_was_begun_so(tmp_path, make, short, whole, moments):
    path = continued(short, tmp_path / "run")
    kinds = ("individual", "stagnation")
    for stage in moments:
        with pytest.raises(KeyboardInterrupt):
            run_search(make(path, continues=True), InterruptingAt(stage))
        assert load_run(Workdir(path)).result is None
    # Given again, the change is made already, so the call without it does the same.
    result = run_search(make(path, continues=not moments), Silent())
    for kind in kinds:
        assert history_of(path, kind) == history_of(whole.path, kind)
    assert len(history_of(path, "change")) == 1
    # The best of the longer run were trained again, and perhaps others before.
    again = {(line["id"], line["seed"]): line for line in history_of(path, "retraining")}
    for line in history_of(whole.path, "retraining"):
        assert again[line["id"], line["seed"]] == line
    # Only what was done in between is more than in the run that was begun so.
    assert result.earlier_tests == (short.test_accuracy,)
    counted = {"earlier_tests": (), "trainings": whole.trainings}
    assert without_place_and_time(result) | counted == without_place_and_time(whole)
    for name in ("best.json", "result.json"):
        assert (path / name).exists()
    weights = [weights_of(each) for each in (path, whole.path)]
    assert weights[0].keys() == weights[1].keys()
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])


def weights_of(path) -> dict[str, np.ndarray]:
    return checkpoints.load_weights(Workdir(path).best_weights)[1]


def test_another_final_training_has_the_same_winner_and_another_network(tmp_path, make, short):
    path = continued(short, tmp_path / "run")
    config = replace(SHORT, {"final_epochs": 4, "final_schedule": "cosine"})
    told = []

    class Telling(Silent):
        def training(self, stage, done, total, *, note):
            told.append((stage, done, total))

    result = run_search(make(path, config, continues=True), Telling())
    assert told == [("final training", number, 4) for number in (1, 2, 3, 4)]  # from the start
    assert (result.id, result.retrained_fitness) == (short.id, short.retrained_fitness)
    begun = run_search(make(tmp_path / "begun", config), Silent())
    weights = [weights_of(each) for each in (path, begun.path)]
    assert all(np.array_equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert result.validation_accuracy == begun.validation_accuracy
    # Again it is complete.
    assert run_search(make(path, config, continues=True), Interrupting(1)) == result


def test_a_run_that_its_time_limit_ended_goes_on_to_the_same_end(tmp_path, make, whole):
    first = run_search(make(tmp_path, time_limit=1e-9), Silent())
    assert first.candidates == 1
    reporter = Silent()
    result = run_search(make(tmp_path, continues=True), reporter)
    assert reporter.messages[0] == "continued after 1 candidates beyond the time limit"
    assert history_of(tmp_path, "individual") == history_of(whole.path, "individual")
    assert (result.id, result.test_accuracy) == (whole.id, whole.test_accuracy)
    # Without another limit there is nothing to lift.
    assert run_search(make(tmp_path, continues=True), Interrupting(1)) == result


def test_a_compared_winner_is_the_same_winner(tmp_path, make, whole):
    config = replace(TINY, {"compare_winner": True})
    result = run_search(make(tmp_path / "run", config), Silent())
    assert (result.id, result.test_accuracy) == (whole.id, whole.test_accuracy)
    assert history_of(result.path, "individual") == history_of(whole.path, "individual")
    first = [
        line for line in history_of(result.path, "retraining") if line["id"] == result.first_id
    ]
    assert result.first_fitness == np.mean([line["fitness"] for line in first])
    assert result.baseline is not None
    # A finished run is compared later with the same outcome.
    path = continued(whole, tmp_path / "later")
    later = run_search(make(path, config, continues=True), Silent())
    same = {"earlier_tests": ()}
    assert without_place_and_time(later) | same == without_place_and_time(result)


def test_what_was_not_trained_again_is_not_said_to_gain(tmp_path, make):
    config = replace(TINY, {"compare_winner": True, "retrain_best": 0})
    result = run_search(make(tmp_path, config), Silent())
    assert (result.first_id, result.first_fitness) == (None, None)
    assert result.baseline is not None


def test_the_winner_alone_is_that_of_the_whole_run(tmp_path, make, whole):
    winner = find_winner(make(tmp_path), Silent())
    assert (winner.id, winner.genome, winner.fitness) == (
        whole.id,
        whole.genome,
        whole.retrained_fitness,
    )
    assert not Workdir(tmp_path).best_genome.exists()
    assert without_session(tmp_path) == without_session(whole.path)


def test_a_run_whose_time_is_over_ends_with_one_candidate(tmp_path, make):
    reporter = Silent()
    result = run_search(make(tmp_path, time_limit=1e-9), reporter)
    assert any("the time limit is reached" in message for message in reporter.messages)
    (only,) = history_of(tmp_path, "individual")
    assert (result.id, result.candidates) == (only["id"], 1)
    assert run_search(make(tmp_path), Silent()) == result


def test_a_run_begins_with_its_engine_and_an_estimate_and_says_what_has_changed(tmp_path, make):
    reporter = Interrupting(1)
    with pytest.raises(KeyboardInterrupt):
        run_search(make(tmp_path, preset="quick"), reporter)
    engine, estimate = reporter.messages
    assert engine.startswith("engine universal") and estimate.startswith("estimate: ")
    document = json.loads(Workdir(tmp_path).config.read_text())
    assert document["preset"] == "quick" and document["device"]
    document["versions"]["jax"] = "0.1"
    Workdir(tmp_path).config.write_text(json.dumps(document))

    class Second(Silent):
        """Starts the run again while it is running, and then interrupts it."""

        def candidate(self, candidate, strategy) -> None:
            with pytest.raises(FileError, match="another process is using"):
                run_search(make(tmp_path), Silent())
            raise KeyboardInterrupt

    reporter = Second()
    with pytest.raises(KeyboardInterrupt):
        run_search(make(tmp_path), reporter)
    begun, resuming = reporter.messages
    assert begun.startswith("begun with jax 0.1, now ") and "may differ" in begun
    assert resuming == "resuming: 1 candidates are known already"
    os.close(Workdir(tmp_path).lock())  # is free again


def test_other_images_are_refused(make, whole, data):
    other = dataclasses.replace(data, train=data.train.take(np.arange(99)))
    task = dataclasses.replace(make(whole.path), data=other)
    with pytest.raises(FileError, match="the images are not those it began with"):
        run_search(task, Silent())


class Idle:
    """Stands for an evaluator where workers evaluate."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()


@contextlib.contextmanager
def by_workers(number: int, setup: Any):
    """Evaluates in so many workers by the setup's function."""
    evaluator: Any = Idle()
    with Workers(WorkerConfig(workers=number)) as pool:
        yield Dispatcher(evaluator, Trainings(pool, setup)).evaluate_first


@pytest.mark.parametrize(("number", "wait_for"), [(1, {}), (2, {}), (2, {0: 3})])
def test_workers_write_the_same_history_in_whatever_order_they_end(tmp_path, number, wait_for):
    config = replace(SMALL, {"mating_pool": "survivors"})
    winner = explore_and_choose(tmp_path / "whole", config)
    attempts, path = tmp_path / "attempts", tmp_path / "run"
    attempts.mkdir()
    with by_workers(number, faults.TableSetup({}, attempts, wait_for)) as evaluate:
        assert explore_and_choose(path, config, evaluate=evaluate) == winner
    assert history_of(path) == history_of(tmp_path / "whole")
    ended = sorted(attempts.glob("done.*"), key=lambda file: file.stat().st_mtime_ns)
    numbers = [int(file.suffix[1:]) for file in ended]
    assert not wait_for or numbers[:4] != sorted(numbers[:4])


def test_a_candidate_whose_worker_dies_twice_has_failed_and_is_not_reused(tmp_path):
    plan = {2: ("kill", "kill"), 3: ("kill",), 6: ("segfault", "segfault"), 9: ("raise", "exit")}
    with by_workers(1, faults.TableSetup(plan, tmp_path)) as evaluate:
        explore_and_choose(tmp_path / "run", evaluate=evaluate)
    records = {record["id"]: record for record in history_of(tmp_path / "run", "individual")}
    assert "SIGKILL" in records[2]["failure"] and "SIGSEGV" in records[6]["failure"]
    both = "RuntimeError; tried again: its process ended with exit code 3"
    assert records[9]["failure"] == both
    assert all(records[k]["fitness"] is None and records[k]["reused"] is None for k in (2, 6, 9))
    assert records[3]["failure"] in (None, "by the table")
    ledger = open_ledger(tmp_path / "run")
    for k in (2, 6, 9):
        trained = ledger.trained(ledger.candidates[k].individual.genome)
        assert trained is None or trained.id != k
    assert not {2, 6, 9} & {record["reused"] for record in records.values()}
    # P + F * G: each failed one was replaced.
    assert sum(record["fitness"] is not None for record in records.values()) >= 28


def fail_from(first: int, number: int, function: Any) -> Any:
    """The function, of which all calls from the `first` on fail with this `OSError`."""
    calls = itertools.count()

    def wrapped(*args: Any) -> Any:
        if next(calls) >= first:
            raise OSError(number, os.strerror(number))
        return function(*args)

    return wrapped


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_write_that_fails_stops_it_and_it_goes_on_from_there(tmp_path, monkeypatch, number):
    winner = explore_and_choose(tmp_path / "whole")
    expected = history_of(tmp_path / "whole")
    # The first write is that of config.json; then one a line, and one a file of a checkpoint.
    for name, first in (("fsync", 0), ("fsync", 1), ("fsync", 17), ("fsync", len(expected))):
        path = tmp_path / f"{name}{first}"
        with monkeypatch.context() as patch, pytest.raises(OSError, match=os.strerror(number)):
            patch.setattr(os, name, fail_from(first, number, os.fsync))
            patch.setattr(history_file, "_MOMENT", -1.0)  # no line waits for another
            explore_and_choose(path)
        table = Table()
        assert explore_and_choose(path, evaluate=table) == winner
        assert history_of(path) == expected
    # Amid a checkpoint: orbax writes by itself, so what it is given fails.
    path = tmp_path / "checkpoint"
    with monkeypatch.context() as patch, pytest.raises(OSError, match=os.strerror(number)):
        patch.setattr(checkpoints, "_content", fail_from(3, number, checkpoints._content))
        explore_and_choose(path)
    assert explore_and_choose(path) == winner
    assert history_of(path) == expected
