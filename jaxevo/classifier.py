"""Trained networks in a folder: saved with all that is needed to use them again, and used again."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence
from typing import Any

from scipy.stats import binomtest

from jaxevo import checkpoint
from jaxevo.config import NetworkConfig
from jaxevo.datasets import Images
from jaxevo.evaluation import Problem
from jaxevo.genome import Genome
from jaxevo.network import Network
from jaxevo.training import Trainer, split


def save_network(
    folder: pathlib.Path,
    network: Network,
    genome: Genome,
    problem: Problem,
    dataset: str,
    class_names: Sequence[str],
) -> None:
    """Writes a network's weights with its genome, the shape of its images, and what it was trained on."""
    document = {
        "genome": genome.to_dict(),
        "network": dataclasses.asdict(problem.network),
        "image_shape": list(problem.image_shape),
        "class_names": list(class_names),
        "dataset": dataset,
    }
    checkpoint.save_weights(folder, document, checkpoint.flatten(split(network)[1:]))


@dataclasses.dataclass
class Classifier:
    """A trained network, compiled once for images of one shape."""

    genome: Genome
    problem: Problem
    dataset: str
    class_names: tuple[str, ...]
    network: Network
    batch_size: int = 64

    def __post_init__(self) -> None:
        graphdef, params, stats = split(self.network)
        self._trainer, self._weights = Trainer(graphdef, self.batch_size), (params, stats)

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Classifier:
        """From `save_network`'s folder. Raises `CheckpointError` if it is damaged or holds another architecture."""
        document, weights = checkpoint.load_weights(pathlib.Path(folder))
        try:
            genome = Genome.from_dict(document["genome"])
            height, width, channels = (int(side) for side in document["image_shape"])
            names = tuple(map(str, document["class_names"]))
            problem = Problem(NetworkConfig(**document["network"]), (height, width, channels), len(names))
            # Before anything of that size is allocated: a document may claim any.
            parameters = problem.complexity(genome).parameters
            if parameters > sum(array.size for array in weights.values()):
                raise ValueError(f"it needs {parameters} parameters, more than were saved")
            dataset = str(document["dataset"])
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise checkpoint.CheckpointError(f"{folder} does not describe its network ({reason}); train again") from None
        return cls(genome, problem, dataset, names, problem.load(genome, weights))

    def accuracy(self, images: Images) -> float:
        """Part of the images that is classified rightly."""
        return self._trainer.accuracy(self._weights, (), images.images, images.labels)


def accuracy_with_interval(correct: int, total: int) -> dict[str, Any]:
    """Test accuracy with Wilson's 95 % interval."""
    interval = binomtest(correct, total).proportion_ci(0.95, method="wilson")
    bounds = [float(interval.low), float(interval.high)]
    return {"test_accuracy": correct / total, "test_interval": bounds, "test_images": total}
