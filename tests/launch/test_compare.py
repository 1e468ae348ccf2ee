"""launch/compare.py from outside: a small comparison, one that fails, and wrong input."""

from __future__ import annotations

import csv
import json
import subprocess

import pytest
from builders_pages import Page
from launching import launch

# Programs of the same shapes as in test_search_command.py: compiled once for both.
TINY = (
    "--preset=quick --population_size=2 --num_offspring=2 --max_nodes=3 --channels=2 --epochs=1 "
    "--num_normal_cells=1 "
    "--train_examples=300 --batch_size=32 --retrain_best=0 --final_epochs=1 --final_batch_size=32 "
    "--num_ants=2"
).split()


def compare(environment: dict[str, str], *flags: str) -> subprocess.CompletedProcess[str]:
    return launch("launch/compare.py", *flags, environment=environment)


@pytest.mark.slow
def test_a_search_of_each_strategy_and_tables_of_them(tmp_path, launch_environment):
    done = compare(
        launch_environment,
        *TINY,
        "--strategies=rea,aco",
        "--seeds=1",
        "--evaluations=3",
        f"--workdir={tmp_path}",
    )
    assert done.returncode == 0, done.stderr
    assert "search 2 of 2" in done.stdout and "With one seed nothing can be said" in done.stdout
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert [(run["strategy"], run["trainings"], len(run["curve"])) for run in document["runs"]] == [
        ("rea", 3, 3),
        ("aco", 3, 3),
    ]
    rows = list(csv.DictReader((tmp_path / "comparison.csv").read_text().splitlines()))
    for row, run in zip(rows, document["runs"], strict=True):
        result = json.loads((tmp_path / f"{row['strategy']}-seed0" / "result.json").read_text())
        assert float(row["test"]) == result["test_accuracy"] == run["test"]
    assert "| rea | 1 |" in (tmp_path / "comparison.md").read_text()
    page = Page((tmp_path / "report.html").read_text())
    assert page.texts["h1"].startswith("Comparison of rea") and len(page.of("img")) == 2
    for name in ("best_so_far", "parameters"):
        assert (tmp_path / f"{name}.svg").stat().st_size > 1000 and (
            tmp_path / f"{name}.png"
        ).stat().st_size > 1000


def test_a_comparison_of_which_every_search_fails_ends_in_one_line(tmp_path, launch_environment):
    # A learning rate at which every loss is infinite: all candidates of every search diverge.
    diverging = ("--learning_rate=1e38", "--strategies=rea,random", "--evaluations=30")
    flags = (*TINY, *diverging, "--seeds=1", "--lag=auto", "--max_consecutive_failures=2")
    done = compare(launch_environment, *flags, f"--workdir={tmp_path}")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"failed: {tmp_path}/rea-seed0: 2 candidates in a row failed" in done.stdout
    reason = f"{tmp_path}/random-seed0: 2 candidates in a row failed"
    assert done.stderr.startswith(f"error: every search failed; the last, {reason}")
    assert not (tmp_path / "comparison.md").exists()


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--strategies=rea,annealing", "unknown 'annealing'; choose of rea, aging,"),
        ("--preset=quick --strategies=aging100 --sample_size=101 --num_normal_cells=6", "only 100"),
        ("--strategies=rea,rea", "each once"),
        ("--strategies=", "give at least one"),
        ("--evaluations=0", "evaluations"),
        ("--num_generations=3", "num_generations"),
        ("--workers=-1", "workers=-1 is not possible"),
        ("--workers=2 --candidate_timeout=5", "candidate_timeout"),
    ],
)
def test_wrong_input_ends_in_one_line(flag, words, tmp_path, launch_environment):
    done = compare(launch_environment, *flag.split(), f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and words in done.stderr
    assert not (tmp_path / "run").exists()
