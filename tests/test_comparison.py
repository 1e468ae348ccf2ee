"""Comparisons by hand: curves, means, paired tests and the tables made of them."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from test_report import LAST, RESULT, individual_record, table_records, write_run

from jaxevo import comparison, records
from jaxevo import config as configs
from jaxevo.comparison import VARIANTS, Outcome
from jaxevo.config import SearchConfig

# strategy, seed, best validation accuracy, test accuracy, parameters, trainings, candidates, curve
TABLE = [
    Outcome("rea", 0, 0.90, 0.89, 1000, 3, 4, (0.5, 0.8, 0.9)),
    Outcome("rea", 1, 0.94, 0.91, 3000, 3, 3, (0.0, 0.8, 0.94)),
    Outcome("random", 0, 0.80, 0.85, 2000, 2, 2, (0.7, 0.8)),
    Outcome("random", 1, 0.90, 0.91, 2000, 3, 3, (0.7, 0.8, 0.9)),
]


def test_what_came_out_of_a_run(tmp_path):
    workdir = write_run(tmp_path / "run", [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(RESULT))
    found = comparison.outcome("aging", records.load(workdir))
    # Fitness in order: 0.5, failed, 0.6, 0.7, 0.6 of another's, 0.65, 0.1.
    assert found.curve == (0.5, 0.5, 0.6, 0.7, 0.7, 0.7)
    assert found == Outcome("aging", 0, 0.7, 0.55, 10, 6, 7, found.curve)


def test_curves_are_filled_up_by_their_best():
    curves = comparison.curves(TABLE)
    assert curves["rea"].tolist() == [[0.5, 0.8, 0.9], [0.0, 0.8, 0.94]]
    assert curves["random"].tolist() == [[0.7, 0.8, 0.8], [0.7, 0.8, 0.9]]


def test_summary():
    rea, random = comparison.summary(TABLE)
    assert (rea["strategy"], rea["seeds"], random["strategy"]) == ("rea", 2, "random")
    assert rea["validation"] == pytest.approx(0.92) and rea["validation_sd"] == pytest.approx(0.04 / 2**0.5)
    assert (rea["test"], rea["parameters"], rea["duplicates"]) == pytest.approx((0.9, 2000, 0.125))
    assert comparison.summary(TABLE[:1])[0]["test_sd"] is None


def test_paired_tests():
    validation, test = comparison.paired_tests(TABLE)
    assert validation["strategies"] == test["strategies"] == "rea - random"
    assert (validation["difference"], test["difference"]) == pytest.approx((0.07, 0.02))
    assert validation["wilcoxon_p"] == 0.5  # of four possible signs two are as extreme
    assert validation["t_p"] == pytest.approx(ttest_1samp([0.10, 0.04], 0).pvalue)
    (alone, _) = comparison.paired_tests([TABLE[0], TABLE[2]])
    assert (alone["difference"], alone["wilcoxon_p"], alone["t_p"]) == (pytest.approx(0.1), None, None)
    same = comparison.paired_tests([*TABLE[:2], *(dataclasses.replace(each, strategy="twin") for each in TABLE[:2])])
    assert [(row["difference"], row["wilcoxon_p"]) for row in same] == [(0, None)] * 2


def test_pairs_are_of_the_same_seed():
    shuffled = comparison.paired_tests([TABLE[1], TABLE[0], TABLE[2], TABLE[3]])
    assert shuffled == comparison.paired_tests(TABLE)
    (row, _) = comparison.paired_tests([*TABLE[:2], TABLE[3]])
    assert (row["seeds"], row["difference"]) == (1, pytest.approx(0.04))


def test_markdown_says_how_much_the_seeds_can_show():
    text = comparison.markdown(TABLE, "Strategies on a table.")
    for line in (
        "| rea | 2 | 92.00% ± 2.83 | 90.00% ± 1.41 | 2,000 | 3.0 | 12% |",
        "| rea - random | validation | +7.00 points | 0.500 | 0.258 |",
    ):
        assert line in text.splitlines()
    assert "with 2 seeds the Wilcoxon test cannot give less than 0.5. So few seeds can hardly show" in text
    assert "| 90.00% | 89.00% |" in (one := comparison.markdown([TABLE[0], TABLE[2]], "One seed."))
    assert "With one seed nothing can be said about chance." in one
    many = [dataclasses.replace(each, seed=seed) for seed in range(10) for each in (TABLE[0], TABLE[2])]
    of_many = comparison.markdown(many, "")
    assert "cannot give less than 0.00195." in of_many and "hardly" not in of_many


def test_rows_and_document():
    rows = comparison.table_rows(TABLE)
    assert [row["strategy"] for row in rows] == ["rea", "rea", "random", "random"]
    assert rows[1] == {
        **{"strategy": "rea", "seed": 1, "validation": 0.94, "test": 0.91},
        **{"parameters": 3000, "trainings": 3, "candidates": 3},
    }
    document = json.loads(json.dumps(comparison.document(TABLE, {"seed": 0}), allow_nan=False))
    assert document["runs"][0]["curve"] == [0.5, 0.8, 0.9] and len(document["tests"]) == 2


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_configurations(name: str):
    config = configs.replace(SearchConfig(), VARIANTS[name])
    assert config.strategy == VARIANTS[name]["strategy"]
    assert np.sum([config == configs.replace(SearchConfig(), other) for other in VARIANTS.values()]) == 1
