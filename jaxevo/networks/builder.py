"""The one place that makes a network of a genome or of a hand-designed model.

A builder also knows what networks are built for: the images, the classes and the settings.
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.networks.genome_network import Network
from jaxevo.search_space import complexity
from jaxevo.search_space.complexity import Complexity
from jaxevo.seeds import Seed

Weights = tuple[Any, Any]  # nnx states: parameters, and batch norm's running averages


class Split(NamedTuple):
    """A module taken apart: definition, parameters, running averages."""

    graphdef: nnx.GraphDef
    params: nnx.State
    stats: nnx.State


def split(module: nnx.Module) -> Split:
    """Takes a module apart, as a compiled program needs it."""
    return Split(*nnx.split(module, nnx.Param, nnx.BatchStat))


def set_weights(module: Any, weights: Weights) -> None:
    """Puts parameters and running averages into a module."""
    for state in weights:
        nnx.update(module, state)


@dataclasses.dataclass(frozen=True)
class NetworkBuilder:
    """Builds networks for images of one shape (height, width, channels) and a number of classes."""

    network: NetworkConfig
    image_shape: tuple[int, int, int]
    num_classes: int

    @classmethod
    def for_images(
        cls, network: NetworkConfig, images: np.ndarray, num_classes: int
    ) -> NetworkBuilder:
        """A builder for images `[M, H, W, C]`."""
        height, width, channels = images.shape[1:]
        return cls(network, (height, width, channels), num_classes)

    def build(self, model: Architecture, seed: int | Seed = 0) -> Any:
        """The model's own network (for a genome a `Network`) with fresh weights."""
        if isinstance(model, Baseline):
            return model.build(
                self.image_shape, self.num_classes, self.network.precision, seed=seed
            )
        return Network(
            model, self.network, self.image_shape, num_classes=self.num_classes, seed=seed
        )

    def complexity(self, model: Architecture) -> Complexity:
        """Parameters and multiply-adds of the model's network, by arithmetic alone."""
        if isinstance(model, Baseline):
            return model.complexity(self.image_shape, self.num_classes)
        return complexity.measure(
            model, self.network, self.image_shape, num_classes=self.num_classes
        )
