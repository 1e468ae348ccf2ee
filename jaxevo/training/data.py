"""Images where they are trained on."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from jaxevo.datasets import Images
from jaxevo.datasets.splits import training_subset


@dataclasses.dataclass(frozen=True)
class TrainingData:
    """`M` images on the device, and which of them a training reads.

    Attributes:
        images: uint8 `[M, H, W, C]`.
        labels: int32 `[M]`.
        subset: Sorted indices of the images to train on.
        class_weights: How much an image of each class counts, float32 `[classes]`; None: all alike.
    """

    images: jax.Array
    labels: jax.Array
    subset: np.ndarray
    class_weights: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        images: Images,
        subset: np.ndarray | None = None,
        class_weights: np.ndarray | None = None,
    ) -> TrainingData:
        """Puts images on the device; without a subset all of them are trained on."""
        pixels, labels = jax.device_put((images.images, images.labels))
        everything = np.arange(len(images))
        return cls(pixels, labels, everything if subset is None else subset, class_weights)

    @classmethod
    def drawn(
        cls,
        images: Images,
        train_examples: int,
        seed: int,
        *,
        class_weights: np.ndarray | None = None,
    ) -> TrainingData:
        """The data with a stratified subset of `train_examples` images; 0 takes all."""
        subset = training_subset(images.labels, train_examples, seed)
        return cls.of(images, subset, class_weights)

    def with_subset(self, subset: np.ndarray) -> TrainingData:
        """The same images, of which others are trained on."""
        return dataclasses.replace(self, subset=subset)

    def whole(self) -> TrainingData:
        """The same images, all of which are trained on."""
        return self.with_subset(np.arange(len(self.labels)))


def balanced_weights(labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Weights of classes by which all count alike, float32 `[num_classes]`.

    The mean over the images is 1. A class without images has weight 0.

    Args:
        labels: int `[M]`, from 0 to `num_classes` - 1.
        num_classes: Number of classes.
    """
    counts = np.bincount(labels, minlength=num_classes)
    present = np.count_nonzero(counts)
    weights = len(labels) / (present * counts.clip(min=1))
    return np.where(counts > 0, weights, 0).astype(np.float32)
