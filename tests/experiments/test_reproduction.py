"""The paper's tables made again: in two calls, and from the trainings of another table."""

from __future__ import annotations

import bz2
import io
import json
import pathlib

import pytest
from builders_data import make_images, make_labels, usps_text, write_mnist
from conftest import REPOSITORY
from rich.console import Console

from jaxevo.errors import InputError
from jaxevo.experiments.paper_table import reproduce
from jaxevo.experiments.reproduction import TablePlan
from jaxevo.reports.paper_tables import LABELS, TABLES

SHARED = REPOSITORY.parent / "shared"


def made(plan: TablePlan) -> str:
    """Makes the table; returns what was said."""
    said = io.StringIO()
    reproduce(plan, Console(file=said, width=200))
    return said.getvalue()


def test_a_table_of_small_files_is_made_in_two_calls(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("JAXEVO_CACHE", str(tmp_path / "prepared"))
    pixels, labels = make_images(2600, (28, 28)), make_labels(2600)
    write_mnist(tmp_path / "mnist", pixels, labels)
    (tmp_path / "usps").mkdir()
    text = bz2.compress(usps_text(pixels[:50, :16, :16], labels[:50]))
    for name in ("usps.bz2", "usps.t.bz2"):
        (tmp_path / "usps" / name).write_bytes(text)
    run = tmp_path / "run"
    plan = {"table": "transfer", "path": run, "data_dir": str(tmp_path)}
    first = made(TablePlan(**plan, models=("small_cnn",)))
    # As if it had ended before the score, and was trained by another version.
    (run / "small_cnn-mnist" / "seed0-usps.json").unlink()
    part = run / "small_cnn-mnist" / "seed0.json"
    part.write_text(part.read_text().replace('"jaxevo": "', '"jaxevo": "0.'))
    second = made(TablePlan(**plan, models=("deepswarm", "small_cnn")))
    assert "epoch 1/1" in first and "epoch 1/1" not in second
    table = json.loads((run / "transfer.json").read_text())
    sample = "mnist is here a sample of 2,600 training images, not the official split"
    assert sample in table["caption"]
    *trained, published = table["rows"]
    rows = [(row["model"], row["resize"]) for row in trained]
    assert rows == [("small CNN", "stretch"), ("small CNN", "mnist_box")]
    for row in trained:
        assert row["parameters"] == 19_258
        assert 0 <= row["low"] < row["mean"] < row["high"] <= 1
        assert "trained with jaxevo 0." in row["note"]
    assert (published["mean"], published["paper_accuracy"]) == (None, 0.6156)
    assert "| DeepSwarm | usps |  |  | not run |" in (run / "transfer.md").read_text()
    # A training that is made anew is scored anew.
    part.unlink()
    score = run / "small_cnn-mnist" / "seed0-usps.json"
    score.write_text(json.dumps(json.loads(score.read_text()) | {"stretch": 0.123}))
    assert "epoch 1/1" in made(TablePlan(**plan, models=("small_cnn",)))
    again = json.loads((run / "transfer.json").read_text())["rows"]
    assert [row["mean"] for row in again] == [row["mean"] for row in trained]


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "data").exists(), reason="needs MNIST and USPS")
def test_a_table_reuses_what_another_one_has_trained(tmp_path: pathlib.Path):
    plan = {"table": "ablation", "path": tmp_path, "data_dir": str(SHARED / "data")}
    made(TablePlan(**plan))
    rows = json.loads((tmp_path / "ablation.json").read_text())["rows"]
    assert [row["model"] for row in rows] == [LABELS[model] for model in TABLES["ablation"].models]
    assert all(0 < row["mean"] <= 1 for row in rows)
    assert {row["training"] for row in rows} == {"1 epoch of 2,560 of 60,000 images"}
    assert "epoch 1/1" not in made(TablePlan(**plan))
    assert json.loads((tmp_path / "ablation.json").read_text())["rows"] == rows
    with pytest.raises(InputError, match="holds another training"):
        made(TablePlan(**plan, recipe="modern"))
