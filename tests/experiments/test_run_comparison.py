"""A comparison by this process and by workers: the same tables, without the searches that fail."""

from __future__ import annotations

import dataclasses
import io
import json
import multiprocessing
import pathlib
import signal

import faults
import pytest
from conftest import timeless
from rich.console import Console

from jaxevo.config import SearchConfig, WorkerConfig, replace
from jaxevo.datasets import open_dataset
from jaxevo.errors import InputError
from jaxevo.experiments.comparison import (
    Comparison,
    SearchSetup,
    check_alike,
    run_comparison,
    write_comparison,
)
from jaxevo.experiments.parts import make_parts, shared_place
from jaxevo.run.configuration import make_config
from jaxevo.run.history import read_lines
from jaxevo.run.pool import Function, Job
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.search import run_search
from jaxevo.run.workdir import Workdir

TINY = {
    **{"population_size": 2, "num_offspring": 2, "max_nodes": 3, "num_ants": 2},
    **{"channels": 2, "num_normal_cells": 1, "epochs": 1, "batch_size": 32, "retrain_best": 0},
    **{"train_examples": 300, "final_epochs": 1, "final_batch_size": 32},
}
TWO = WorkerConfig(workers=2)
DIVERGING = {"learning_rate": 1e38, "max_consecutive_failures": 2}


def config(strategy: str, **settings: float) -> SearchConfig:
    named = {"preset": "quick", "strategy": strategy, "recipe": "paper"}
    made = make_config("digits", open_dataset("digits").divided(), **named, settings=TINY)
    return replace(made, settings)


def comparison(path: pathlib.Path, configs: dict[str, SearchConfig], seeds: int) -> Comparison:
    return Comparison(configs=configs, preset="quick", seeds=seeds, trainings=3, path=path)


def test_searches_of_a_seed_follow_each_other_with_the_same_budget(tmp_path: pathlib.Path):
    configs = {name: config(name) for name in ("rea", "random")}
    searches = comparison(tmp_path, configs, seeds=2).searches()
    order = [(name, each.seed) for name, each in searches]
    assert order == [("rea", 0), ("random", 0), ("rea", 1), ("random", 1)]
    assert {each.max_trainings for _, each in searches} == {3}
    # Generations enough, should nearly all candidates be isomorphic to earlier ones.
    assert {each.evolution.num_generations for _, each in searches} == {60}


def test_a_search_that_fails_is_left_out(tmp_path: pathlib.Path):
    said = io.StringIO()
    console = Console(file=said, width=400)
    configs = {"aco": config("aco", **DIVERGING), "rea_no_crossover": config("rea_no_crossover")}
    plan = comparison(tmp_path, configs, seeds=1)
    outcomes, failures = run_comparison(plan, console)
    text = write_comparison(plan, outcomes, failures)
    path = tmp_path / "aco-seed0"
    (failure,) = failures
    assert failure.reason.startswith(f"{path}: 2 candidates in a row failed")
    assert f"failed: {failure.reason}\nsearch 2 of 2" in said.getvalue()
    # The outcome is that of the run in its folder.
    (outcome,) = outcomes
    result = load_run(Workdir(tmp_path / "rea_no_crossover-seed0")).result
    assert result is not None
    assert (outcome.strategy, outcome.test) == ("rea_no_crossover", result.test_accuracy)
    assert (outcome.trainings, len(outcome.curve)) == (3, 3)
    # The tables name it and what failed.
    lines = (tmp_path / "comparison.md").read_text().splitlines()
    assert lines == text.splitlines()
    assert any(line.startswith("| rea_no_crossover | 1 | ") for line in lines)
    assert "| aco | 0, 1 failed | - | - | - | - | - | - |" in lines
    assert f"aco, seed 0, is left out, as it failed: {failure.reason}." in lines
    settings = json.loads((tmp_path / "comparison.json").read_text())["settings"]
    used = {name: (own["strategy"], own["crossover"]) for name, own in settings.items()}
    assert used == {"aco": ("aco", True), "rea_no_crossover": ("rea", False)}
    for name in ("best_so_far", "parameters"):
        for suffix in ("svg", "png"):
            assert (tmp_path / f"{name}.{suffix}").stat().st_size > 1000
    # Once more: what is complete is read back; what failed goes on, to a third failure, its last.
    again, failed = run_comparison(plan, console)
    assert again == outcomes
    assert "the search has ended and all of its candidates failed" in failed[0].reason
    with pytest.raises(InputError, match="every search failed; the last, .*the search has ended"):
        run_comparison(comparison(tmp_path, {"aco": configs["aco"]}, seeds=1), console)


def made(plan: Comparison, limits: WorkerConfig) -> tuple[str, str]:
    """Makes a comparison; returns its table as CSV, and what was said."""
    said = io.StringIO()
    outcomes, failures = run_comparison(plan, Console(file=said, width=400), limits)
    write_comparison(plan, outcomes, failures)
    return (plan.path / "comparison.csv").read_text(), said.getvalue()


def histories(plan: Comparison) -> dict[str, list[dict]]:
    """The lines of each search's history."""
    return {
        path.parent.name: [timeless(line) for line in read_lines(path)[0]]
        for path in plan.path.glob("*/history.jsonl")
    }


def three(path: pathlib.Path) -> Comparison:
    configs = {"random": config("random"), "aco": config("aco", **DIVERGING), "rea": config("rea")}
    return comparison(path, configs, seeds=1)


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    plan = three(tmp_path_factory.mktemp("serial"))
    made(plan, WorkerConfig())
    return plan


def test_workers_make_the_same_tables(tmp_path: pathlib.Path, serial: Comparison):
    plan = three(tmp_path)
    table, said = made(plan, TWO)
    assert table == (serial.path / "comparison.csv").read_text()
    # The search that failed was not tried again after the workers.
    assert histories(plan) == histories(serial)
    failed = json.loads((tmp_path / "comparison.json").read_text())["failures"]
    before = json.loads((serial.path / "comparison.json").read_text())["failures"]
    assert [each["reason"].replace(str(serial.path), str(tmp_path)) for each in before] == [
        each["reason"] for each in failed
    ]
    lines = said.splitlines()
    assert {line.split(": ")[0] for line in lines[:3]} == {
        str(tmp_path / f"{name}-seed0") for name in plan.configs
    }
    assert lines[2].endswith("; 0 to go") and lines[3].startswith("search 1 of 3")
    # What is complete is not given to workers again.
    complete = {name: plan.configs[name] for name in ("random", "rea")}
    _, said = made(comparison(tmp_path, complete, seeds=1), TWO)
    assert said.startswith("search 1 of 2")


@dataclasses.dataclass(frozen=True)
class FaultySearches(SearchSetup):
    """Searches of which some trainings meet a fault."""

    plan: faults.Plan
    attempts: pathlib.Path

    def build(self) -> Function:
        faults.patch_evaluator(self.plan, self.attempts)
        return super().build()


def make_with_fault(plan: Comparison, fault: str, attempts: pathlib.Path) -> dict:
    """Has workers make the search of rea, of which the third training meets a fault."""
    with shared_place(plan.path, TWO) as place:
        setup = FaultySearches(plan, place, {2: (fault,)}, attempts)
        named = dict(plan.searches())
        return make_parts([Job("rea", setup, ("rea", named["rea"]))], TWO, say=print)


def attempts_at(attempts: pathlib.Path) -> list[int]:
    """Trainings of each candidate that were begun."""
    return [len(list(attempts.glob(f"0-0-{k}.*"))) for k in range(3)]


def test_a_killed_worker_loses_but_the_training_at_hand(tmp_path: pathlib.Path, serial: Comparison):
    plan = three(tmp_path / "run")
    assert make_with_fault(plan, "kill", tmp_path) == {}
    assert attempts_at(tmp_path) == [1, 1, 2]
    assert histories(plan)["rea-seed0"] == histories(serial)["rea-seed0"]


def test_a_comparison_whose_driver_was_killed_goes_on(tmp_path: pathlib.Path, serial: Comparison):
    plan = three(tmp_path / "run")
    spawn = multiprocessing.get_context("spawn")
    driver = spawn.Process(target=make_with_fault, args=(plan, "orphan", tmp_path))
    driver.start()
    driver.join()
    assert driver.exitcode == -signal.SIGKILL and attempts_at(tmp_path) == [1, 1, 1]
    history = Workdir(plan.path / "rea-seed0").history
    before = history.read_bytes()
    assert before.count(b"\n") == 2
    table, _ = made(comparison(plan.path, {"rea": config("rea")}, seeds=1), TWO)
    assert history.read_bytes().startswith(before)
    header, *rows = (serial.path / "comparison.csv").read_text().splitlines()
    assert table.splitlines() == [header, *(row for row in rows if row.startswith("rea,"))]
    assert histories(plan)["rea-seed0"] == histories(serial)["rea-seed0"]


# Searches that were begun before


def test_a_strategy_that_is_added_has_the_settings_of_the_others():
    names = ("rea", "random", "guided")
    fresh = {name: config(name) for name in names}
    check_alike(fresh, fresh)  # what strategies decide themselves may differ
    assert fresh["guided"].evolution.racing != fresh["rea"].evolution.racing
    begun = {name: replace(each, {"epochs": 6}) for name, each in fresh.items()}
    check_alike(begun, fresh)
    added = begun | {"random": fresh["random"]}
    with pytest.raises(InputError, match=r"^epochs would differ .*\(rea 6, random 1, guided 6\)"):
        check_alike(added, fresh)


def test_a_comparison_that_was_interrupted_at_once_goes_on(tmp_path: pathlib.Path):
    """Only the first search was begun; its settings are those of the call again."""
    data = open_dataset("digits").divided()
    for preset in ("quick", "paper"):
        path, names = tmp_path / preset, ("rea", "guided", "random")
        asked = {"preset": preset, "recipe": None, "settings": {"sample_size": 2}}
        fresh = {name: make_config("digits", data, strategy=name, **asked) for name in names}
        made = comparison(path, fresh, seeds=1)
        (name, first), *_ = made.searches()
        made.folder(name, 0).mkdir(parents=True)
        Workdir(made.folder(name, 0)).open(first, {})
        begun = {
            name: make_config(
                "digits", data, strategy=name, workdir=Workdir(made.folder(name, 0)), **asked
            )
            for name in names
        }
        check_alike(begun, fresh)
        comparison(path, begun, seeds=1).check_begun()


def test_searches_of_another_length_are_refused(tmp_path: pathlib.Path):
    made = comparison(tmp_path, {"rea": config("rea")}, seeds=2)
    made.check_begun()
    ((_, first), _) = made.searches()
    begun = Workdir(made.folder("rea", 1))
    begun.path.mkdir()
    begun.open(replace(first, {"max_trainings": 8, "seed": 1}), {})
    with pytest.raises(InputError, match="a search of 8 trainings, not of 3: give --evaluations=8"):
        made.check_begun()


def test_the_folder_of_a_search_is_none_for_a_comparison(tmp_path: pathlib.Path):
    Workdir(tmp_path).open(config("rea"), {})
    with pytest.raises(InputError, match="is the folder of a search; give another --workdir"):
        comparison(tmp_path, {"rea": config("rea")}, seeds=1).check_begun()


def test_no_flag_that_a_comparison_lacks_is_named(tmp_path: pathlib.Path):
    made = comparison(tmp_path, {"rea": config("rea")}, seeds=1)
    ((name, asked),) = made.searches()
    Workdir(made.folder("rea", 0)).path.mkdir()
    Workdir(made.folder("rea", 0)).open(replace(asked, {"final_epochs": 2}), {})
    with pytest.raises(InputError, match="final_epochs was 2, is 1") as caught:
        run_search(made.task(name, asked), Silent())
    assert "--continue" not in str(caught.value)
