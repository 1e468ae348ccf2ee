"""Worker processes: whatever ends one costs its job a retry, and no other one anything."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import subprocess
import sys

import faults
import numpy as np
import psutil
import pytest
from builders import table_fitness
from conftest import REPOSITORY, random_genomes

from jaxevo import config as configs
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.errors import InputError
from jaxevo.run.pool import Job, Outcome, Shared, WorkerError
from jaxevo.run.workers import Workers

GENOMES = random_genomes(6, max_nodes=3, seed=5)
SEEDS = [(0, 0, k) for k in range(6)]


def expected(k: int) -> float | None:
    accuracy = table_fitness(GENOMES[k], SEEDS[k])
    return None if np.isnan(accuracy) else accuracy


def accuracy(outcome: Outcome) -> float | None:
    return outcome.value["accuracy"] if outcome.value is not None else None


def candidate(setup: faults.TableSetup, k: int) -> Job:
    return Job(SEEDS[k], setup, (GENOMES[k], SEEDS[k]))


def evaluate_all(attempts, plan: faults.Plan, **limits) -> list[Outcome]:
    """All outcomes by the table, in order of their candidates."""
    setup = faults.TableSetup(plan, attempts)
    config = WorkerConfig(**{"workers": 2, "candidate_timeout": 300.0} | limits)
    with Workers(config) as workers:
        for k in range(6):
            workers.submit(candidate(setup, k))
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
def test_what_ends_a_worker_costs_its_job_a_retry_and_then_only_that_one(tmp_path, fault, reason):
    outcomes = evaluate_all(tmp_path, {1: (fault,), 3: (fault, fault)})
    assert list(map(accuracy, outcomes)) == [expected(k) if k != 3 else None for k in range(6)]
    assert outcomes[3].failure == reason
    assert [attempts_at(tmp_path, k) for k in range(6)] == [1, 2, 1, 2, 1, 1]
    assert [outcome.attempt for outcome in outcomes] == [1, 2, 1, 2, 1, 1]


@pytest.mark.parametrize("fault", ["hang", "stop"])
def test_a_worker_that_hangs_is_ended_when_its_time_is_over(tmp_path, fault):
    outcomes = evaluate_all(tmp_path, {3: (fault, fault)}, candidate_timeout=0.5)
    assert list(map(accuracy, outcomes)) == [expected(k) if k != 3 else None for k in range(6)]
    assert outcomes[3].failure == "it took longer than --candidate_timeout=0.5, twice"
    assert outcomes[3].seconds >= 1


def test_memory_beyond_the_limit_is_refused_to_the_worker(tmp_path):
    outcomes = evaluate_all(tmp_path, {2: ("allocate", "allocate")}, worker_memory_limit=2000)
    assert list(map(accuracy, outcomes)) == [expected(k) if k != 2 else None for k in range(6)]
    assert outcomes[2].failure == "MemoryError"
    assert outcomes[2].details == "Traceback"


def test_both_ways_of_failing_are_told(tmp_path):
    outcomes = evaluate_all(tmp_path, {0: ("exit", "segfault")})
    assert (
        outcomes[0].failure
        == "its process ended with exit code 3; tried again: its process ended by SIGSEGV"
    )


def running() -> list:
    return [
        process for process in multiprocessing.active_children() if process.name == "jaxevo worker"
    ]


def test_workers_are_replaced_after_so_many_jobs_and_leave_nothing(tmp_path):
    setup = faults.TableSetup({}, tmp_path)
    seen = set()
    with Workers(WorkerConfig(workers=1, candidates_per_worker=2)) as workers:
        for k in range(6):
            workers.submit(candidate(setup, k))
            seen |= {process.pid for process in running()}
            workers.result(SEEDS[k])
        assert len(seen) == 3
    assert running() == []


def kill_the_one_running() -> None:
    (process,) = running()
    process.kill()
    process.join()


def test_an_idle_or_starting_worker_may_be_killed(tmp_path):
    setup = faults.TableSetup({}, tmp_path)
    with Workers(WorkerConfig(workers=1)) as workers:
        for k in range(4):  # killed while starting, idle, starting, idle
            workers.submit(candidate(setup, k))
            if k % 2 == 0:
                kill_the_one_running()
            assert accuracy(workers.result(SEEDS[k])) == expected(k)
            if k % 2 == 1:
                kill_the_one_running()


def test_a_killed_search_takes_a_hanging_worker_along(tmp_path):
    script = f"""
import pathlib
import faults
from conftest import random_genomes
from jaxevo.config import WorkerConfig
from jaxevo.run.pool import Job
from jaxevo.run.workers import Workers
setup = faults.TableSetup({{0: ("hang",)}}, pathlib.Path({str(tmp_path)!r}))
with Workers(WorkerConfig(workers=1)) as workers:
    workers.submit(Job(0, setup, (random_genomes(1)[0], (0, 0, 0))))
    workers.result(0)
"""
    search = subprocess.Popen([sys.executable, "-c", script], cwd=REPOSITORY / "tests")
    while attempts_at(tmp_path, 0) == 0:
        assert search.poll() is None
    children = psutil.Process(search.pid).children()
    search.kill()
    search.wait()
    assert psutil.wait_procs(children, timeout=60)[1] == []


def test_workers_that_do_not_start_end_the_search():
    with Workers(WorkerConfig(workers=2)) as workers:
        workers.submit(Job(0, faults.DeadSetup(), ()))
        with pytest.raises(
            WorkerError, match="3 workers in a row .* exit code 7.*worker_memory_limit"
        ):
            workers.result(0)


@dataclasses.dataclass(frozen=True)
class Adding:
    """Adds to a sum of shared numbers; tells in which process, and which sum was made there."""

    numbers: Shared

    def build(self):
        total = int(self.numbers.load()["numbers"].sum())
        made = object()
        return lambda number: {"sum": total + number, "process": os.getpid(), "made": id(made)}


def test_arrays_are_shared_and_a_worker_builds_a_setup_once_and_changes_to_another():
    with Workers(WorkerConfig(workers=1)) as workers:
        low, high = (Adding(workers.share({"numbers": np.arange(n)})) for n in (3, 5))
        for key, setup in enumerate((low, low, high, high, low)):
            workers.submit(Job(key, setup, (key,)))
        values = [workers.result(key).value for key in range(5)]
    assert [value["sum"] for value in values] == [3, 4, 12, 13, 7]
    assert len({value["process"] for value in values}) == 1
    assert values[0]["made"] == values[1]["made"] and values[2]["made"] == values[3]["made"]


def test_jobs_that_have_not_begun_can_be_withdrawn(tmp_path):
    setup = faults.TableSetup({}, tmp_path)
    with Workers(WorkerConfig(workers=1)) as workers:
        for k in range(3):  # the worker is still starting
            workers.submit(candidate(setup, k))
        workers.withdraw()
        with pytest.raises(KeyError):
            workers.result(SEEDS[0])
        workers.submit(candidate(setup, 2))
        assert accuracy(workers.result(SEEDS[2])) == expected(2)
    assert [attempts_at(tmp_path, k) for k in range(3)] == [0, 0, 1]


def test_the_same_key_twice_is_one_job_until_its_result_is_taken(tmp_path):
    setup = faults.TableSetup({}, tmp_path)
    with Workers(WorkerConfig(workers=1)) as workers:
        for _ in range(3):
            workers.submit(candidate(setup, 0))
        workers.submit(candidate(setup, 1))
        workers.result(SEEDS[1])
        workers.submit(candidate(setup, 0))
        workers.result(SEEDS[0])
        assert attempts_at(tmp_path, 0) == 1
        with pytest.raises(KeyError):
            workers.result(SEEDS[0])
        workers.submit(candidate(setup, 0))
        workers.result(SEEDS[0])
        assert attempts_at(tmp_path, 0) == 2


def test_the_first_of_several_jobs_that_is_done_is_named(tmp_path):
    setup = faults.TableSetup({0: ("hang",)}, tmp_path)
    with Workers(WorkerConfig(workers=2)) as workers:
        for k in range(2):
            workers.submit(candidate(setup, k))
        assert workers.first(SEEDS[:2]) == SEEDS[1]
        assert accuracy(workers.result(SEEDS[1])) == expected(1)
        for keys in (SEEDS[:2], ()):  # of which one was taken, none
            with pytest.raises(KeyError):
                workers.first(keys)


def test_an_exception_is_told_in_a_line_with_its_traceback():
    with Workers(WorkerConfig(workers=1)) as workers:
        numbers = workers.share({"numbers": np.arange(2)})
        workers.submit(Job("text", Adding(numbers), ("one",)))
        outcome = workers.result("text")
    assert outcome.value is None and outcome.attempt == 2
    assert outcome.failure.startswith("TypeError: unsupported operand")
    assert outcome.details.startswith("Traceback")


def test_members_tell_where_they_are_and_what_they_are_at(tmp_path):
    setup = faults.TableSetup({0: ("hang",)}, tmp_path)
    with Workers(WorkerConfig(workers=2)) as workers:
        assert workers.members() == []
        for k in range(2):
            workers.submit(candidate(setup, k))
        where = workers.result(SEEDS[1]).where
        members = {member.where: member.key for member in workers.members()}
        assert len(members) == 2
        assert members[where] is None
        assert {key for other, key in members.items() if other != where} <= {None, SEEDS[0]}
        assert where.rsplit("/", 1)[1] in {str(process.pid) for process in running()}


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
