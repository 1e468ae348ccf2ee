"""Weights of classes: by hand, and as scikit-learn has them."""

from __future__ import annotations

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from jaxevo.training.data import TrainingData, balanced_weights


def test_balanced_weights_by_hand():
    # Three images of class 0 and one of class 1: 4 / (2 * 3) and 4 / (2 * 1).
    np.testing.assert_allclose(balanced_weights(np.array([0, 0, 1, 0]), 2), [2 / 3, 2])
    # A class without images weighs nothing.
    np.testing.assert_allclose(balanced_weights(np.array([0, 0, 2, 0]), 4), [2 / 3, 0, 2, 0])


def test_balanced_weights_are_scikit_learns():
    labels = np.random.default_rng(0).choice(5, 300, p=[0.5, 0.3, 0.1, 0.07, 0.03])
    expected = compute_class_weight("balanced", classes=np.arange(5), y=labels)
    weights = balanced_weights(labels, 5)
    np.testing.assert_allclose(weights, expected, rtol=1e-6)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights[labels].mean(), 1, rtol=1e-6)


def test_other_subsets_of_the_same_images_have_the_same_weights(few_digits):
    images, _ = few_digits
    weights = balanced_weights(images.labels, 10)
    data = TrainingData.drawn(images, 64, 0, class_weights=weights)
    assert len(data.subset) == 64 and data.class_weights is weights
    assert data.whole().class_weights is weights and len(data.whole().subset) == len(images)
    assert TrainingData.of(images).class_weights is None
