"""A result in words."""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import subprocess

import numpy as np
import pytest
from builders_runs import make_result

from jaxevo.run.confusion import Confusion
from jaxevo.run.result import BaselineScores
from jaxevo.run.words import (
    accuracy_line,
    class_line,
    commands_of,
    format_duration,
    result_lines,
    where_time_went,
    worth_lines,
)

RESULT = make_result(
    pathlib.Path("runs/a"),
    id=7,
    retrained_fitness=0.97,
    validation_accuracy=0.9512,
    test_accuracy=0.9634,
    test_interval=(0.9401, 0.9789),
    test_images=12_345,
    parameters=23_456,
    multiply_adds=3_456_789,
    candidates=200,
    trainings=160,
    memo_hits=50,
    failures=3,
    session_seconds={"compile": 25.0, "train": 50.0, "other": 25.0},
    generation=None,
    first_id=None,
    first_fitness=None,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.001, "0 s"),
        (0.04, "0.04 s"),
        (0.41, "0.4 s"),
        (0.97, "1 s"),
        (59.6, "60 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (150, "2 min"),  # to the nearest even number
        (151, "3 min"),
        (5399, "90 min"),
        (5400, "1.5 h"),
        (86_400, "24.0 h"),
    ],
)
def test_durations(seconds: float, text: str):
    assert format_duration(seconds) == text


def test_a_result_is_told_in_four_lines():
    assert result_lines(RESULT) == [
        "test accuracy 96.34% (95 % interval 94.01% to 97.89%, 12,345 images), "
        "validation accuracy 95.12%",
        "23,456 parameters, 3,456,789 multiply-adds an image",
        "200 candidates, 50 (25%) isomorphic to an earlier one, 3 failed; 160 trainings",
        "2 min in the session that ended it: compile 25%, train 50%, other 25%",
    ]


def test_without_test_images_no_test_accuracy_is_told():
    fields = {"test_accuracy": None, "test_interval": None, "test_images": None}
    untested = dataclasses.replace(RESULT, **fields)
    assert accuracy_line(untested) == "validation accuracy 95.12%"
    assert not any("test" in line for line in result_lines(untested))


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"generation": 3}, "the winner was born in generation 3"),
        (
            {"generation": 3, "first_id": 2, "first_fitness": 0.9549},
            "the winner was born in generation 3; trained again it has a fitness of 97.00%, "
            "the best of the first generation 95.49%: the search gained 1.51 "
            "points of fitness",
        ),
        (
            {"generation": 3, "first_id": 2, "first_fitness": 0.98},
            "the winner was born in generation 3; trained again it has a fitness of 97.00%, "
            "the best of the first generation 98.00%: the search gained nothing "
            "(-1.00 points of fitness)",
        ),
        (
            {"generation": 0, "first_id": 7, "first_fitness": 0.97},
            "the winner was born in generation 0 and is the best of it: the search gained nothing",
        ),
    ],
)
def test_what_the_search_gained(fields, line):
    assert worth_lines(dataclasses.replace(RESULT, **fields)) == [line]


@pytest.mark.parametrize(
    ("accuracy", "alone", "answer", "outcome"),
    [
        (0.90, (900, 117), "yes", "the winner is better by 6.34 points, which chance hardly"),
        (
            0.96,
            (30, 20),
            "perhaps",
            "the winner is better by 0.34 points, which chance may explain",
        ),
        (0.9634, (5, 5), "no", "the winner is not better"),
        (0.97, (20, 30), "no", "the winner lost to it by 0.66 points, which chance may explain"),
        (0.99, (10, 338), "no", "the winner lost to it by 2.66 points, which chance hardly"),
    ],
)
def test_whether_the_search_was_worth_it(accuracy, alone, answer, outcome):
    baseline = BaselineScores(19_258, 100_000, 0.5, accuracy, *alone)
    (line,) = worth_lines(dataclasses.replace(RESULT, baseline=baseline))
    assert line.startswith(
        f"was the search worth it? {answer}: the small hand-designed CNN (19,258"
    )
    assert f"has a test accuracy of {accuracy:.2%}; {outcome}" in line
    assert line in result_lines(dataclasses.replace(RESULT, baseline=baseline))


def test_without_test_images_the_validation_tells_whether_it_was_worth_it():
    untested = {"test_accuracy": None, "test_interval": None, "test_images": None}
    baseline = BaselineScores(19_258, 100_000, 0.9612, None, 3, 9)
    (line,) = worth_lines(dataclasses.replace(RESULT, **untested, baseline=baseline))
    assert "has a validation accuracy of 96.12%; the winner lost to it by 1.00 points" in line


def test_why_the_small_cnn_is_left_out():
    reason = "small_cnn needs images of at least 4x4 pixels, these have 3x3"
    assert worth_lines(dataclasses.replace(RESULT, no_baseline=reason)) == [
        f"the small CNN is left out: {reason}"
    ]


def test_test_accuracies_that_were_known_before_are_told():
    continued = dataclasses.replace(RESULT, earlier_tests=(0.95, 0.9612))
    assert result_lines(continued)[1] == (
        "the run was continued when its test accuracy was known: 95.00%, 96.12%"
    )


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ([[5, 0], [0, 3]], "every image is classified rightly"),
        (
            [[5, 0], [0, 0]],
            "every image is classified rightly; no image is of dog; to name cat each"
            " time would be right for 100.00%",
        ),
        (
            [[19, 0], [1, 0]],
            "weakest classes: dog 0.00%; balanced accuracy, the mean of all classes: 50.00%;"
            " to name cat each time would be right for 95.00%",
        ),
        ([[4, 1], [0, 3]], "weakest classes: cat 80.00%"),
        ([[8, 2], [3, 3]], "weakest classes: dog 50.00%, cat 80.00%; dog is taken for cat 3 times"),
        (
            [[6, 2], [1, 3]],
            "weakest classes: cat 75.00%, dog 75.00%; cat is taken for dog 2 times;"
            " balanced accuracy, the mean of all classes: 75.00%",
        ),
        (
            [[0, 0], [1, 3]],
            "weakest classes: dog 75.00%; no image is of cat; to name dog each time"
            " would be right for 100.00%",
        ),
    ],
)
def test_the_weakest_classes(counts, line):
    assert class_line(Confusion(("cat", "dog"), np.array(counts))) == line


def test_test_images_that_were_trained_on_are_told():
    leaked = dataclasses.replace(RESULT, test_repeated=1234)
    note = "1,234 of 12,345 test images are training images too, which flatters the accuracy"
    assert worth_lines(leaked)[0] == result_lines(leaked)[1] == note


def test_no_time_went_anywhere_in_no_time():
    assert where_time_went({"train": 0.0}) == "0 s in the session that ended it: train 0%"


def test_commands_can_be_copied_as_they_are():
    assert commands_of(RESULT) == [
        "python -m jaxevo eval --weights=runs/a/best --dataset=digits",
        "python -m jaxevo predict --weights=runs/a/best IMAGE...",
        "python -m jaxevo inspect --workdir=runs/a",
    ]
    unnamed = commands_of(dataclasses.replace(RESULT, dataset="arrays"))  # of Python
    assert unnamed == commands_of(RESULT)[1:]


@pytest.mark.parametrize("name", ["my run", "it's $HOME", "a;b&c|d", "*?[x]", "~/x", "été"])
def test_commands_quote_what_a_shell_would_read_otherwise(name: str):
    result = make_result(pathlib.Path(name), dataset=f"{name}/photos")
    words = [shlex.split(line) for line in commands_of(result, f"{name}/files")]
    assert words == [
        [
            *("python", "-m", "jaxevo", "eval", f"--weights={name}/best"),
            *(f"--dataset={name}/photos", f"--data_dir={name}/files"),
        ],
        ["python", "-m", "jaxevo", "predict", f"--weights={name}/best", "IMAGE..."],
        ["python", "-m", "jaxevo", "inspect", f"--workdir={name}"],
    ]
    shown = commands_of(result)[2].replace("python -m jaxevo inspect", "printf %s")
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    assert done.stdout == f"--workdir={name}"
