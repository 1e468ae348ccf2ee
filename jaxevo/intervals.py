"""Intervals of measured shares: Wilson's for one measurement, Student's over several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

SIGNIFICANT = 0.05  # p-values below it are called so


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a probability, from that many successes in that many trials."""
    from scipy.stats import binomtest  # here, as its import takes a second

    interval = binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p-value of so many wins and losses, were both as likely (exact McNemar test)."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def accuracy_interval(accuracy: float, images: int) -> tuple[float, float]:
    """Wilson's 95 % interval of an accuracy measured on that many images."""
    return wilson_interval(round(accuracy * images), images)


def summarize(accuracies: Sequence[float], images: int) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of a model's accuracies.

    The interval is Student's over several seeds, and Wilson's over the images for one seed.
    Student's may reach over 1, where no accuracy lies: it is cut to [0, 1].
    """
    mean = float(np.mean(accuracies))
    std = None
    interval = accuracy_interval(mean, images)
    if len(accuracies) > 1:
        from scipy.stats import t

        std = float(np.std(accuracies, ddof=1))
        half = float(t.ppf(0.975, len(accuracies) - 1)) * std / math.sqrt(len(accuracies))
        interval = (max(0.0, mean - half), min(1.0, mean + half))
    return {
        "mean": mean,
        "std": std,
        "interval": list(interval),
        "accuracies": list(accuracies),
        "images": images,
    }
