"""The command reproduce: what is refused, and that a table is made by it."""

from __future__ import annotations

import bz2
import json
import subprocess

import pytest
from builders_data import make_images, make_labels, usps_text, write_mnist
from builders_pages import Page
from launching import launch


def reproduce(environment: dict[str, str], *flags: str) -> subprocess.CompletedProcess[str]:
    return launch("launch/reproduce.py", *flags, environment=environment)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "give --table=ablation|digits|transfer"),
        (("--table=figures",), "flag --table=figures: value should be one of"),
        (("--table=ablation", "--budget=huge"), "flag --budget=huge: value should be one of"),
        (("--table=ablation", "--seeds=0"), "flag --seeds=0"),
        (
            ("--table=ablation", "--models=evoA,evoC"),
            "models=evoA,evoC: unknown 'evoC'; choose of resnet18,",
        ),
        (("--table=ablation", "--workers=-1"), "workers=-1 is not possible"),
        (("--table=ablation", "--worker_memory_limit=5"), "worker_memory_limit"),
        (("--table=ablation", "--models="), "models=: give at least one, and each once"),
    ],
)
def test_wrong_input_ends_in_one_line(flags, words, tmp_path, launch_environment):
    done = reproduce(launch_environment, *flags, f"--workdir={tmp_path / 'run'}")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and words in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_row_that_is_only_published_needs_no_training(tmp_path, launch_environment):
    pixels, labels = make_images(40, (28, 28)), make_labels(40)
    write_mnist(tmp_path / "mnist", pixels, labels)
    (tmp_path / "usps").mkdir()
    text = bz2.compress(usps_text(pixels[:20, :16, :16], labels[:20]))
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / "usps" / name).write_bytes(text)
    environment = launch_environment | {"JAXEVO_CACHE": str(tmp_path / "prepared")}
    run = tmp_path / "run"
    flags = ("--table=transfer", "--models=deepswarm", "--budget=smoke", "--epochs=2", "--seeds=3")
    done = reproduce(environment, *flags, f"--data_dir={tmp_path}", f"--workdir={run}")
    assert (done.returncode, done.stderr) == (0, "")
    table = json.loads((run / "transfer.json").read_text())
    (row,) = table["rows"]
    assert (row["model"], row["mean"], row["paper_accuracy"]) == ("DeepSwarm", None, 0.6156)
    assert "budget smoke, recipe paper" in table["caption"]
    assert "3 trainings of each model" in table["caption"]
    assert "| DeepSwarm | usps |  |  | not run |" in (run / "transfer.md").read_text()
    assert "DeepSwarm" in Page((run / "transfer.html").read_text()).texts["th"]
    assert f"written: {run}/transfer.md, .html, .csv and .json" in done.stdout
