"""Scores of a run's winner, and of the small CNN beside it, from their predictions.

Letter: `M` images.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxevo.intervals import accuracy_interval
from jaxevo.run.result import BaselineScores
from jaxevo.search_space.complexity import Complexity


@dataclasses.dataclass(frozen=True)
class Predictions:
    """What two networks say of the same images.

    Attributes:
        labels: Classes of the images, int32 `[M]`.
        winner: Classes that the winner takes them for, int32 `[M]`.
        baseline: Classes that the small CNN takes them for; None without it.
    """

    labels: np.ndarray
    winner: np.ndarray
    baseline: np.ndarray | None = None


def winner_scores(validation: Predictions, test: Predictions | None) -> dict[str, Any]:
    """The fields of a result that say how good its winner is; None for those of no test."""
    scores: dict[str, Any] = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))
    scores["validation_accuracy"] = _share(_right(validation))
    if test is not None:
        tested = _share(_right(test))
        interval = accuracy_interval(tested, len(test.labels))
        scores |= {"test_accuracy": tested, "test_interval": interval}
        scores |= {"test_images": len(test.labels)}
    return scores


def baseline_scores(
    validation: Predictions, test: Predictions | None, size: Complexity
) -> BaselineScores:
    """The small CNN beside the winner; images are counted of the test, if there is one."""
    mine, theirs = _right(test or validation), _baseline_right(test or validation)
    return BaselineScores(
        parameters=size.parameters,
        multiply_adds=size.multiply_adds,
        validation_accuracy=_share(_baseline_right(validation)),
        test_accuracy=None if test is None else _share(theirs),
        winner_alone=int(np.sum(mine & ~theirs)),
        baseline_alone=int(np.sum(theirs & ~mine)),
    )


def _right(predictions: Predictions) -> np.ndarray:
    """Whether the winner is right, bool `[M]`."""
    return predictions.winner == predictions.labels


def _baseline_right(predictions: Predictions) -> np.ndarray:
    """Whether the small CNN is right, bool `[M]`."""
    assert predictions.baseline is not None
    return predictions.baseline == predictions.labels


def _share(right: np.ndarray) -> float:
    return float(np.mean(right))
