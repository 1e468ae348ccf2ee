"""Worker processes: whatever ends one costs its candidate a retry, and no other one anything."""

from __future__ import annotations

import functools
import multiprocessing
import subprocess
import sys

import faults
import numpy as np
import psutil
import pytest
from builders import SMALL, table_fitness
from conftest import REPOSITORY, random_genomes

from jaxevo import config as configs
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import SearchData
from jaxevo.errors import InputError
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluator, class_weights
from jaxevo.run.workers import Setup, WorkerError, Workers, start_workers
from jaxevo.training.data import TrainingData

GENOMES = random_genomes(6, max_nodes=3, seed=5)
SEEDS = [(0, 0, k) for k in range(6)]
NOTHING = Setup(SearchConfig(), 10, "", None)


def expected(k: int) -> float | None:
    accuracy = table_fitness(GENOMES[k], SEEDS[k])
    return None if np.isnan(accuracy) else accuracy


def evaluate_all(attempts, plan: faults.Plan, **limits):
    """All evaluations by the table, in order of their candidates."""
    build = functools.partial(faults.build_table, plan, attempts, {})
    with Workers(
        WorkerConfig(**{"workers": 2, "candidate_timeout": 300.0} | limits), NOTHING, build
    ) as workers:
        for genome, seed in zip(GENOMES, SEEDS, strict=True):
            workers.submit(genome, seed)
        return [workers.result(seed) for seed in SEEDS]


def attempts_at(attempts, k: int) -> int:
    return len(list(attempts.glob(f"0-0-{k}.*")))


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("segfault", "its process ended by SIGSEGV, twice"),
        ("kill", "its process ended by SIGKILL (by the kernel, if memory ran out), twice"),
        ("abort", "its process ended by SIGABRT, twice"),
        ("exit", "its process ended with exit code 3, twice"),
        ("raise", "RuntimeError"),
    ],
)
def test_what_ends_a_worker_costs_its_candidate_a_retry_and_then_only_that_one(
    tmp_path, fault, reason
):
    evaluations = evaluate_all(tmp_path, {1: (fault,), 3: (fault, fault)})
    assert [evaluation.accuracy for evaluation in evaluations] == [
        expected(k) if k != 3 else None for k in range(6)
    ]
    assert evaluations[3].failure == reason
    assert [attempts_at(tmp_path, k) for k in range(6)] == [1, 2, 1, 2, 1, 1]


@pytest.mark.parametrize("fault", ["hang", "stop"])
def test_a_worker_that_hangs_is_ended_when_its_time_is_over(tmp_path, fault):
    evaluations = evaluate_all(tmp_path, {3: (fault, fault)}, candidate_timeout=0.5)
    assert [evaluation.accuracy for evaluation in evaluations] == [
        expected(k) if k != 3 else None for k in range(6)
    ]
    assert evaluations[3].failure == "it took longer than --candidate_timeout=0.5, twice"
    assert evaluations[3].seconds["train"] >= 1


def test_memory_beyond_the_limit_is_refused_to_the_worker(tmp_path):
    evaluations = evaluate_all(tmp_path, {2: ("allocate", "allocate")}, worker_memory_limit=2000)
    assert [evaluation.accuracy for evaluation in evaluations] == [
        expected(k) if k != 2 else None for k in range(6)
    ]
    assert evaluations[2].failure == "MemoryError"


def test_both_ways_of_failing_are_told(tmp_path):
    evaluations = evaluate_all(tmp_path, {0: ("exit", "segfault")})
    assert (
        evaluations[0].failure
        == "its process ended with exit code 3; tried again: its process ended by SIGSEGV"
    )


def running() -> list:
    return [
        process for process in multiprocessing.active_children() if process.name == "jaxevo worker"
    ]


def test_workers_are_replaced_after_so_many_candidates_and_leave_nothing(tmp_path):
    build = functools.partial(faults.build_table, {}, tmp_path, {})
    limits = WorkerConfig(workers=1, candidates_per_worker=2)
    seen = set()
    with Workers(limits, NOTHING, build) as workers:
        for genome, seed in zip(GENOMES, SEEDS, strict=True):
            workers.submit(genome, seed)
            seen |= {process.pid for process in running()}
            workers.result(seed)
        assert len(seen) == 3
    assert running() == []


def kill_the_one_running() -> None:
    (process,) = running()
    process.kill()
    process.join()


def test_an_idle_or_starting_worker_may_be_killed(tmp_path):
    build = functools.partial(faults.build_table, {}, tmp_path, {})
    with Workers(WorkerConfig(workers=1), NOTHING, build) as workers:
        for k in range(4):  # killed while starting, idle, starting, idle
            workers.submit(GENOMES[k], SEEDS[k])
            if k % 2 == 0:
                kill_the_one_running()
            assert workers.result(SEEDS[k]).accuracy == expected(k)
            if k % 2 == 1:
                kill_the_one_running()


def test_a_killed_search_takes_a_hanging_worker_along(tmp_path):
    script = f"""
import functools, pathlib
import faults
from conftest import random_genomes
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.run.workers import Setup, Workers
attempts = pathlib.Path({str(tmp_path)!r})
build = functools.partial(faults.build_table, {{0: ("hang",)}}, attempts, {{}})
with Workers(WorkerConfig(workers=1), Setup(SearchConfig(), 10, "", None), build) as workers:
    workers.submit(random_genomes(1)[0], (0, 0, 0))
    workers.result((0, 0, 0))
"""
    search = subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY / "tests")
    while attempts_at(tmp_path, 0) == 0:
        assert search.poll() is None
    children = psutil.Process(search.pid).children()
    search.kill()
    search.wait()
    assert psutil.wait_procs(children, timeout=60)[1] == []


def test_workers_that_do_not_start_end_the_search():
    with Workers(WorkerConfig(workers=2), NOTHING, faults.build_dead) as workers:
        workers.submit(GENOMES[0], SEEDS[0])
        with pytest.raises(
            WorkerError, match="3 workers in a row .* exit code 7.*worker_memory_limit"
        ):
            workers.result(SEEDS[0])


def test_it_trains_as_this_process_does(digits):
    settings = {"class_weights": "balanced", "epochs": 2, "learning_rate": 0.01}
    config = configs.replace(SMALL, settings)
    train, subset = digits.train.take(np.arange(100)), np.arange(90)
    data = SearchData("digits", train, digits.validation, digits.class_names)
    builder = NetworkBuilder(config.network, data.image_shape, data.num_classes)
    by_class = class_weights(config, train.labels, 10)
    data_here = TrainingData.of(train, subset, by_class)
    here = Evaluator(config, builder, data_here, validation=data.validation)
    with start_workers(WorkerConfig(workers=1), config, data, subset=subset) as workers:
        for genome, seed in zip(GENOMES[:3], SEEDS, strict=False):
            workers.submit(genome, seed)
            assert workers.result(seed).accuracy == here.evaluate(genome, seed).accuracy


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workers": -1}, "workers=-1"),
        ({"candidate_timeout": 5.0}, "candidate_timeout=5.0 .*--workers=1"),
        ({"worker_memory_limit": 500}, "worker_memory_limit=500 .*--workers=1"),
        ({"workers": 1, "candidates_per_worker": 0}, "candidates_per_worker=0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values, words):
    with pytest.raises(InputError, match=words):
        WorkerConfig(**values)


def test_workers_and_several_candidates_a_step_exclude_each_other():
    config = configs.replace(SearchConfig(), {"candidates_per_step": 2, "mating_pool": "survivors"})
    WorkerConfig().check(config)
    with pytest.raises(InputError, match="workers=2 .*candidates_per_step=2"):
        WorkerConfig(workers=2).check(config)
