"""A table of the paper by workers: the same rows as by this process, whatever ends a worker."""

from __future__ import annotations

import bz2
import csv
import dataclasses
import io
import json
import pathlib

import faults
import pytest
from builders_data import make_images, make_labels, usps_text, write_mnist
from rich.console import Console

from jaxevo.config import WorkerConfig
from jaxevo.experiments.paper_table import PartSetup, Training, reproduce
from jaxevo.experiments.parts import HERE, make_parts, shared_place
from jaxevo.experiments.reproduction import Reproduction, TablePlan
from jaxevo.experiments.table_rows import table_rows
from jaxevo.networks.baselines import Baseline
from jaxevo.reports.paper_tables import DataPair
from jaxevo.run.pool import Function, Job

TWO = WorkerConfig(workers=2)
TASK = DataPair("mnist", "usps")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("data")
    pixels, labels = make_images(2600, (28, 28)), make_labels(2600)
    write_mnist(folder / "mnist", pixels, labels)
    (folder / "usps").mkdir()
    for name in ("usps.bz2", "usps.t.bz2"):
        text = usps_text(pixels[:50, :16, :16], labels[:50])
        (folder / "usps" / name).write_bytes(bz2.compress(text))
    return folder


@pytest.fixture(autouse=True)
def prepared(data: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAXEVO_CACHE", str(data / "prepared"))


def made(plan: TablePlan, limits: WorkerConfig) -> str:
    """Makes a table; returns what was said."""
    said = io.StringIO()
    reproduce(plan, Console(file=said, width=400), limits)
    return said.getvalue()


def rows(path: pathlib.Path) -> list[dict[str, str]]:
    """The rows of the table without their seconds."""
    found = list(csv.DictReader((path / "transfer.csv").read_text().splitlines()))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in found]


@pytest.mark.parametrize(
    ("models", "searches"),
    [
        (("small_cnn", "deepswarm"), set()),
        pytest.param(("small_cnn", "aco"), {"search-aco"}, marks=pytest.mark.slow),
    ],
)
def test_workers_make_the_same_table(models, searches, tmp_path: pathlib.Path, data: pathlib.Path):
    settings = {"table": "transfer", "data_dir": str(data), "seeds": 2, "models": models}
    here, there = (TablePlan(path=tmp_path / name, **settings) for name in ("here", "there"))
    made(here, HERE)
    said = made(there, TWO)
    assert len(rows(there.path)) > 2 and rows(there.path) == rows(here.path)
    # The trainings of a searched model followed its search; none was left to this process.
    parts = {line.split(": ")[0] for line in said.splitlines() if "to go" in line}
    trained = {f"{model}-mnist seed {k}" for model in {*models} - {"deepswarm"} for k in range(2)}
    assert parts == searches | trained and "loss" not in said
    assert not list(there.path.glob("*-mnist/checkpoints"))
    # All is there, so nothing is given to workers.
    assert "to go" not in made(there, TWO)


@pytest.mark.parametrize(
    ("model", "part"), [("small_cnn", "small_cnn-mnist seed 0"), ("aco", "search-aco")]
)
def test_a_part_that_workers_could_not_make_is_not_tried_here(model, part, tmp_path, data):
    plan = TablePlan("transfer", tmp_path / "run", data_dir=str(data))
    reproduction = Reproduction(plan, Console(quiet=True))
    reproduction.failed = {part: "its process ended by SIGSEGV, twice"}
    (row,) = table_rows(reproduction, model, TASK)
    assert (row["mean"], row["seeds"]) == (None, 1)
    assert row["note"] == "failed: its process ended by SIGSEGV, twice"


@dataclasses.dataclass(frozen=True)
class FaultyParts(PartSetup):
    """Parts whose process is killed the first times that it says some words."""

    words: str
    attempts: pathlib.Path

    def build(self) -> Function:
        original = Reproduction.say

        def say(reproduction: Reproduction, text: str) -> None:
            if self.words in text and faults.count_attempt(self.attempts, "said") == 0:
                faults.commit("kill")
            if "epoch" in text:
                faults.count_attempt(self.attempts, text.split()[4].replace("/", "-"))
            original(reproduction, text)

        Reproduction.say = say
        return super().build()


@pytest.mark.slow
def test_a_killed_worker_goes_on_from_the_last_checkpoint(
    tmp_path: pathlib.Path, data: pathlib.Path
):
    plan = TablePlan(
        "transfer", tmp_path / "run", data_dir=str(data), epochs=3, models=("small_cnn",)
    )
    reproduction = Reproduction(plan, Console(quiet=True))
    model = Baseline("small_cnn")
    reproduction.claim(reproduction.folder(model.name, TASK), model, TASK)
    with shared_place(plan.path, TWO) as place:
        setup = FaultyParts(plan, place, "epoch 2/3", tmp_path)
        job = Job("part", setup, (Training(model.name, TASK, 0), model))
        assert make_parts([job], TWO, say=print) == {}
    # The first epoch was saved: it was trained once, by the process that was killed in the second.
    epochs = {path.name for path in tmp_path.glob("[0-9]*")}
    assert epochs - {"2-3.0"} == {"1-3.0", "3-3.0"}
    folder = reproduction.folder(model.name, TASK)
    assert json.loads((folder / "seed0.json").read_text())["failure"] is None
