"""What version 0.2.0 computed is computed still: histories, genomes, weights and readings.

`golden/make.py` made them by the launchers' commands at the last commit of 0.2.0. Trainings are
compared bit for bit, which only a like processor with like versions can give, so elsewhere these
tests are skipped and say so; everything that involves no training is compared everywhere.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import STRATEGIES
from jaxevo.strategies.registry import make_strategy

GOLDEN = pathlib.Path(__file__).parent / "golden"
_spec = importlib.util.spec_from_file_location("golden_make", GOLDEN / "make.py")
assert _spec is not None and _spec.loader is not None
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

like_machine = pytest.mark.skipif(
    make.machine() != json.loads((GOLDEN / "machine.json").read_text()),
    reason="trainings are the same bit for bit only where golden/machine.json says",
)


def golden(name: str) -> dict:
    return json.loads((GOLDEN / f"{name}.json").read_text())


def table_fitness(genome, individual_id: int) -> float | None:
    """A fitness in place of a training; every eighth candidate fails."""
    digest = hashlib.sha256(f"{genome.canonical_key()} {individual_id}".encode()).digest()
    return None if digest[0] < 32 else digest[1] / 256


@pytest.mark.parametrize("pool", ["growing", "survivors"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_draw_the_same_candidates(name, pool):
    settings = {
        "seed": 5,
        "num_generations": 12,
        "mating_pool": pool,
        "stagnation_start": 3,
        "stagnation_patience": 2,
    }
    strategy = make_strategy(configs.replace(SearchConfig(), STRATEGIES[name] | settings))
    told = []
    while candidates := strategy.ask():
        for candidate in candidates:
            fitness = table_fitness(candidate.genome, candidate.id)
            told.append(dataclasses.replace(candidate, fitness=fitness).to_dict())
            strategy.tell(dataclasses.replace(candidate, fitness=fitness))
    text = json.dumps([told, strategy.state_dict()], sort_keys=True)
    assert strategy.best is not None
    assert golden("strategies")[f"{name} {pool}"] == {
        "candidates": len(told),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "best": strategy.best.id,
        "events": [event.kind for event in strategy.events],
    }


@pytest.mark.parametrize("name", make.HISTORIES)
def test_shipped_histories_are_read_as_before(name):
    read = make.read_history(name)
    known = golden(name)
    # Settings that came later have the values by which nothing changes.
    defaults = configs.flatten(SearchConfig())
    later = read["config"].keys() - known["config"].keys()
    assert {key: read["config"].pop(key) for key in later} == {key: defaults[key] for key in later}
    assert read.pop("changes") == read.pop("classes") == []
    assert read == known


def assert_as_before(name: str, made: pathlib.Path) -> None:
    """A run is what it was, but for values of its result that came later."""
    known, document = golden(name), json.loads(made.read_text())
    result = document.pop("result")
    assert document == {key: value for key, value in known.items() if key != "result"}
    assert {key: result[key] for key in known["result"]} == known["result"]


@like_machine
def test_an_interrupted_run_of_0_2_0_goes_on_to_the_same_end(tmp_path, launch_environment):
    workdir = tmp_path / "workdirs" / "rea"
    shutil.copytree(GOLDEN / "run-0.2.0", workdir)
    make.make_run(tmp_path, "rea")
    assert_as_before("rea", tmp_path / "rea.json")


@like_machine
@pytest.mark.parametrize(
    "name",
    [
        "survivors_workers",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("rea", "rea_workers", "aging", "random", "aco")
        ),
    ],
)
def test_runs_end_as_before(name, tmp_path, launch_environment):
    make.make_run(tmp_path, name)
    assert_as_before(name, tmp_path / f"{name}.json")


def test_weights_of_0_2_0_are_read(digits, launch_environment):
    command = [
        sys.executable,
        "launch/eval.py",
        f"--weights={GOLDEN / 'weights-0.2.0'}",
        "--dataset=digits",
    ]
    made = subprocess.run(
        command, cwd=make.REPOSITORY, env=launch_environment, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    assert f"{golden('rea')['result']['test_accuracy']:.2%}" in made.stdout
