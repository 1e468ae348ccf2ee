"""A small trained network in its folder, and copies whose document claims something else."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.training.classifier import Classifier
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.source import Source

CELL = Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),))
GENOME = Genome(CELL, CELL)
BUILDER = NetworkBuilder(NetworkConfig(channels=2, num_normal_cells=1), (8, 8, 1), 10)
CLASSES = tuple("0123456789")
SOURCE = Source("digits", CLASSES, "stretch")


def train(images: Images, seeds: tuple[int, ...], **options: Any) -> list[Classifier]:
    """The classifiers of these seeds, each after ten epochs."""
    config = TrainingConfig(epochs=10, batch_size=16, learning_rate=3e-2)
    settings = {"source": SOURCE, "config": config, "seeds": seeds}
    return [each for each, _ in train_classifiers(GENOME, BUILDER, images, **settings, **options)]


def fresh_classifier() -> Classifier:
    """A network as it is before its training."""
    return Classifier.of(GENOME, BUILDER, SOURCE, network=BUILDER.build(GENOME))


def with_document(
    saved: pathlib.Path, folder: pathlib.Path, changes: dict[str, Any]
) -> pathlib.Path:
    """A copy of the folder whose document claims something else."""
    path = pathlib.Path(shutil.copytree(saved, folder)) / "data" / "data.json"
    document = json.loads(path.read_text())
    del document["digest"]  # which tells of damage, and not of intent
    document["fingerprint"] = ""  # as of an earlier version
    document |= changes | {"network": document["network"] | changes.get("network", {})}
    path.write_text(json.dumps(document))
    return folder
