"""Scores of the winner and of the small CNN, from predictions written by hand."""

from __future__ import annotations

import numpy as np
import pytest

from jaxevo.intervals import accuracy_interval
from jaxevo.run.result import BaselineScores
from jaxevo.run.scoring import Predictions, baseline_scores, winner_scores
from jaxevo.search_space.complexity import Complexity

LABELS = np.array([0, 1, 2, 3], np.int32)
VALIDATION = Predictions(LABELS, np.array([0, 1, 2, 0]), np.array([0, 0, 0, 0]))
TEST = Predictions(LABELS[:3], np.array([0, 0, 0]), np.array([1, 1, 2]))
SIZE = Complexity(19_258, 100_000)


def test_the_winner_is_scored_on_both():
    assert winner_scores(VALIDATION, TEST) == {
        "validation_accuracy": 0.75,
        "test_accuracy": pytest.approx(1 / 3),
        "test_interval": accuracy_interval(1 / 3, 3),
        "test_images": 3,
    }
    untested = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))
    assert winner_scores(VALIDATION, None) == untested | {"validation_accuracy": 0.75}


def test_the_small_cnn_is_compared_on_the_test_images_if_there_are_any():
    of_test = BaselineScores(19_258, 100_000, 0.25, pytest.approx(2 / 3), 1, 2)
    assert baseline_scores(VALIDATION, TEST, SIZE) == of_test
    # Without a test on the validation images, of which the winner alone knows two.
    of_validation = BaselineScores(19_258, 100_000, 0.25, None, 2, 0)
    assert baseline_scores(VALIDATION, None, SIZE) == of_validation
