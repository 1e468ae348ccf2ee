"""Settings: frozen dataclasses, how they become flags, and what has a name of its own."""

from jaxevo.config.data import RESIZE_METHODS, DataConfig
from jaxevo.config.evolution import (
    LAYOUT_BOUNDS,
    MAX_LAYOUT,
    MAX_NODES,
    ColonyConfig,
    EvolutionConfig,
)
from jaxevo.config.fields import check_known, flatten, leaf_fields, replace
from jaxevo.config.network import CONV_KINDS, NetworkConfig
from jaxevo.config.search import ENGINES, FRONT_KINDS, LEARNING_KINDS, STRATEGY_KINDS, SearchConfig
from jaxevo.config.training import TrainingConfig
from jaxevo.config.workers import WorkerConfig

__all__ = [
    "CONV_KINDS",
    "ENGINES",
    "FRONT_KINDS",
    "LAYOUT_BOUNDS",
    "LEARNING_KINDS",
    "MAX_LAYOUT",
    "MAX_NODES",
    "RESIZE_METHODS",
    "STRATEGY_KINDS",
    "ColonyConfig",
    "DataConfig",
    "EvolutionConfig",
    "NetworkConfig",
    "SearchConfig",
    "TrainingConfig",
    "WorkerConfig",
    "check_known",
    "flatten",
    "leaf_fields",
    "replace",
]
