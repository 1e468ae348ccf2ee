"""What the benchmarks of fitness share: learning curves, and the trainings that make them.

A curve has a row an epoch: validation accuracy, validation cross entropy, test accuracy, test cross
entropy, and the mean loss of training. `REFERENCE` is the training that a fitness shall foretell.
"""

from __future__ import annotations

import dataclasses
import json
import lzma
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import kendalltau

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.config.presets import RECIPES
from jaxevo.datasets import Images, load_search_data, load_test_data
from jaxevo.networks.baselines import Architecture
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.seeds import Seed
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import make_engine

MAX_NODES, BATCH = 6, 64
COLUMNS = ("accuracy", "cross_entropy", "test_accuracy", "test_cross_entropy", "loss")
# Short trainings, of which each epoch is a measurement, and the long one that they shall foretell.
STEADY = {"rate_decay": 1.0}  # the rate stays, so that an epoch is the end of a shorter training
RECIPES_TRIED: dict[str, dict[str, Any]] = {
    "paper": RECIPES["paper"],
    "steady": RECIPES["paper"] | STEADY | {"weight_average": 0.95},
    "warm": RECIPES["paper"] | {"schedule": "cosine", "warmup": 0.2},
    "modern": RECIPES["modern"] | {"weight_average": 0.95},
}
REFERENCE = "final"


@dataclasses.dataclass(frozen=True)
class Bench:
    """The data of a data set, and the engine that trains genomes on it."""

    engine: Any  # an `Engine`, and one for hand-designed models too where these are trained
    data: TrainingData
    validation: Images
    test: Images
    builder: NetworkBuilder

    @classmethod
    def open(
        cls,
        dataset: str,
        data_dir: str | None,
        *,
        network: NetworkConfig,
        examples: int,
        validation: float,
    ) -> Bench:
        """Loads the data; candidates are trained on a subset of `examples` images, 0 for all."""
        # All images are loaded: the long trainings take them all.
        loaded = load_search_data(dataset, data_dir, validation_fraction=validation)
        test = load_test_data(dataset, data_dir, form=loaded.form)
        builder = NetworkBuilder(network, loaded.image_shape, loaded.num_classes)
        data = TrainingData.drawn(loaded.train, examples, seed=0)
        engine = make_engine("auto", builder, BATCH, max_nodes=MAX_NODES)
        return cls(engine, data, loaded.validation, test, builder)

    def with_network(self, network: NetworkConfig) -> Bench:
        """The same data for networks of other settings."""
        builder = dataclasses.replace(self.builder, network=network)
        engine = make_engine("auto", builder, BATCH, max_nodes=MAX_NODES)
        return dataclasses.replace(self, engine=engine, builder=builder)

    def curve(
        self, genome: Architecture, config: TrainingConfig, seed: Seed, *, whole: bool
    ) -> list:
        """Trains a genome, on all images or on the subset, and scores it after each epoch."""
        data = self.data.whole() if whole else self.data
        prepared = self.engine.prepare(genome, seed)
        rows = []
        trainer = prepared.trainer
        epochs = trainer.epochs(prepared.state, prepared.inputs, data, config=config, seed=seed)
        for state, loss in epochs:
            row: list[float] = []
            for images in (self.validation, self.test):
                row += trainer.measure(state.weights, prepared.inputs, images)
            rows.append([round(value, 5) for value in (*row, loss)])
        return rows


def train_missing(
    path: pathlib.Path, jobs: Iterator[tuple[dict[str, Any], Any]], say: Any = print
) -> list[dict[str, Any]]:
    """Does the jobs that the file of JSON lines lacks, and gives all of its lines.

    A job is a key, plain values that tell it from the others, and a function of its curves.
    """
    lines = read(path) if path.exists() else []
    done = {_name(line["key"]) for line in lines}
    with path.open("a") as file:
        for key, make in jobs:
            if _name(key) not in done:
                lines.append({"key": key, **make()})
                file.write(json.dumps(lines[-1], separators=(",", ":")) + "\n")
                file.flush()
                say(f"{len(lines)} trained")
    return lines


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a file of trainings, which may be compressed (`.xz`)."""
    with lzma.open(path, "rt") if path.suffix == ".xz" else path.open() as file:
        return [json.loads(line) for line in file]


def tau(one: np.ndarray, other: np.ndarray) -> float:
    """Kendall's rank correlation."""
    found, _ = map(float, kendalltau(one, other))
    return found


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def column(curve: list, name: str) -> np.ndarray:
    """A column of a curve, `[epochs]`."""
    return np.array(curve)[:, COLUMNS.index(name)]


def setting(text: str) -> tuple[str, Any]:
    """A setting of `--setting`: `dropout_rate=0`. Raises `ValueError`."""
    name, _, value = text.partition("=")
    return name, json.loads(value)
