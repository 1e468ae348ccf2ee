"""What the benchmarks share: fixed genomes, the timing of a training's epochs, and the record of a
measurement.
"""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import numpy as np
from flax import nnx

from jaxevo.config import TrainingConfig
from jaxevo.datasets import Images
from jaxevo.machine import device_name
from jaxevo.networks import native
from jaxevo.networks.builder import split
from jaxevo.networks.universal import UniversalNetwork
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.training.data import TrainingData
from jaxevo.training.trainer import Trainer
from jaxevo.versions import versions

MAX_NODES, CLASSES, BATCH = 6, 10, 64
SIZES = ((5, 6), (2, 4), (4, 3))  # B of the normal and of the reduction cell


def genomes(sizes: tuple[tuple[int, int], ...] = SIZES) -> dict[str, Genome]:
    """Fixed random genomes of these sizes."""
    rng = np.random.default_rng(3)
    return {f"B={a}/{b}": Genome(random_cell(rng, a), random_cell(rng, b)) for a, b in sizes}


def random_images(size: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images and labels for this many steps."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (BATCH * steps, size, size, 1), np.uint8)
    return images, rng.integers(0, CLASSES, len(images)).astype(np.int32)


def forms() -> dict[str, type[UniversalNetwork]]:
    """The forms of the network for all genomes that run here, by the names of their engines."""
    found: dict[str, type[UniversalNetwork]] = {"universal": UniversalNetwork}
    return found if native.unavailable_reason() else found | {"native": native.NativeNetwork}


def time_epochs(
    module: nnx.Module, trainer: Trainer, inputs: tuple, images, labels, repeats: int
) -> list[float]:
    """Milliseconds a step in each of `repeats` epochs, after one that compiles."""
    _, params, stats = split(module)
    config = TrainingConfig(epochs=repeats + 1, batch_size=BATCH, learning_rate=1e-3)
    data = TrainingData.of(Images(images, labels))
    start = trainer.start(params, stats)
    milliseconds = []
    begin = time.perf_counter()
    for _ in trainer.epochs(start, inputs, data, config=config, seed=(0,)):
        milliseconds.append(1000 * (time.perf_counter() - begin) / (len(images) // BATCH))
        begin = time.perf_counter()
    return milliseconds[1:]


def write(path: pathlib.Path | None, arguments: dict[str, Any], **results: Any) -> None:
    """Results as JSON, with machine and versions, if a file is wanted."""
    if path:
        about = {
            "device": device_name(),
            "versions": versions(),
            "arguments": {**arguments, "output": None},
        }
        path.write_text(json.dumps(about | results, indent=2))
