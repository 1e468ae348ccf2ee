"""launch/search.py as a person runs it: to the end, killed at any moment, again, and wrongly."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from builders_pages import Page
from conftest import REPOSITORY, timeless
from launching import launch

from jaxevo.config import SearchConfig, WorkerConfig, leaf_fields
from jaxevo.config.presets import RECIPES
from jaxevo.run.workdir import Workdir
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.classifier import Classifier

TINY = (
    "--preset=quick --population_size=3 --num_offspring=3 --num_generations=2 --max_nodes=3 "
    "--channels=2 --epochs=4 "
    "--num_normal_cells=1 --train_examples=300 --batch_size=32 --retrain_best=2 --retrain_seeds=1 "
    "--final_epochs=4 "
    "--final_batch_size=32 --recipe=modern --final_label_smoothing=0.0"
).split()


def command(*flags: str) -> list[str]:
    return [sys.executable, str(REPOSITORY / "launch" / "search.py"), *flags]


def search(environment: dict[str, str], *flags: str) -> subprocess.CompletedProcess[str]:
    return launch("launch/search.py", *flags, environment=environment)


def kill_when(
    environment: dict[str, str],
    workdir: pathlib.Path,
    reached: Callable[[], bool],
    workers: int = 0,
) -> None:
    """Starts the search and kills it as soon as `reached`; the process must not have ended by
    itself.
    """
    process = subprocess.Popen(
        command(*TINY, f"--workdir={workdir}", f"--workers={workers}"),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while not reached():
        try:
            _, error = process.communicate(timeout=0.002)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(
            f"ended with {process.returncode} before it could be killed: {error.decode()}"
        )
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def lines(workdir: pathlib.Path) -> list[dict]:
    history = Workdir(workdir).history
    whole = history.read_bytes().rpartition(b"\n")[0] if history.exists() else b""
    return [json.loads(line) for line in whole.splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, launch_environment):
    """An uninterrupted run and what it printed."""
    workdir = tmp_path_factory.mktemp("runs") / "whole"
    done = search(launch_environment, *TINY, f"--workdir={workdir}")
    assert done.returncode == 0, done.stderr
    return workdir, done.stdout


# Runs a launcher as a person would, and counts what jax takes from the cache and what it compiles.
COUNTING = """
import collections, runpy, sys
import jax
counted = collections.Counter()
count = lambda event, **_: counted.update([event.rpartition("/")[2]])
jax.monitoring.register_event_listener(count)
sys.argv = sys.argv[1:]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    print("counted", counted["cache_hits"], counted["cache_misses"])
"""


@pytest.mark.slow
def test_a_second_process_compiles_nothing(whole, tmp_path, launch_environment):
    line = [sys.executable, "-c", COUNTING, *command(*TINY, f"--workdir={tmp_path}")[1:]]
    done = subprocess.run(
        line, env=launch_environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    hits, misses = map(int, done.stdout.splitlines()[-1].split()[1:])
    assert hits > 2 and misses == 0


def test_it_prints_estimate_result_and_the_lines_that_go_on(whole):
    workdir, output = whole
    assert "estimate: " in output and "9 candidates" in output
    assert re.search(r"test accuracy \d+\.\d\d% \(95 % interval", output)
    assert re.search(r"the winner was born in generation \d; trained again it has", output)
    assert "was the search worth it? " in output and (workdir / "small_cnn").is_dir()
    assert f"--weights={workdir}/best" in output
    for name in ("cells.svg", "cells.png", "progress.svg", "progress.png"):
        assert f"{workdir}/{name}" in output and (workdir / name).stat().st_size > 1000
    # The report of the finished run, which knows what its data were and what was confused.
    assert f"report {workdir}/report.html" in output
    page = Page((workdir / "report.html").read_text())
    assert "1,149 training images" in page.texts["p"] and len(page.of("img")) > 4
    result = json.loads((workdir / "result.json").read_text())
    promised = {"test_accuracy", "test_interval", "validation_accuracy", "parameters"}
    promised |= {"multiply_adds", "trainings", "memo_hits", "failures", "seconds"}
    assert promised <= result.keys()
    config = json.loads((workdir / "config.json").read_text())
    assert config["config"]["seed"] == 0 and "jax" in config["versions"] and config["device"]
    recipe = RECIPES["modern"] | {
        "label_smoothing": 0.0
    }  # of the final training alone; what is given overrides it
    assert {name: config["config"][f"final_{name}"] for name in recipe} == recipe
    assert {name: config["config"][name] for name in recipe} == RECIPES["paper"]
    individuals = [record for record in lines(workdir) if record["kind"] == "individual"]
    assert len(individuals) == 9
    fields = {"id", "parents", "operators", "generation", "fitness", "parameters", "seconds"}
    fields |= {"reused", "failure", "genome", "multiply_adds"}
    assert all(fields <= record.keys() for record in individuals)


def test_killed_at_several_moments_it_ends_as_if_it_had_not_been(
    whole, tmp_path, launch_environment
):
    expected, _ = whole
    workdir = tmp_path / "killed"

    def has(kind: str, number: int) -> bool:
        return sum(record["kind"] == kind for record in lines(workdir)) >= number

    # The next candidate trains as soon as a line is written, so these kills are amid trainings; the
    # first is about when the first generation's checkpoint is written.
    moments = [
        lambda: has("individual", 3),
        lambda: bool(Checkpoints(Workdir(workdir).final_checkpoints).steps()),
    ]
    for reached, workers in zip(moments, (1, 0), strict=True):
        kill_when(launch_environment, workdir, reached, workers)
    last = search(launch_environment, *TINY, f"--workdir={workdir}")
    assert last.returncode == 0, last.stderr
    assert "resuming" in last.stdout
    assert [timeless(r) for r in lines(workdir)] == [timeless(r) for r in lines(expected)]
    results = [
        timeless(json.loads((path / "result.json").read_text())) for path in (workdir, expected)
    ]
    assert results[0] == results[1]
    assert (workdir / "best.json").read_text() == (expected / "best.json").read_text()


def test_again_it_says_that_the_run_is_complete_and_draws_what_is_missing(
    whole, launch_environment
):
    workdir, _ = whole
    missing = workdir / "cells.svg"  # as if it had been stopped between result and pictures
    picture = missing.read_text()
    missing.unlink()
    kept = [path for path in workdir.rglob("*") if path.name not in ("lock", "cells.png")]
    before = {path: path.stat().st_mtime_ns for path in kept}
    again = search(launch_environment, *TINY, f"--workdir={workdir}")
    assert again.returncode == 0
    assert "complete" in again.stdout and "test accuracy" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in kept} == before
    assert missing.read_text() == picture


def test_a_finished_run_is_continued_by_its_folder_alone(whole, tmp_path, launch_environment):
    workdir = pathlib.Path(shutil.copytree(whole[0], tmp_path / "run"))
    flags = ("--continue", f"--workdir={workdir}", "--num_generations=3", "--final_epochs=2")
    flags = (*flags, "--keep=2")
    before = [timeless(line) for line in lines(workdir)]
    done = search(launch_environment, *flags)
    assert done.returncode == 0, done.stderr
    assert "continued after 9 candidates with keep=2, num_generations=3, fin" in done.stdout
    assert "final training  2/2" in done.stdout and f"{workdir}/progress.svg" in done.stdout
    after = [timeless(line) for line in lines(workdir)]
    assert after[: len(before)] == before and after[len(before)]["kind"] == "change"
    assert sum(record["kind"] == "individual" for record in after) == 12
    # The second best can be taken out and used.
    (kept,) = json.loads((workdir / "result.json").read_text())["kept"]
    inspect = (f"--workdir={workdir}", f"--id={kept['id']}", f"--export_weights={tmp_path / 'w'}")
    subprocess.run(
        [sys.executable, str(REPOSITORY / "launch" / "inspect_checkpoint.py"), *inspect],
        check=True,
        capture_output=True,
    )
    assert Classifier.load(tmp_path / "w").model.to_dict() == record_of(after, kept["id"])["genome"]
    again = search(launch_environment, *flags)
    assert "this run is complete; --continue" in again.stdout
    assert [timeless(line) for line in lines(workdir)] == after
    refused = search(launch_environment, *flags, "--channels=3", "--dataset=mnist")
    assert_refused(refused, "channels is 2 and cannot become 3", "dataset is 'digits'")


def record_of(records: list[dict], known: int) -> dict:
    """The record of an individual."""
    return next(record for record in records if record.get("id") == known)


def test_a_damaged_result_is_told_in_one_line(whole, tmp_path, launch_environment):
    workdir = pathlib.Path(shutil.copytree(whole[0], tmp_path / "run"))
    result = json.loads((workdir / "result.json").read_text())
    (workdir / "result.json").write_text(
        json.dumps(result | {"session_seconds": {"train": "long"}})
    )
    assert_refused(
        search(launch_environment, *TINY, f"--workdir={workdir}"),
        "train is 'long', not of type float",
    )


def test_another_configuration_is_refused_with_the_difference(whole, launch_environment):
    workdir, _ = whole
    other = search(launch_environment, *TINY, f"--workdir={workdir}", "--seed=1", "--max_nodes=4")
    assert_refused(other, "max_nodes was 3, is 4; seed was 0, is 1")


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("error: "), done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--no_such_flag=1"], ["no_such_flag"]),
        (["--epochs=many"], ["epochs", "many"]),
        (["stray"], ["stray", "--help"]),
        (["--dataset=nothing"], ["nothing", "digits", "mnist"]),
        (["--dataset=mnist", "--data_dir=/no/such/folder"], ["/no/such/folder"]),
        (["--num_normal_cells=6"], ["num_normal_cells=6", "32x32", "8x8"]),
        (["--crossover_bias=2"], ["crossover_bias=2"]),
        # The strategy's P, not the preset's; else the number of cells, which is looked at later,
        # would be wrong.
        (
            ["--strategy=aging", "--sample_size=11", "--num_normal_cells=6"],
            ["sample_size=11", "only 10"],
        ),
        (["--min_nodes=5", "--max_nodes=3"], ["max_nodes=3", "min_nodes is 5"]),
        (["--precision=bfloat16", "--engine=native"], ["engine=universal"]),
        (["--max_parameters=10"], ["individual 0", "within the bounds on size"]),
        (
            ["--profile=/dev/null/trace"],
            ["profile=/dev/null/trace", "a part of the path is a file"],
        ),
        (["--candidate_timeout=5"], ["candidate_timeout=5.0", "--workers=1"]),
        (["--candidates_per_worker=3"], ["candidates_per_worker=3", "--workers=1"]),
        (["--dry_run", "--continue"], ["--continue is not for --dry_run"]),
        (["--dry_run", "--profile=trace"], ["--profile is not for --dry_run"]),
        (["--workers=2", "--cluster=auto"], ["workers=2", "--cluster=auto", "give either"]),
        (
            ["--workers=2", "--candidates_per_step=2", "--mating_pool=survivors"],
            ["workers=2", "candidates_per_step=2"],
        ),
    ],
)
def test_wrong_input_ends_in_one_line_and_leaves_nothing(
    flags, words, tmp_path, launch_environment
):
    done = search(launch_environment, "--preset=quick", *flags, f"--workdir={tmp_path / 'run'}")
    assert_refused(done, *words)
    assert not (tmp_path / "run").exists()


def test_help_names_every_setting(launch_environment):
    done = search(launch_environment, "--help")
    assert done.returncode == 0
    for name in leaf_fields(SearchConfig).keys() | leaf_fields(WorkerConfig).keys():
        assert re.search(rf"^  --(\[no\])?{name}(=|$)", done.stdout, re.MULTILINE), name
    for word in ("--preset=auto|quick|paper", "--data_dir=PATH", "(tau_cross)"):
        assert word in done.stdout


def test_help_is_in_groups_and_shows_both_presets(launch_environment):
    text = search(launch_environment, "--help").stdout
    groups = re.split(r"^([A-Z]+)$", text.partition("\nflags:\n")[2], flags=re.MULTILINE)
    names, parts = groups[1::2], [" ".join(part.split()) for part in groups[2::2]]
    assert names == ["DATA", "SEARCH", "NETWORK", "TRAINING", "RUN", "MACHINE"]
    listed = re.findall(r"^  --(?:\[no\])?(\w+)", text, re.MULTILINE)
    assert len(listed) == len(set(listed)) > 80  # each once
    data, evolution, network, training, run, machine = parts
    assert "--image_size=N resize images" in data and "(paper and quick: 0)" in data
    assert "quick: 0.05 to 0.2 by the images)" in data
    assert "--num_generations=N generations after the initial one (G) (paper: 200, quick: 11)" in (
        evolution
    )
    assert "--[no]crossover rea makes" in evolution and "--strategy=rea|aging|" in evolution
    assert "(D) (paper: 24, quick: 8)" in network
    assert "--final_epochs=N final training: passes over" in training
    assert "(paper: 100, quick: 3 to 40 by the images)" in training
    assert "--class_weights=none|balanced" in training and "--recipe=" in training
    assert all(flag in run for flag in ("--workdir=", "--time_limit=", "--[no]continue"))
    assert all(flag in machine for flag in ("--workers=", "--engine=", "--profile="))
    assert all(len(line) <= 120 for line in text.splitlines())


def test_dry_run_prints_the_expected_duration_and_leaves_nothing(tmp_path, launch_environment):
    done = search(launch_environment, *TINY, "--dry_run", f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    assert re.search(r"estimate: about [\d.]+ (s|min): ", done.stdout)
    assert not (tmp_path / "run").exists()
