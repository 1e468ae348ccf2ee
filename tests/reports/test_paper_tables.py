"""The paper's tables: published figures as in the paper, rows by hand, budgets that can be
searched.
"""

from __future__ import annotations

import csv
import pathlib
import re

import pytest
from conftest import REPOSITORY

from jaxevo.config import NetworkConfig
from jaxevo.config.presets import MODELS
from jaxevo.errors import InputError
from jaxevo.files import write_csv
from jaxevo.reports import paper_tables
from jaxevo.reports.paper_tables import (
    BUDGETS,
    LABELS,
    PUBLISHED,
    SEARCHED,
    TABLES,
    DataPair,
    Published,
)
from jaxevo.search_space import complexity, genome_files

SHARED = REPOSITORY.parent / "shared"
MNIST, TRANSFER = DataPair("mnist", "mnist"), DataPair("mnist", "usps")
MEASURED = {
    **{
        "parameters": 52_858,
        "multiply_adds": 9_042_112,
        "mean": 0.9876,
        "std": None,
        "low": 0.9852,
        "high": 0.9896,
    },
    **{"seeds": 1, "seconds": 1234.5, "training": "3 epochs of 60,000 of 60,000 images"},
}


@pytest.mark.skipif(not (SHARED / "paper.tex").exists(), reason="needs the paper's text")
def test_published_figures_are_those_of_the_papers_text():
    text = (SHARED / "paper.tex").read_text()
    ablation, digits, usps = (
        re.search(rf"(?s).{{900}}label{{tab:{name}}}", text)
        for name in ("ablation", "digits", "usps")
    )
    assert ablation and digits and usps
    number = r"(?:\\textbf{)?([\d.]+)M?}?"
    row = re.search(rf"Final Accuracy & {number} & {number} & {number} & {number}", ablation[0])
    assert row
    for model, value in zip(("evoA", "evoB", "model_a", "model_b"), row.groups(), strict=True):
        assert PUBLISHED["mnist"][model].accuracy == pytest.approx(float(value) / 100)
    for model, name in (
        ("resnet18", "ResNet18"),
        ("deepswarm", "DeepSwarm"),
        ("evoB", "EvoB"),
        ("evoA", "EvoA"),
    ):
        row = re.search(
            rf"\n *{name}[^&\n]*& *{number} & {number} & *{number} & {number}", digits[0]
        )
        assert row, name
        mnist_size, mnist, svhn_size, svhn = map(float, row.groups())
        assert PUBLISHED["mnist"][model] == Published(
            round(mnist_size * 1e6), pytest.approx(mnist / 100)
        )
        assert PUBLISHED["svhn_cropped"][model] == Published(
            round(svhn_size * 1e6), pytest.approx(svhn / 100)
        )
    row = re.search(rf"Accuracy \(\\%\) & {number} & {number} & {number} & {number}", usps[0])
    assert row
    for model, value in zip(("resnet18", "deepswarm", "evoB", "evoA"), row.groups(), strict=True):
        assert PUBLISHED["usps"][model].accuracy == pytest.approx(float(value) / 100)


def test_every_row_can_be_made():
    for table in TABLES.values():
        for model in table.models:
            made = (
                model in MODELS or model in SEARCHED or genome_files.shipped_path(model) is not None
            )
            assert made or model == "deepswarm"
            assert model in LABELS
    named = {
        "evoA",
        "evoB",
        "model_a",
        "model_b",
        "resnet18",
        "deepswarm",
        "aging",
    }  # all systems of the paper
    assert named <= set(TABLES["digits"].models) and named <= set(TABLES["transfer"].models)
    assert {
        (task.trained_on, task.tested_on) for table in TABLES.values() for task in table.tasks
    } == {
        ("mnist", "mnist"),
        ("svhn_cropped", "svhn_cropped"),
        ("mnist", "usps"),
    }


@pytest.mark.parametrize("name", BUDGETS)
def test_budgets_are_valid_configurations(name):
    budget = BUDGETS[name]
    for model, settings in SEARCHED.items():
        config = budget.search_config(model, 60_000)
        assert (config.data.dataset, config.strategy) == ("mnist", settings["strategy"])
    # The paper's: D=24 and N=3 on MNIST, D=32 on SVHN, 100 epochs at 1e-3, a search of P=10 and
    # G=200.
    if name == "paper":
        sizes = {
            data: (network.channels, network.num_normal_cells)
            for data, network in budget.networks.items()
        }
        assert sizes == {"mnist": (24, 3), "svhn_cropped": (32, 3)}
        assert (budget.training.epochs, budget.training.learning_rate, budget.train_examples) == (
            100,
            1e-3,
            0,
        )
        assert config.evolution.num_candidates == 2010


def test_only_one_reading_of_the_svhn_network_has_the_papers_sizes():
    """From MNIST to SVHN EvoA's 0.22 M became 0.39 M and EvoB's 0.21 M 0.37 M."""
    for model in ("evoA", "evoB"):
        genome = genome_files.find(model)[0]
        mnist = complexity.measure(genome, NetworkConfig(), (28, 28, 1), num_classes=10).parameters
        paper = PUBLISHED["svhn_cropped"][model].parameters / PUBLISHED["mnist"][model].parameters
        ratios = {
            (normal, repeats): complexity.measure(
                genome,
                NetworkConfig(channels=32, num_normal_cells=normal, normal_repeats=repeats),
                (32, 32, 3),
                num_classes=10,
            ).parameters
            / mnist
            for normal in (3, 4)
            for repeats in (1, 3)
        }
        assert ratios.pop((3, 1)) == pytest.approx(paper, rel=0.1)
        assert min(ratios.values()) > 1.5 * paper


def test_markdown_by_hand(tmp_path: pathlib.Path):
    rows = [
        paper_tables.published_row("deepswarm", TRANSFER),
        paper_tables.published_row("evoA", TRANSFER)
        | MEASURED
        | {"resize": "mnist_box", "std": 0.0012},
        paper_tables.published_row("small_cnn", MNIST) | MEASURED,
    ]
    text = paper_tables.markdown(rows, "What it is.")
    caption, _, head, _, first, second, third = text.splitlines()
    assert caption == "What it is." and head.count("|") == first.count("|") == second.count("|")
    note = (
        "published only; there the test images had a part in fitness and in the choice of weights"
    )
    assert first == f"| DeepSwarm | usps |  |  | not run |  |  |  | 61.56% | {note} |"
    assert second == (
        "| EvoA | usps, mnist_box | 52,858 | 9,042,112 | 98.76% ± 0.12 | 98.52% to 98.96% | 1,234 "
        "|  | 96.40% "
        "| 3 epochs of 60,000 of 60,000 images |"
    )
    assert third.startswith(
        "| small CNN | mnist | 52,858 | 9,042,112 | 98.76% | 98.52% to 98.96% | 1,234 |  |  |"
    )
    assert paper_tables.sentence(rows[0]) == f"not run; the paper: 61.56%; {note}"
    failed = rows[2] | {"mean": None, "note": "failed: the loss was nan in epoch 2"}
    assert "| failed |" in paper_tables.markdown(
        [failed], ""
    ) and "loss was nan" in paper_tables.markdown([failed], "")
    assert paper_tables.sentence(rows[1]) == (
        "mnist_box: 98.76% (95 % interval 98.52% to 98.96%), 52,858 parameters, 3 epochs of 60,000 "
        "of 60,000 images; "
        "the paper: 96.40%"
    )
    write_csv(tmp_path / "digits.csv", rows)  # all have the columns of the first
    read = list(csv.DictReader((tmp_path / "digits.csv").read_text().splitlines()))
    assert [row["model"] for row in read] == ["DeepSwarm", "EvoA", "small CNN"]
    assert (read[0]["mean"], float(read[1]["mean"]), float(read[1]["std"])) == ("", 0.9876, 0.0012)


def test_samples_of_a_data_set_are_told_from_its_official_split():
    assert paper_tables.unofficial("mnist", 60_000, 10_000) == ""
    assert paper_tables.unofficial("mnist", 60_000, None) == ""
    assert "sample of 20,000 training and 6,000 test images" in paper_tables.unofficial(
        "svhn_cropped", 20_000, 6_000
    )
    assert "sample of 100 training images" in paper_tables.unofficial("mnist", 100, None)


@pytest.mark.parametrize(
    "content", ["[]", "{}", '{"a": 1}', '{"a": NaN}', '{"a": -0.5}', '{"a": "x"}', "[" * 9999]
)
def test_damaged_parts_are_named(content, tmp_path):
    path = tmp_path / "seed0.json"
    path.write_text('{"a": 0.5}')
    assert paper_tables.read_part(path, {"a": float}) == {"a": 0.5}
    path.write_text(content)
    with pytest.raises(InputError, match=f"{path} is damaged"):
        paper_tables.read_part(path, {"a": float})
