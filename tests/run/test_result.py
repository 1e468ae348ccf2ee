"""A result that was written is read back as it was, and refused if it is not of its history."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import pytest
from builders import chain
from builders_runs import make_result

from jaxevo.files import FileError, read_json, write_json
from jaxevo.run.result import BaselineScores, Kept, Result, read_result
from jaxevo.run.workdir import Workdir

GENOMES = {0: chain(1), 7: chain(2)}
ALONE = {"winner_alone": 1, "baseline_alone": 2}
UNTESTED: dict[str, Any] = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))


@pytest.fixture
def workdir(tmp_path: pathlib.Path) -> Workdir:
    return Workdir(tmp_path)


@pytest.fixture
def result(workdir: Workdir) -> Result:
    return make_result(
        workdir.path,
        GENOMES[7],
        id=7,
        seconds={"compile": 1.0, "train": 60.0, "evaluate": 2.0, "final": 10.0},
        earlier_tests=(0.9,),
        generation=3,
        first_id=0,
        first_fitness=0.9,
        baseline=BaselineScores(19_258, 100_000, 0.94, 0.95, 9, 7),
        kept=(Kept(0, 0.9, 0.91, 1000),),
        final_losses=(0.5, 0.25),
        final_accuracies=(0.9, 0.95),
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        UNTESTED,
        {"baseline": None, "no_baseline": "the images are too small", "kept": ()},
        {"baseline": BaselineScores(1, 1, 0.5, None, 0, 0)},
    ],
)
def test_a_result_is_read_back_as_it_was_written(workdir, result, change: dict[str, Any]):
    result = dataclasses.replace(result, **change)
    write_json(workdir.result, result.to_dict())
    assert read_result(workdir, GENOMES, searched=True) == result


def test_a_result_of_an_earlier_version_lacks_later_values(workdir, result):
    document = result.to_dict()
    came_later = {"generation", "first_id", "first_fitness", "baseline", "no_baseline", "kept"}
    curve = {"final_losses", "final_accuracies"}
    for name in {"earlier_tests", *came_later, *curve}:
        del document[name]
    write_json(workdir.result, document)
    none = dict.fromkeys(came_later) | dict.fromkeys(curve, ())
    none |= {"no_baseline": "", "kept": (), "earlier_tests": ()}
    later = dataclasses.replace(result, **none)
    assert read_result(workdir, GENOMES, searched=True) == later


def test_the_document_has_every_field_but_genome_and_path(result):
    names = {field.name for field in dataclasses.fields(Result)} - {"genome", "path"}
    assert result.to_dict().keys() == names


def test_without_a_result_the_run_is_incomplete(workdir):
    assert read_result(workdir, GENOMES, searched=True) is None


def test_weights_lie_in_the_folder_of_the_run(workdir, result):
    assert result.weights == workdir.best_weights


def test_a_result_is_not_one_of_a_search_that_goes_on(workdir, result):
    write_json(workdir.result, result.to_dict())
    with pytest.raises(FileError, match="it is not the result of this history"):
        read_result(workdir, GENOMES, searched=False)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 3}, "it is not the result of this history"),
        ({"test_interval": [0.5]}, "it is not the result of this history"),
        ({"test_interval": ["a", "b"]}, r"test_interval\[0\] is 'a', not of type float"),
        ({"validation_accuracy": None}, "validation_accuracy is None, not of type float"),
        ({"candidates": 2.5}, "candidates is 2.5, not of type int"),
        ({"candidates": 0}, "candidates is 0, which is below 1"),
        ({"memo_hits": 10**400}, r"memo_hits is 1000\d*\.\.\.\d*, not a number up to"),
        ({"parameters": -1}, "parameters is -1, which is below 0"),
        ({"seconds": {"train": 1.0}}, "final is missing"),
        ({"seconds": 7}, "seconds is 7, not of type dict"),
        ({"baseline": 7}, "baseline is 7, not of type dict"),
        ({"baseline": {}}, "baseline: winner_alone is missing"),
        ({"baseline": ALONE | {"winner_alone": -1}}, r"no number of images: \[-1, 2\]"),
        ({"baseline": ALONE | {"winner_alone": 10**12}}, "no number of images"),
        ({"baseline": ALONE}, "baseline: parameters is missing"),
        ({"final_losses": [0.5]}, "final_losses and final_accuracies have not as many epochs"),
        ({"test_repeated": -1}, "test_repeated is -1, no number of test images"),
        ({"test_repeated": 10**6}, "test_repeated is 1000000, no number of test images"),
        ({"kept": [7]}, r"kept\[0\] is 7, not of type dict"),
        ({"kept": [{"id": 3}]}, "kept: individual 3 is not one of this history"),
    ],
)
def test_a_damaged_result_is_refused_by_name(workdir, result, change: dict[str, Any], reason: str):
    write_json(workdir.result, result.to_dict() | change)
    with pytest.raises(FileError, match=reason) as caught:
        read_result(workdir, GENOMES, searched=True)
    assert str(workdir.result) in str(caught.value)


@pytest.mark.parametrize("name", ["id", "dataset", "test_accuracy", "session_seconds"])
def test_a_result_of_which_a_value_is_missing_is_refused(workdir, result, name: str):
    write_json(workdir.result, result.to_dict())
    document = read_json(workdir.result)
    del document[name]
    write_json(workdir.result, document)
    with pytest.raises(FileError, match=f"{name} is missing"):
        read_result(workdir, GENOMES, searched=True)
