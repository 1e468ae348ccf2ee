"""Comparisons by hand: curves, means, paired tests and the tables made of them."""

import dataclasses
import json
from typing import Any

import pytest
from builders_runs import GENOME, LAST, RESULT, individual_record, table_records, write_run
from scipy.stats import ttest_1samp

from jaxevo.errors import InputError
from jaxevo.reports import comparison
from jaxevo.reports.comparison import Failure, FinishedRun
from jaxevo.run.reader import load_run

# strategy, seed, best validation, test accuracy, parameters, trainings, candidates, generations,
# winner, curve, epochs
TABLE = [
    FinishedRun("rea", 0, 0.90, 0.89, 1000, 3, 4, 2, "a", (0.5, 0.8, 0.9), 45),
    FinishedRun("rea", 1, 0.94, 0.91, 3000, 3, 3, 1, "b", (0.0, 0.8, 0.94), 40),
    FinishedRun("random", 0, 0.80, 0.85, 2000, 2, 2, 2, "c", (0.7, 0.8), 30),
    FinishedRun("random", 1, 0.90, 0.91, 2000, 3, 3, 2, "d", (0.7, 0.8, 0.9), 45),
]


def of_strategy(name: str, outcomes: list[FinishedRun], **changed: Any) -> list[FinishedRun]:
    return [dataclasses.replace(each, strategy=name, **changed) for each in outcomes]


def test_what_came_out_of_a_run(tmp_path):
    workdir = write_run(tmp_path / "run", [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(RESULT))
    found = comparison.outcome("aging", load_run(workdir))
    # Fitness in order: 0.5, failed, 0.6, 0.7, 0.6 of another's, 0.65, 0.1.
    assert found.curve == (0.5, 0.5, 0.6, 0.7, 0.7, 0.7)
    key = GENOME.canonical_key()
    assert found == FinishedRun("aging", 0, 0.7, 0.55, 10, 6, 7, 3, key, found.curve, 6 * 15)


def test_epochs_are_counted_that_a_race_let_be(tmp_path):
    records = [*table_records(), individual_record(LAST)]
    raced = [
        record | {"losses": [1.0, 0.5]} if record.get("fitness") is not None else record
        for record in records
    ]
    workdir = write_run(tmp_path / "run", raced)
    workdir.result.write_text(json.dumps(RESULT))
    # One of the six trainings has failed, and may have taken all of its epochs.
    assert comparison.outcome("aging", load_run(workdir)).epochs == 5 * 2 + 15


def test_searches_by_another_fitness_are_compared_by_accuracy(tmp_path):
    def by_speed(record: dict[str, Any]) -> dict[str, Any]:
        fitness = record.get("fitness")
        scores = {"accuracy": fitness and fitness / 2, "cross_entropy": None, "loss": None}
        return record | scores if record["kind"] == "individual" else record

    records = [*table_records(), individual_record(LAST)]
    workdir = write_run(tmp_path / "run", [by_speed(record) for record in records])
    workdir.result.write_text(json.dumps(RESULT))
    found = comparison.outcome("guided", load_run(workdir))
    assert found.curve == (0.25, 0.25, 0.3, 0.35, 0.35, 0.35) and found.validation == 0.35


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_without_a_test_accuracy_is_refused(tmp_path, ended: bool):
    workdir = write_run(tmp_path / "run", [*table_records(), individual_record(LAST)])
    if ended:
        untested = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))
        workdir.result.write_text(json.dumps(RESULT | untested))
    with pytest.raises(InputError, match=f"^{workdir.path} has no test accuracy to compare: let"):
        comparison.outcome("aging", load_run(workdir))


def test_curves_are_filled_up_by_their_best():
    curves = comparison.curves(TABLE)
    assert curves["rea"].tolist() == [[0.5, 0.8, 0.9], [0.0, 0.8, 0.94]]
    assert curves["random"].tolist() == [[0.7, 0.8, 0.8], [0.7, 0.8, 0.9]]


def test_summary():
    rea, random = comparison.summary(TABLE)
    assert (rea["strategy"], rea["seeds"], random["strategy"]) == ("rea", 2, "random")
    assert rea["validation"] == pytest.approx(0.92) and rea["validation_sd"] == pytest.approx(
        0.04 / 2**0.5
    )
    assert (rea["test"], rea["parameters"], rea["duplicates"]) == pytest.approx((0.9, 2000, 0.125))
    assert rea["epochs"] == 42.5
    assert comparison.summary(TABLE[:1])[0]["test_sd"] is None


def test_paired_tests():
    validation, test = comparison.paired_tests(TABLE)
    assert validation["strategies"] == test["strategies"] == "rea - random"
    assert (validation["difference"], test["difference"]) == pytest.approx((0.07, 0.02))
    assert validation["wilcoxon_p"] == 0.5  # of four possible signs two are as extreme
    assert validation["t_p"] == pytest.approx(ttest_1samp([0.10, 0.04], 0).pvalue)
    (alone, _) = comparison.paired_tests([TABLE[0], TABLE[2]])
    assert (alone["difference"], alone["wilcoxon_p"], alone["t_p"]) == (
        pytest.approx(0.1),
        None,
        None,
    )
    same = comparison.paired_tests([*TABLE[:2], *of_strategy("twin", TABLE[:2])])
    assert [(row["difference"], row["wilcoxon_p"]) for row in same] == [(0, None)] * 2


def test_pairs_are_of_the_same_seed():
    shuffled = comparison.paired_tests([TABLE[1], TABLE[0], TABLE[2], TABLE[3]])
    assert shuffled == comparison.paired_tests(TABLE)
    (row, _) = comparison.paired_tests([*TABLE[:2], TABLE[3]])
    assert (row["seeds"], row["difference"]) == (1, pytest.approx(0.04))
    assert comparison.paired_tests([TABLE[0], TABLE[3]]) == []


def test_markdown_says_how_much_the_seeds_can_show():
    text = comparison.markdown(TABLE, "Strategies on a table.")
    for line in (
        "| rea | 2 | 92.00% ± 2.83 | 90.00% ± 1.41 | 2,000 | 3.0 | 42 | 12% |",
        "| rea - random | validation | +7.00 points | 0.500 | 0.258 |",
    ):
        assert line in text.splitlines()
    assert (
        "with 2 seeds the Wilcoxon test cannot give less than 0.5. So few seeds can hardly show"
        in text
    )
    assert "| 90.00% | 89.00% |" in (one := comparison.markdown([TABLE[0], TABLE[2]], "One seed."))
    assert "With one seed nothing can be said about chance." in one
    many = [
        dataclasses.replace(each, seed=seed) for seed in range(10) for each in (TABLE[0], TABLE[2])
    ]
    of_many = comparison.markdown(many, "")
    assert "cannot give less than 0.00195." in of_many and "hardly" not in of_many


def test_the_curves_in_a_table():
    lines = comparison.markdown(TABLE, "").splitlines()
    at = lines.index(
        "| best validation so far after trainings | 1 | 2 | 3 |"
    )  # a sixth and a third of 3 are both 1
    assert lines[at + 2 : at + 4] == [
        "| rea | 25.00% ± 35.36 | 80.00% ± 0.00 | 92.00% ± 2.83 |",
        "| random | 70.00% ± 0.00 | 80.00% ± 0.00 | 85.00% ± 7.07 |",
    ]
    longer = [dataclasses.replace(TABLE[0], curve=tuple(k / 100 for k in range(1, 61)))]
    lines = comparison.markdown(longer, "").splitlines()
    at = lines.index("| best validation so far after trainings | 10 | 20 | 40 | 60 |")
    assert lines[at + 2] == "| rea | 10.00% | 20.00% | 40.00% | 60.00% |"


@pytest.mark.parametrize("change", [{"curve": (0.5, 0.9, 0.9)}, {"winner": "e"}])
def test_strategies_that_found_the_same_are_named(change: dict[str, Any]):
    twins = [
        *of_strategy("twin", TABLE[:2]),
        *of_strategy("third", TABLE[1::-1]),
    ]  # the order makes no difference
    assert comparison.alike([*TABLE, *twins]) == [["rea", "twin", "third"]]
    said = "rea, twin and third found the same in every seed: this budget cannot tell them apart."
    assert said in comparison.markdown([*TABLE, *twins], "").splitlines()
    another = [*of_strategy("twin", TABLE[:1]), *of_strategy("twin", TABLE[1:2], **change)]
    assert comparison.alike([*TABLE, *another]) == []
    assert "found the same" not in comparison.markdown([*TABLE, *another], "")


def test_a_strategy_that_selected_nothing_is_named():
    said = "random never got beyond its first generation: within this budget it selected nothing."
    assert "first generation" not in comparison.markdown(TABLE, "")
    lines = comparison.markdown(
        [*TABLE[:2], *of_strategy("random", TABLE[2:], generations=1)], ""
    ).splitlines()
    assert said in lines and not any(
        line.startswith("rea never") for line in lines
    )  # of rea one seed did


def test_failed_runs_are_left_out_by_name():
    failures = [
        Failure("rea", 2, "all is NaN"),
        Failure("aco", 0, "too large"),
        Failure("aco", 1, "too large"),
    ]
    text = comparison.markdown(TABLE, "", failures)
    for line in (
        "| rea | 2, 1 failed | 92.00% ± 2.83 | 90.00% ± 1.41 | 2,000 | 3.0 | 42 | 12% |",
        "| aco | 0, 2 failed | - | - | - | - | - | - |",
        "rea, seed 2, is left out, as it failed: all is NaN.",
        "aco, seed 1, is left out, as it failed: too large.",
    ):
        assert line in text.splitlines()
    assert comparison.document(TABLE, {}, failures)["failures"][1] == {
        **{"strategy": "aco", "seed": 0, "reason": "too large"},
    }


def test_rows_and_document():
    rows = comparison.table_rows(TABLE)
    assert [row["strategy"] for row in rows] == ["rea", "rea", "random", "random"]
    assert rows[1] == {
        **{"strategy": "rea", "seed": 1, "validation": 0.94, "test": 0.91},
        **{"parameters": 3000, "trainings": 3, "candidates": 3, "generations": 1},
        "epochs": 40,
    }
    document = json.loads(
        json.dumps(comparison.document(TABLE, {"rea": {"max_nodes": 6}}), allow_nan=False)
    )
    assert document["runs"][0]["curve"] == [0.5, 0.8, 0.9] and len(document["tests"]) == 2
