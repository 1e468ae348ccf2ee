"""Accuracy and cross entropy of logits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxevo.training.measurement import measure


def test_scores_worked_by_hand():
    # Probabilities 3/4 and 1/4; the second image is of the less likely class.
    logits = np.log(np.array([[3, 1], [3, 1], [1, 3]], np.float32))
    scores = measure(logits, np.array([0, 1, 1], np.int32))
    assert scores.accuracy == pytest.approx(2 / 3)
    expected = (2 * math.log(4 / 3) + math.log(4)) / 3
    assert scores.cross_entropy == pytest.approx(expected, rel=1e-6)


def test_large_logits_do_not_overflow():
    scores = measure(np.array([[1e4, 0.0]], np.float32), np.array([1], np.int32))
    assert scores == (0.0, pytest.approx(1e4))


def test_a_cross_entropy_says_that_a_logit_is_not_finite():
    scores = measure(np.array([[np.nan, 0.0]], np.float32), np.array([1], np.int32))
    assert not math.isfinite(scores.cross_entropy)
