"""A whole search in a folder: its records, its choice, and that an interrupted one ends like an uninterrupted one."""

from __future__ import annotations

import functools
import hashlib
import json

import numpy as np
import pytest

from jaxevo import config as configs
from jaxevo import evaluation
from jaxevo import search as searches
from jaxevo.config import SearchConfig
from jaxevo.datasets import SearchData
from jaxevo.evaluation import Evaluation, Evaluator
from jaxevo.genome import Genome, load
from jaxevo.search import Search, SearchFailedError, Task
from jaxevo.workdir import Workdir, WorkdirError

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


def table_fitness(genome: Genome, seed: tuple[int, ...]) -> float:
    """As if trained: decided by genome and seed, between 0 and 1; every eighth fails."""
    digest = hashlib.sha256(f"{genome.canonical_key()} {seed}".encode()).digest()
    return np.nan if digest[0] < 32 else digest[1] / 256


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
        patch.setattr(evaluation, "make_engine", functools.cache(evaluation.make_engine))
        yield


@pytest.fixture(scope="module")
def data(digits) -> SearchData:
    return SearchData("digits", digits.train.take(np.arange(100)), digits.validation, digits.class_names)


def make(path, data, config: SearchConfig = CONFIG) -> Search:
    path.mkdir(exist_ok=True)
    workdir = Workdir(path)
    workdir.open(config, {"preset": "none", "device": "test"})
    return Search(Task(config, workdir, data, lambda: data.validation), Silent())


def without_times(path) -> list[dict]:
    records = [json.loads(line) for line in Workdir(path).history.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "seconds"} for record in records]


@pytest.fixture
def no_final(monkeypatch):
    """Stops before the final training, which the table does not replace."""
    monkeypatch.setattr(Search, "_train_final", lambda self, winner: (None, 0.0))
    monkeypatch.setattr(Search, "_conclude", lambda self, winner, state, seconds: {"id": winner.id})


def test_interrupted_after_any_number_of_trainings_it_comes_to_the_same_end(tmp_path, data, evaluations, no_final):
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
        assert not any("is not of this search" in message for message in messages)  # its own checkpoints are used
        assert without_times(path) == expected
        assert evaluations.count == total  # nothing was trained twice


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
    record["genome"]["normal"] = record["genome"]["reduction"] = [{"inputs": [0, 0], "ops": ["identity", "identity"]}]
    history.write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n")
    for step in (tmp_path / "run" / "checkpoints" / "search").iterdir():
        for file in step.rglob("data.json"):
            file.write_text("{")
    with pytest.raises(WorkdirError, match="another genome for individual 0"):
        make(tmp_path / "run", data).run()


def test_isomorphic_genomes_reuse_a_fitness_and_failures_are_never_reused(tmp_path, data, evaluations, no_final):
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


def test_the_winner_is_the_best_of_fresh_trainings_not_the_luckiest(tmp_path, data, evaluations, no_final):
    search = make(tmp_path / "run", data)
    winner = search.run()["id"]
    fresh: dict[int, list[float]] = {}
    for record in search.history.of_kind("retraining"):
        fresh.setdefault(record["id"], []).append(record["fitness"])
    assert len(fresh) == 2 and all(len(values) == 2 for values in fresh.values())
    assert winner == max(fresh, key=lambda id_: np.mean(fresh[id_]))
    fitness = sorted(
        (r["fitness"] for r in search.recorded.values() if r["reused"] is None and r["fitness"]), reverse=True
    )
    assert sorted((search.recorded[id_]["fitness"] for id_ in fresh), reverse=True) == fitness[:2]


def test_failures_in_a_row_end_the_search_with_the_last_reason(tmp_path, data, monkeypatch):
    failed = Evaluation(None, "out of memory", None, {})
    monkeypatch.setattr(Evaluator, "evaluate", lambda *_: failed)
    with pytest.raises(SearchFailedError, match="3 candidates in a row failed, the last with: out of memory"):
        make(tmp_path / "run", data, configs.replace(CONFIG, {"max_consecutive_failures": 3})).run()
    assert len(without_times(tmp_path / "run")) == 3


def test_final_training_resumes_and_the_saved_network_is_the_one_reported(tmp_path, data, evaluations, monkeypatch):
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
    timeless = [{key: value for key, value in r.items() if not key.endswith("seconds")} for r in (whole, resumed)]
    assert timeless[0] == timeless[1]
    genome, metadata = load(tmp_path / "cut" / "best.json")
    assert (tmp_path / "cut" / "best.json").read_text() == (tmp_path / "whole" / "best.json").read_text()
    assert metadata["test_accuracy"] == whole["test_accuracy"] == whole["validation_accuracy"]  # the same images here
    classifier = searches.Classifier.load(tmp_path / "cut" / "best")
    assert classifier.genome == genome
    assert classifier.accuracy(data.validation) == whole["test_accuracy"]
    assert whole["test_interval"][0] <= whole["test_accuracy"] <= whole["test_interval"][1]
    assert json.loads((tmp_path / "cut" / "result.json").read_text())["id"] == whole["id"]


def test_the_test_images_are_loaded_only_at_the_end(tmp_path, data, evaluations, monkeypatch):
    asked = []
    search = make(tmp_path / "run", data)
    task = Task(CONFIG, search.task.workdir, data, lambda: asked.append(len(search.history.records)) or data.validation)
    search.task = task
    monkeypatch.setattr(Search, "_train_final", lambda self, winner: asked.append("final") or (None, 0.0))
    monkeypatch.setattr(Search, "_conclude", lambda self, winner, state, seconds: asked.append("conclude"))
    search.run()
    assert asked == ["final", "conclude"]
