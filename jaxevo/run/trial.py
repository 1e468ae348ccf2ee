"""What the training of a candidate is given: its genome, its seed, and a rival in a race.

In a race a training ends once its mean loss is above its rival's, the worst of the population, by
more than a margin (after Maron and Moore 1994, *Hoeffding races*). JAX is not imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Seed


@dataclasses.dataclass(frozen=True)
class Rival:
    """The training that a candidate's has to keep up with."""

    losses: tuple[float, ...]  # mean of each epoch that it was trained for
    loss: float  # mean over all epochs, foretold if it ended early itself

    def is_ahead(self, losses: Sequence[float], margin: float) -> bool:
        """True if the mean of `losses` is above this training's by more than the margin.

        The margin is a part of this training's mean, over as many epochs.
        """
        epochs = len(losses)
        known = epochs <= len(self.losses)
        return known and float(np.mean(losses)) > (1 + margin) * self._mean(epochs)

    def foretell(self, losses: Sequence[float]) -> float:
        """The mean loss over all epochs of a training that goes on as this one did."""
        so_far = self._mean(len(losses))
        return float(np.mean(losses)) * (self.loss / so_far if so_far else 1.0)

    def _mean(self, epochs: int) -> float:
        return float(np.mean(self.losses[:epochs]))


class Trial(NamedTuple):
    """A training. The seed contains the individual's id, so it identifies the trial."""

    genome: Genome
    seed: Seed
    rival: Rival | None = None  # None: it is trained to the end
