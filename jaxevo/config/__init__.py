"""Settings: frozen dataclasses, how they become flags, and what has a name of its own."""

from jaxevo.config.config import (
    ENGINES,
    MAX_NODES,
    RESIZE_METHODS,
    STRATEGY_KINDS,
    ColonyConfig,
    DataConfig,
    EvolutionConfig,
    NetworkConfig,
    SearchConfig,
    TrainingConfig,
    WorkerConfig,
)
from jaxevo.config.fields import flatten, leaf_fields, replace

__all__ = [
    "ENGINES",
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
    "flatten",
    "leaf_fields",
    "replace",
]
