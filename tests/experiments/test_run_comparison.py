"""A comparison in one process: a search that fails is left out, the others are in the tables."""

from __future__ import annotations

import io
import json
import pathlib

import pytest
from rich.console import Console

from jaxevo.config import SearchConfig, replace
from jaxevo.datasets import open_dataset
from jaxevo.errors import InputError
from jaxevo.experiments.comparison import Comparison, run_comparison, write_comparison
from jaxevo.run.prepare import make_config
from jaxevo.run.reader import load_run
from jaxevo.run.workdir import Workdir

TINY = {
    **{"population_size": 2, "num_offspring": 2, "max_nodes": 3, "num_ants": 2},
    **{"channels": 2, "num_normal_cells": 1, "epochs": 1, "batch_size": 32, "retrain_best": 0},
    **{"train_examples": 300, "final_epochs": 1, "final_batch_size": 32},
}
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
    assert "| aco | 0, 1 failed | - | - | - | - | - |" in lines
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
