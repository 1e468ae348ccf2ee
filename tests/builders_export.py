"""Networks to export: of every kind, with batch norm that does something, and small ones saved."""

from __future__ import annotations

import jax
import numpy as np
from flax import nnx

from jaxevo.config import NetworkConfig
from jaxevo.networks.baselines import Architecture
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.search_space.genome import Genome, Layout
from jaxevo.search_space.variation import random_cell
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source


def shaken_classifier(
    model: Architecture, builder: NetworkBuilder, seed: int = 0, source: Source | None = None
) -> Classifier:
    """A classifier with random statistics and parameters of batch norm."""
    network = builder.build(model, seed)
    rng = np.random.default_rng(seed)
    for kind, low in ((nnx.Param, -0.3), (nnx.BatchStat, 0)):
        state = nnx.state(network, kind)
        shaken = jax.tree.map(
            lambda a, low=low: a + rng.uniform(low, 0.3, a.shape).astype(np.float32), state
        )
        nnx.update(network, shaken)
    names = tuple(map(str, range(builder.num_classes)))
    return Classifier.of(
        model, builder, source or Source("none", names, "stretch"), network=network
    )


def random_classifier(seed: int, max_nodes: int = 4, max_normal_cells: int = 3) -> Classifier:
    """A genome's, of any kind: convolutions, layout, sides, channels and classes."""
    rng = np.random.default_rng(seed)
    cells = [random_cell(rng, int(rng.integers(1, max_nodes + 1))) for _ in range(2)]
    normal_cells = int(rng.integers(1, max_normal_cells + 1))
    layout = Layout(int(rng.integers(1, 5)), normal_cells) if rng.random() < 0.5 else None
    config = NetworkConfig(
        channels=int(rng.integers(1, 5)),
        num_normal_cells=1 if layout else normal_cells,
        channel_multiplier=int(rng.integers(1, 3)),
        normal_repeats=int(rng.integers(1, 3)),
        conv_kind=("separable", "full")[seed % 2],
        output_relu=seed // 4 % 2 == 1,
    )
    height, width = (int(side) for side in rng.integers(4, 20, 2))
    shape = (height, width, (1, 3)[seed // 2 % 2])
    builder = NetworkBuilder(config, shape, int(rng.integers(2, 12)))
    return shaken_classifier(Genome(cells[0], cells[1], layout), builder, seed)
