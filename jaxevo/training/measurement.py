"""How well a network does on labelled images. Letters: `M` images, `K` classes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp


class Measurement(NamedTuple):
    """Both scores of one network on the same images."""

    accuracy: float  # part of the images that are classified rightly
    cross_entropy: float  # mean over the images, in nats; not finite if a weight is not


def measure(logits: np.ndarray, labels: np.ndarray) -> Measurement:
    """Scores of logits float32 `[M, K]` for the classes int32 `[M]`."""
    own = np.take_along_axis(logits, labels[:, None], 1)[:, 0]
    losses = logsumexp(logits.astype(np.float64), axis=1) - own
    return Measurement(float(np.mean(logits.argmax(1) == labels)), float(losses.mean()))
