"""Intervals of measured shares against their formulas, worked out by hand."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from scipy.stats import binom

from jaxevo import intervals as intervals_module
from jaxevo.intervals import (
    accuracy_interval,
    mean_interval,
    sign_test,
    summarize,
    wilson_interval,
)

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


def corrected(share: float, trials: int) -> tuple[float, float]:
    """Wilson's limits with a correction for continuity, as Newcombe (1998) prints them."""
    other = 1 - share
    low = 2 * trials * share + Z**2 - 1
    low -= Z * math.sqrt(Z**2 - 2 - 1 / trials + 4 * share * (trials * other + 1))
    high = 2 * trials * share + Z**2 + 1
    high += Z * math.sqrt(Z**2 + 2 - 1 / trials + 4 * share * (trials * other - 1))
    return low / (2 * (trials + Z**2)), high / (2 * (trials + Z**2))


def test_several_accuracies_have_an_interval_of_trainings_and_images():
    summary = summarize([0.90, 0.92, 0.94], 100)
    # Deviation 0.02; t of two degrees of freedom at 97.5 % is 4.302653.
    trainings = 4.302653 * 0.02 / math.sqrt(3)
    low, high = corrected(0.92, 100)
    expected = [0.92 - math.hypot(0.92 - low, trainings), 0.92 + math.hypot(high - 0.92, trainings)]
    assert summary["mean"] == pytest.approx(0.92)
    assert summary["std"] == pytest.approx(0.02)
    assert summary["interval"] == pytest.approx([expected[0], min(1.0, expected[1])], abs=1e-6)


def test_equal_accuracies_leave_the_images():
    assert summarize([0.97] * 3, 200)["interval"] == pytest.approx(corrected(0.97, 200), abs=1e-6)


@pytest.mark.parametrize("accuracies", [(0.5, 1.0), (1.0, 1.0), (0.98, 0.98, 0.98), (0.0, 0.0)])
def test_an_interval_of_several_contains_that_of_one_and_ends_where_accuracies_do(accuracies):
    mean = sum(accuracies) / len(accuracies)
    one_low, one_high = accuracy_interval(mean, 50)
    low, high = mean_interval(accuracies, 50)
    assert 0 <= low <= one_low and one_high <= high <= 1


def measured(
    rng: np.random.Generator, seeds: int, accuracy: float, *, shared: bool, spread: float
) -> np.ndarray:
    """Accuracies `[TRIALS, seeds]` of trainings with this mean accuracy, on new images each time.

    A training errs on an image whose difficulty, uniform in [0, 1], is below its rate of errors.

    Args:
        rng: Draws.
        seeds: Trainings in a trial.
        accuracy: Mean over all possible trainings and images.
        shared: Whether an image is as difficult for all trainings of a trial, so that their errors
            fall on the same images; else their errors are independent.
        spread: Standard deviation of trainings' rates, in that which the images alone cause.
    """
    error = 1 - accuracy
    rates = np.full((TRIALS, seeds), error)
    if spread:
        scale = spread**2 * accuracy / IMAGES
        rates = np.minimum(1, rng.gamma(error / scale, scale, (TRIALS, seeds)))
    if not shared:
        return 1 - rng.binomial(IMAGES, rates) / IMAGES
    # The images between one training's rate and the next higher one.
    order = np.argsort(rates, 1)
    steps = np.diff(np.take_along_axis(rates, order, 1), prepend=0, append=1)
    errors = np.empty((TRIALS, seeds))
    np.put_along_axis(errors, order, rng.multinomial(IMAGES, steps)[:, :-1].cumsum(1), 1)
    return 1 - errors / IMAGES


TRIALS = 300
IMAGES = 2000


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("accuracy", [0.9, 0.99, 0.999])
@pytest.mark.parametrize("seeds", [2, 3, 5, 10])
def test_an_interval_of_several_covers_the_mean(seeds, accuracy, shared, spread, monkeypatch):
    # Most trials have the successes of another one.
    monkeypatch.setattr(intervals_module, "wilson_interval", functools.cache(wilson_interval))
    rng = np.random.default_rng([seeds, round(1000 * accuracy), shared, round(spread)])
    trials = measured(rng, seeds, accuracy, shared=shared, spread=spread)
    intervals = [mean_interval(trial, IMAGES) for trial in trials]
    covered = sum(low <= accuracy <= high for low, high in intervals)
    # As few as one in a thousand such counts, were the coverage 94 %.
    assert covered >= binom.ppf(0.001, TRIALS, 0.94)
