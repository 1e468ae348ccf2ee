"""Settings: frozen dataclasses, how they become flags, and what has a name of its own."""

from jaxevo.config.config import (
    ColonyConfig,
    DataConfig,
    EvolutionConfig,
    NetworkConfig,
    SearchConfig,
    TrainingConfig,
    WorkerConfig,
    flatten,
    leaf_fields,
    replace,
)

__all__ = [
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
