"""Intervals of measured shares against their formulas, worked out by hand."""

from __future__ import annotations

import math

import pytest

from jaxevo.intervals import accuracy_interval, sign_test, summarize, wilson_interval

Z = 1.959964  # of 95 %


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's formula as in a textbook."""
    share = successes / trials
    centre = share + Z**2 / (2 * trials)
    half = Z * math.sqrt(share * (1 - share) / trials + Z**2 / (4 * trials**2))
    scale = 1 + Z**2 / trials
    return (centre - half) / scale, (centre + half) / scale


@pytest.mark.parametrize("successes, trials", [(5, 10), (1, 10), (95, 100), (9721, 10_000)])
def test_wilson_is_the_formula(successes: int, trials: int):
    assert wilson_interval(successes, trials) == pytest.approx(wilson(successes, trials), abs=1e-6)


def test_wilson_by_hand():
    # 1 of 2: centre 1/2, half = z sqrt(1/8 + z^2/16) / (1 + z^2/2) = 0.4055.
    assert wilson_interval(1, 2) == pytest.approx((0.0945, 0.9055), abs=1e-4)


@pytest.mark.parametrize("trials", [1, 10, 1000])
def test_wilson_stays_within_0_and_1_and_is_never_a_point(trials: int):
    low, high = wilson_interval(0, trials)
    assert low == 0 and high == pytest.approx(Z**2 / (trials + Z**2), abs=1e-6)
    low, high = wilson_interval(trials, trials)
    assert low == pytest.approx(trials / (trials + Z**2), abs=1e-6) and high == 1


def test_the_sign_test_by_hand():
    # 5 of 5: 2 / 2^5. 4 of 5: 2 (1 + 5) / 2^5. Half of them: certain. None: nothing is shown.
    assert sign_test(5, 0) == sign_test(0, 5) == pytest.approx(0.0625)
    assert sign_test(4, 1) == pytest.approx(0.375)
    assert sign_test(3, 3) == sign_test(0, 0) == 1


def test_an_accuracy_counts_whole_images():
    assert accuracy_interval(0.97, 200) == wilson_interval(194, 200)
    assert accuracy_interval(0.1 + 0.2, 10) == wilson_interval(3, 10)  # 0.30000000000000004


def test_one_accuracy_has_the_interval_of_its_images_and_no_deviation():
    summary = summarize([0.95], 100)
    low, high = wilson_interval(95, 100)
    expected = {"mean": 0.95, "std": None, "interval": [low, high], "accuracies": [0.95]}
    assert summary == expected | {"images": 100}


def test_several_accuracies_have_students_interval():
    summary = summarize([0.90, 0.92, 0.94], 100)
    # Deviation 0.02; t of two degrees of freedom at 97.5 % is 4.302653.
    half = 4.302653 * 0.02 / math.sqrt(3)
    assert summary["mean"] == pytest.approx(0.92)
    assert summary["std"] == pytest.approx(0.02)
    assert summary["interval"] == pytest.approx([0.92 - half, 0.92 + half], abs=1e-6)


@pytest.mark.parametrize("accuracies, interval", [([0.5, 1.0], [0.0, 1.0]), ([1.0, 1.0], [1, 1])])
def test_students_interval_is_cut_to_where_accuracies_lie(accuracies, interval):
    assert summarize(accuracies, 10)["interval"] == interval
