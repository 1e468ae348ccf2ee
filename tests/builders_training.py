"""Small networks to train: one genome's own, and three that are trained in one step; and whether
something is compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import jax
from conftest import random_genomes

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.networks.genome_network import Network
from jaxevo.training.batched_trainer import BatchedTrainer
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import UniversalEngine

BUILDER = NetworkBuilder(NetworkConfig(channels=2, num_normal_cells=1), (8, 8, 1), 10)
BATCH = 16
(GENOME,) = random_genomes(1, 1, 2)

# Trained in one step of four, by the programs of the runs of `builders.SMALL`.
TRAINING = TrainingConfig(epochs=2, batch_size=32, learning_rate=0.03)
THREE = random_genomes(3, 1, 2, seed=4)
SEEDS = [(0, number) for number in range(3)]


def network(seed: int = 0) -> Network:
    """The genome's own network."""
    return BUILDER.build(GENOME, seed)


def universal_engine() -> UniversalEngine:
    """The engine of the three."""
    return UniversalEngine(BUILDER, TRAINING.batch_size, max_nodes=3)


def train_three(
    engine: UniversalEngine,
    batched: BatchedTrainer,
    data: TrainingData,
    validation: Images,
    config: TrainingConfig = TRAINING,
    places: Sequence[int] = (0, 1, 2),
) -> tuple[list[float], list[float]]:
    """Accuracies and last losses of the three, or of some of them in another order."""
    seeds = [SEEDS[place] for place in places]
    prepared = [engine.prepare(THREE[place], SEEDS[place]) for place in places]
    starts = [(each.state, each.inputs) for each in prepared]
    trained, losses = batched.train(starts, data, config, seeds=seeds)
    measured = [each.accuracy for each in batched.measure(trained, validation)]
    return measured[: len(places)], losses[: len(places)]


@contextlib.contextmanager
def compilations() -> Iterator[list[str]]:
    """Collects the events of programs that are compiled within the block."""
    found: list[str] = []
    active = [True]

    def listen(event: str, duration: float, **_: Any) -> None:
        if active[0] and "backend_compile" in event:
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    active[0] = False
