"""Intervals of measured shares: of one measurement, and of a mean over trainings.

One accuracy has Wilson's interval, over the images alone. A mean over several trainings varies with
the trainings and with the images, which all trainings share: they often fail on the same ones. Its
interval has both parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

SIGNIFICANT = 0.05  # p-values below it are called so


def wilson_interval(successes: int, trials: int, method: str = "wilson") -> tuple[float, float]:
    """Wilson's 95 % interval of a probability, from that many successes in that many trials.

    `method="wilsoncc"` makes a correction for continuity, by which the interval is wider.
    """
    from scipy.stats import binomtest  # here, as its import takes a second

    interval = binomtest(successes, trials).proportion_ci(0.95, method=method)
    return float(interval.low), float(interval.high)


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p-value of so many wins and losses, were both as likely (exact McNemar test)."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def accuracy_interval(accuracy: float, images: int) -> tuple[float, float]:
    """Wilson's 95 % interval of an accuracy measured on that many images."""
    return wilson_interval(round(accuracy * images), images)


def mean_interval(accuracies: Sequence[float], images: int) -> tuple[float, float]:
    """The 95 % interval of the mean accuracy over trainings, each scored on the same images.

    It holds for other trainings and other images of the same kind. Two intervals are added by the
    squares of their halves (Newcombe, Statistics in Medicine 17, 1998, 873-890; Zou and Donner,
    ibid. 27, 2008, 1693-1702): Student's for the spread between trainings, and Wilson's with a
    correction for continuity for the images. The latter is not divided by the number of trainings,
    as if all failed on the same images; where their errors are independent, it is wider than need
    be. The sum contains Wilson's interval of one training with the mean accuracy.

    Args:
        accuracies: From 0 to 1, of two or more trainings.
        images: Number of images that each was scored on.
    """
    from scipy.stats import t

    number = len(accuracies)
    mean = float(np.mean(accuracies))
    trainings = float(t.ppf(0.975, number - 1) * np.std(accuracies, ddof=1)) / math.sqrt(number)
    low, high = wilson_interval(round(mean * images), images, "wilsoncc")
    below = math.hypot(mean - low, trainings)
    above = math.hypot(high - mean, trainings)
    return max(0.0, mean - below), min(1.0, mean + above)


def summarize(accuracies: Sequence[float], images: int) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of a model's accuracies.

    The interval is `mean_interval` of several trainings, and `accuracy_interval` of one.
    """
    mean = float(np.mean(accuracies))
    several = len(accuracies) > 1
    interval = mean_interval(accuracies, images) if several else accuracy_interval(mean, images)
    return {
        "mean": mean,
        "std": float(np.std(accuracies, ddof=1)) if several else None,
        "interval": list(interval),
        "accuracies": list(accuracies),
        "images": images,
    }
