"""A whole search in a folder: its records, its choice, and that an interrupted one ends like an uninterrupted one."""

from __future__ import annotations

import dataclasses
import errno
import functools
import itertools
import json
import os

import faults
import numpy as np
import pytest
from conftest import timeless
from faults import table_fitness

from jaxevo import config as configs
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.run import evaluator as evaluation
from jaxevo.run import finish as final
from jaxevo.run import records, workers
from jaxevo.run import search as searches
from jaxevo.run.evaluator import Evaluation, Evaluator
from jaxevo.run.search import Search, SearchFailedError, Task
from jaxevo.run.workdir import FileError, Workdir
from jaxevo.search_space.genome import Genome, load
from jaxevo.training import engines
from jaxevo.training.classifier import Classifier

CONFIG: SearchConfig = configs.replace(
    SearchConfig(),
    {
        "population_size": 4,
        "num_offspring": 4,
        "num_generations": 6,
        "max_nodes": 3,
        "stagnation_start": 2,
        "stagnation_patience": 2,
        "channels": 2,
        "num_normal_cells": 1,
        "batch_size": 32,
        "final_epochs": 2,
        "final_batch_size": 32,
        "final_learning_rate": 0.01,
        "engine": "universal",
        "retrain_best": 2,
        "retrain_seeds": 2,
    },
)


class Silent:
    """Keeps messages and shows nothing."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def message(self, text: str) -> None:
        self.messages.append(text)

    def candidate(self, record, strategy) -> None: ...

    def training(self, what, done, total, note) -> None: ...


@pytest.fixture
def evaluations(monkeypatch):
    """Replaces training candidates by the table; `limit` interrupts like a signal after so many."""

    class Evaluations:
        count, limit = 0, None

    def evaluate(self, genome, seed, subset):
        if Evaluations.limit is not None and Evaluations.count >= Evaluations.limit:
            raise KeyboardInterrupt
        Evaluations.count += 1
        accuracy = table_fitness(genome, seed)
        if np.isnan(accuracy):
            return Evaluation(None, "by the table", None, {})
        return Evaluation(float(accuracy), None, None, {"train": 1.0})

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    return Evaluations


@pytest.fixture(autouse=True, scope="module")
def one_engine():
    """All searches here share one engine, and so one compilation."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (evaluation, final):
            patch.setattr(module, "make_engine", functools.cache(engines.make_engine))
        yield


@pytest.fixture(scope="module")
def data(digits) -> SearchData:
    return SearchData(
        "digits", digits.train.take(np.arange(100)), digits.validation, digits.class_names
    )


def make(path, data, config: SearchConfig = CONFIG, workers: WorkerConfig | None = None) -> Search:
    path.mkdir(exist_ok=True)
    workdir = Workdir(path)
    workdir.open(config, {"preset": "none", "device": "test"})
    task = Task(config, workdir, data, lambda: data.validation, workers=workers or WorkerConfig())
    return Search(task, Silent())


def without_times(path) -> list[dict]:
    records = [json.loads(line) for line in Workdir(path).history.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


@pytest.fixture
def no_final(monkeypatch):
    """Stops before the final training, which the table does not replace."""
    monkeypatch.setattr(searches, "finish", lambda search, winner, seed: {"id": winner.id})


def test_interrupted_after_any_number_of_trainings_it_comes_to_the_same_end(
    tmp_path, data, evaluations, no_final
):
    whole = make(tmp_path / "whole", data).run()
    total = evaluations.count
    assert total > 20
    expected = without_times(tmp_path / "whole")
    assert {record["kind"] for record in expected} == {"individual", "stagnation", "retraining"}
    for limit in range(1, total, 3):
        path = tmp_path / str(limit)
        evaluations.count, evaluations.limit = 0, limit
        with pytest.raises(KeyboardInterrupt):
            make(path, data).run()
        evaluations.limit = None
        again, messages = make(path, data), []
        again.reporter.message = messages.append
        assert again.run() == whole
        assert not any(
            "is not of this search" in message for message in messages
        )  # its own checkpoints are used
        assert without_times(path) == expected
        assert evaluations.count == total  # nothing was trained twice


@pytest.mark.parametrize("strategy", ["aging", "random", "aco"])
def test_other_strategies_resume_as_well(strategy, tmp_path, data, evaluations, no_final):
    config = configs.replace(CONFIG, {"strategy": strategy, "num_ants": 6, "max_trainings": 15})
    whole = make(tmp_path / "whole", data, config).run()
    total, expected = evaluations.count, without_times(tmp_path / "whole")
    for limit in (3, 8, 16):
        evaluations.count, evaluations.limit = 0, limit
        with pytest.raises(KeyboardInterrupt):
            make(tmp_path / str(limit), data, config).run()
        evaluations.limit = None
        assert make(tmp_path / str(limit), data, config).run() == whole
        assert without_times(tmp_path / str(limit)) == expected
        assert evaluations.count == total
    run = records.load(Workdir(tmp_path / "whole"))
    assert run.searched and run.replay.population
    assert sum(candidate.reused is None for candidate in run.candidates.values()) == 15
    fitness = [
        c.individual.fitness for c in run.candidates.values() if c.individual.fitness is not None
    ]
    assert run.replay.best is not None and run.replay.best.fitness == max(fitness)


def test_a_search_ends_after_so_many_trainings(tmp_path, data, evaluations, no_final):
    config = configs.replace(
        CONFIG, {"max_nodes": 2, "num_generations": 50, "max_trainings": 20, "min_nodes": 1}
    )
    make(tmp_path / "run", data, config).run()
    individuals = [r for r in without_times(tmp_path / "run") if r["kind"] == "individual"]
    reused = [record["reused"] is not None for record in individuals]
    assert reused.count(False) == 20 and any(reused) and not reused[-1]
    assert evaluations.count == 20 + 4  # two of the best, trained twice more
    assert records.load(Workdir(tmp_path / "run")).searched


def test_without_readable_checkpoints_the_history_suffices(tmp_path, data, evaluations, no_final):
    whole = make(tmp_path / "run", data).run()
    expected = without_times(tmp_path / "run")
    for step in (tmp_path / "run" / "checkpoints" / "search").iterdir():
        for file in step.rglob("data.json"):
            file.write_text("{")
    evaluations.count = 0
    again = make(tmp_path / "run", data)
    assert again.run() == whole
    assert evaluations.count == 0
    assert without_times(tmp_path / "run") == expected


def test_a_history_of_other_genomes_is_refused(tmp_path, data, evaluations, no_final):
    make(tmp_path / "run", data).run()
    history = tmp_path / "run" / "history.jsonl"
    lines = history.read_text().splitlines()
    record = json.loads(lines[0])
    record["genome"]["normal"] = record["genome"]["reduction"] = [
        {"inputs": [0, 0], "ops": ["identity", "identity"]}
    ]
    history.write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n")
    for step in (tmp_path / "run" / "checkpoints" / "search").iterdir():
        for file in step.rglob("data.json"):
            file.write_text("{")
    with pytest.raises(FileError, match="another genome for individual 0"):
        make(tmp_path / "run", data).run()


def test_isomorphic_genomes_reuse_a_fitness_and_failures_are_never_reused(
    tmp_path, data, evaluations, no_final
):
    make(tmp_path / "run", data, configs.replace(CONFIG, {"num_generations": 12})).run()
    records = [r for r in without_times(tmp_path / "run") if r["kind"] == "individual"]
    by_id = {record["id"]: record for record in records}
    trained: dict[str, int] = {}
    hits = 0
    for record in records:
        key = Genome.from_dict(record["genome"]).canonical_key()
        if record["reused"] is not None:
            hits += 1
            assert record["reused"] == trained[key]
            assert record["fitness"] == by_id[trained[key]]["fitness"]
        else:
            assert key not in trained
            if record["failure"] is None:
                trained[key] = record["id"]
    assert hits > 0
    assert any(record["failure"] for record in records)


def test_without_reuse_everything_is_trained(tmp_path, data, evaluations, no_final):
    make(tmp_path / "run", data, configs.replace(CONFIG, {"reuse_fitness": False})).run()
    records = [r for r in without_times(tmp_path / "run") if r["kind"] == "individual"]
    assert all(record["reused"] is None for record in records)


def test_the_winner_is_the_best_of_fresh_trainings_not_the_luckiest(
    tmp_path, data, evaluations, no_final
):
    search = make(tmp_path / "run", data)
    winner = search.run()["id"]
    fresh: dict[int, list[float]] = {}
    for record in search.history.of_kind("retraining"):
        fresh.setdefault(record["id"], []).append(record["fitness"])
    assert len(fresh) == 2 and all(len(values) == 2 for values in fresh.values())
    assert winner == max(fresh, key=lambda id_: np.mean(fresh[id_]))
    fitness = sorted(
        (r["fitness"] for r in search.recorded.values() if r["reused"] is None and r["fitness"]),
        reverse=True,
    )
    assert sorted((search.recorded[id_]["fitness"] for id_ in fresh), reverse=True) == fitness[:2]


def test_failures_in_a_row_end_the_search_with_the_last_reason(tmp_path, data, monkeypatch):
    failed = Evaluation(None, "out of memory", None, {})
    monkeypatch.setattr(Evaluator, "evaluate", lambda *_: failed)
    with pytest.raises(
        SearchFailedError, match="3 candidates in a row failed, the last with: out of memory"
    ):
        make(tmp_path / "run", data, configs.replace(CONFIG, {"max_consecutive_failures": 3})).run()
    assert len(without_times(tmp_path / "run")) == 3


def test_final_training_resumes_and_the_saved_network_is_the_one_reported(
    tmp_path, data, evaluations, monkeypatch
):
    """With real final trainings: one whole, one interrupted after its first epoch."""
    whole = make(tmp_path / "whole", data).run()
    save = searches.checkpoint.Checkpoints.save

    def interrupt_after_first(self, step, *args):
        save(self, step, *args)
        if self.folder.name == "final":
            raise KeyboardInterrupt

    monkeypatch.setattr(searches.checkpoint.Checkpoints, "save", interrupt_after_first)
    with pytest.raises(KeyboardInterrupt):
        make(tmp_path / "cut", data).run()
    monkeypatch.setattr(searches.checkpoint.Checkpoints, "save", save)
    resumed = make(tmp_path / "cut", data).run()
    assert timeless(whole) == timeless(resumed)
    genome, metadata = load(tmp_path / "cut" / "best.json")
    assert (tmp_path / "cut" / "best.json").read_text() == (
        tmp_path / "whole" / "best.json"
    ).read_text()
    assert (
        metadata["test_accuracy"] == whole["test_accuracy"] == whole["validation_accuracy"]
    )  # the same images here
    classifier = Classifier.load(tmp_path / "cut" / "best")
    assert classifier.model == genome
    assert classifier.accuracy(data.validation) == whole["test_accuracy"]
    assert whole["test_interval"][0] <= whole["test_accuracy"] <= whole["test_interval"][1]
    assert json.loads((tmp_path / "cut" / "result.json").read_text())["id"] == whole["id"]


def test_the_test_images_are_loaded_once_when_the_final_weights_are_saved(
    tmp_path, data, evaluations
):
    search, saved = make(tmp_path / "run", data), []
    workdir = search.task.workdir

    def load_test() -> Images:
        saved.append((workdir.best_weights.is_dir(), workdir.result.exists()))
        return data.validation

    search.task = dataclasses.replace(search.task, load_test=load_test)
    search.run()
    assert saved == [(True, False)]


def test_workers_write_the_same_history_in_whatever_order_they_end(
    tmp_path, data, evaluations, no_final, monkeypatch
):
    config = configs.replace(CONFIG, {"mating_pool": "survivors"})
    whole = make(tmp_path / "whole", data, config).run()
    for number, wait_for in ((1, {}), (2, {}), (2, {0: 3})):
        attempts = tmp_path / f"attempts{number}{len(wait_for)}"
        attempts.mkdir()
        build = functools.partial(faults.build_table, {}, attempts, wait_for)
        monkeypatch.setattr(workers, "build_evaluate", build)
        path = tmp_path / f"run{number}{len(wait_for)}"
        assert make(path, data, config, WorkerConfig(workers=number)).run() == whole
        assert without_times(path) == without_times(tmp_path / "whole")
        ended = sorted(attempts.glob("done.*"), key=lambda file: file.stat().st_mtime_ns)
        numbers = [int(file.suffix[1:]) for file in ended]
        assert not wait_for or numbers[:4] != sorted(numbers[:4])


def test_a_candidate_whose_worker_dies_twice_has_failed_and_is_not_remembered(
    tmp_path, data, no_final, monkeypatch
):
    plan = {2: ("kill", "kill"), 3: ("kill",), 6: ("segfault", "segfault"), 9: ("raise", "exit")}
    monkeypatch.setattr(
        workers, "build_evaluate", functools.partial(faults.build_table, plan, tmp_path, {})
    )
    search = make(tmp_path / "run", data, CONFIG, WorkerConfig(workers=1))
    search.run()
    records = {r["id"]: r for r in without_times(tmp_path / "run") if r["kind"] == "individual"}
    assert "SIGKILL" in records[2]["failure"] and "SIGSEGV" in records[6]["failure"]
    assert records[9]["failure"] == "RuntimeError; tried again: its process ended with exit code 3"
    assert all(records[k]["fitness"] is None and records[k]["reused"] is None for k in (2, 6, 9))
    assert records[3]["failure"] in (None, "by the table")
    assert not {2, 6, 9} & set(search.memo.values())
    assert (
        sum(r["fitness"] is not None for r in records.values()) >= 28
    )  # P + F * G: each failed one was replaced


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_write_that_fails_stops_it_and_it_goes_on_from_there(
    tmp_path, data, evaluations, no_final, monkeypatch, number
):
    whole = make(tmp_path / "whole", data).run()
    expected = without_times(tmp_path / "whole")
    fsync, content, calls = os.fsync, searches.checkpoint._content, itertools.count()

    def fail_from(first: int, function):
        def wrapped(*args):
            if next(calls) >= first:
                raise OSError(number, os.strerror(number))
            return function(*args)

        return wrapped

    for name, first in (
        ("fsync", 0),
        ("fsync", 1),
        ("fsync", 17),
        ("fsync", len(expected)),
        ("content", 3),
    ):
        calls, path = itertools.count(), tmp_path / f"{name}{first}"
        with monkeypatch.context() as patch, pytest.raises(OSError, match=os.strerror(number)):
            if name == "fsync":
                patch.setattr(os, "fsync", fail_from(first, fsync))
            else:
                patch.setattr(searches.checkpoint, "_content", fail_from(first, content))
            make(path, data).run()
        assert make(path, data).run() == whole
        assert without_times(path) == expected


def test_a_generation_that_learns_nothing_is_pointed_out(tmp_path, data, no_final, monkeypatch):
    labels = data.validation.labels
    commonest = np.bincount(labels).max() / len(labels)

    def evaluate(self, genome, seed, subset):
        return Evaluation(commonest if seed[2] < 8 else 0.5, None, None, {})

    monkeypatch.setattr(Evaluator, "evaluate", evaluate)
    search = make(tmp_path / "run", data)
    search.run()
    told = [message for message in search.reporter.messages if "commonest class" in message]
    assert [message.split(":")[0] for message in told] == ["generation 0", "generation 1"]
    assert "learning_rate" in told[0] and "labels" in told[0] and "0 to 255" in told[0]
