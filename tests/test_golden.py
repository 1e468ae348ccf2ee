"""What was computed is computed still: histories, genomes, weights and readings.

`golden/make.py` made the runs and the strategies' candidates when version 0.4.0 gave each use of
randomness its own stream; the shipped histories, an interrupted run and weights are of 0.2.0.
Trainings are compared bit for bit, which only a like processor with like versions can give, so
elsewhere these tests are skipped and say so; what involves no training is compared everywhere.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import shutil

import pytest
from launching import launch

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import STRATEGIES

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


@pytest.mark.parametrize("pool", ["growing", "survivors"])
@pytest.mark.parametrize("name", STRATEGIES)
def test_strategies_draw_the_same_candidates(name, pool):
    assert golden("strategies")[f"{name} {pool}"] == make.summarize_strategy(name, pool)


@pytest.mark.parametrize("name", make.HISTORIES)
def test_shipped_histories_are_read_as_before(name):
    read = make.read_history(name)
    known = golden(name)
    # Settings that came later have the values by which nothing changes.
    defaults = configs.flatten(SearchConfig())
    later = read["config"].keys() - known["config"].keys()
    assert {key: read["config"].pop(key) for key in later} == {key: defaults[key] for key in later}
    assert read.pop("changes") == read.pop("classes") == []
    assert read.pop("summary") == "" and read.pop("nodes") == []
    assert read == known


def assert_as_before(name: str, made: pathlib.Path) -> None:
    """A run is what it was, but for values of its result that came later."""
    known, document = golden(name), json.loads(made.read_text())
    result = document.pop("result")
    assert document == {key: value for key, value in known.items() if key != "result"}
    assert {key: result[key] for key in known["result"]} == known["result"]


@pytest.mark.parametrize(
    "flags", [(*make.TINY, "--strategy=rea"), ("--continue", "--num_generations=9")]
)
def test_an_interrupted_run_of_0_2_0_is_refused_in_words(tmp_path, launch_environment, flags):
    """Its drew other genomes by its seed, so the same command would not come to the same end."""
    shutil.copytree(GOLDEN / "run-0.2.0", tmp_path / "run")
    before = (tmp_path / "run" / "history.jsonl").read_bytes()
    workdir = f"--workdir={tmp_path / 'run'}"
    made = launch("launch/search.py", *flags, workdir, environment=launch_environment)
    assert made.returncode == 2
    assert "unfinished run of a version that drew other genomes by its seed" in made.stderr
    assert (tmp_path / "run" / "history.jsonl").read_bytes() == before


@like_machine
@pytest.mark.parametrize(
    "name",
    [
        "rea",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("rea_workers", "survivors_workers", "aging", "random", "aco")
        ),
    ],
)
def test_runs_end_as_before(name, tmp_path, monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # which let tests compile with other roundings
    make.make_run(tmp_path, name)
    assert_as_before(name, tmp_path / f"{name}.json")


def test_weights_of_0_2_0_are_read(digits, launch_environment):
    weights = f"--weights={GOLDEN / 'weights-0.2.0'}"
    made = launch("launch/eval.py", weights, "--dataset=digits", environment=launch_environment)
    assert made.returncode == 0, made.stderr
    assert "41.94%" in made.stdout
