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
    """

    images: jax.Array
    labels: jax.Array
    subset: np.ndarray

    @classmethod
    def of(cls, images: Images, subset: np.ndarray | None = None) -> TrainingData:
        """Puts images on the device; without a subset all of them are trained on."""
        pixels, labels = jax.device_put((images.images, images.labels))
        return cls(pixels, labels, np.arange(len(images)) if subset is None else subset)

    @classmethod
    def drawn(cls, images: Images, train_examples: int, seed: int) -> TrainingData:
        """The data with a stratified subset of `train_examples` images; 0 takes all."""
        return cls.of(images, training_subset(images.labels, train_examples, seed))

    def with_subset(self, subset: np.ndarray) -> TrainingData:
        """The same images, of which others are trained on."""
        return dataclasses.replace(self, subset=subset)

    def whole(self) -> TrainingData:
        """The same images, all of which are trained on."""
        return self.with_subset(np.arange(len(self.labels)))
