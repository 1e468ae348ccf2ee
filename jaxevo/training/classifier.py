"""Trained networks: trained fully, saved in a folder with all that is needed to use them again, and scored."""

from __future__ import annotations

import dataclasses
import math
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.datasets.splits import training_subset
from jaxevo.errors import printable
from jaxevo.networks.baselines import Architecture, describe, from_description
from jaxevo.run.evaluator import fit, on_device
from jaxevo.search_space.genome import Genome
from jaxevo.training import checkpoints as checkpoint
from jaxevo.training.engines import CompiledEngine, Problem
from jaxevo.training.fit import fit_resumably
from jaxevo.training.trainer import Trainer, split

_BATCH_SIZE = 64  # of scoring
_MAX_SETTING = 10**12  # sizes are counted by multiplying these, which takes long for numbers of many digits


@dataclasses.dataclass(frozen=True)
class Source:
    """The data that a network was trained on, and how its images were resized, if they were."""

    dataset: str
    class_names: tuple[str, ...]
    resize: str


@dataclasses.dataclass(frozen=True)
class Classifier:
    """A trained network with what it was made for; `trainer` is a compiled program of its architecture."""

    model: Architecture
    problem: Problem
    source: Source
    network: Any  # a `Network`, or a baseline's module
    trainer: Trainer

    @classmethod
    def of(cls, model: Architecture, problem: Problem, source: Source, network: Any) -> Classifier:
        """With a program of its own."""
        return cls(model, problem, source, network, Trainer(split(network).graphdef, _BATCH_SIZE))

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Classifier:
        """From `save`'s folder. Raises `CheckpointError` if it is damaged or holds another architecture."""
        document, weights = checkpoint.load_weights(pathlib.Path(folder))
        try:
            model = from_description(document)
            height, width, channels = (int(side) for side in document["image_shape"])
            if min(height, width, channels) < 1:
                raise ValueError(f"image_shape is {document['image_shape']}")
            names = tuple(printable(str(name)) for name in document["class_names"])
            if any(isinstance(value, int) and abs(value) > _MAX_SETTING for value in document["network"].values()):
                raise ValueError(f"a setting is larger than {_MAX_SETTING}")
            problem = Problem(NetworkConfig(**document["network"]), (height, width, channels), len(names))
            # Before anything of that size is allocated: a document may claim any.
            parameters = problem.complexity(model).parameters
            if parameters > sum(array.size for array in weights.values()):
                raise ValueError(f"it needs {parameters} parameters, more than were saved")
            # Building takes time for every cell.
            if isinstance(model, Genome) and len(problem.network.stack()) > len(weights):
                raise ValueError("it needs more cells than were saved")
            source = Source(printable(str(document["dataset"])), names, printable(str(document["resize"])))
            network = problem.load(model, weights)
        except checkpoint.CheckpointError:
            raise
        except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise checkpoint.CheckpointError(
                f"{folder} does not describe its network ({reason}); train again"
            ) from None
        return cls.of(model, problem, source, network)

    def save(self, folder: pathlib.Path) -> None:
        """Writes the weights with the model, the shape of the images, and what they were trained on."""
        document = {
            **describe(self.model),
            "network": dataclasses.asdict(self.problem.network),
            "image_shape": list(self.problem.image_shape),
            **dataclasses.asdict(self.source),
        }
        checkpoint.save_weights(folder, document, checkpoint.flatten(split(self.network)[1:]))

    def accuracy(self, images: Images) -> float:
        """Part of the images that is classified rightly."""
        return self.trainer.accuracy(split(self.network)[1:], (), images.images, images.labels)


def train_classifiers(
    model: Architecture,
    problem: Problem,
    train: Images,
    source: Source,
    config: TrainingConfig,
    seeds: Sequence[int],
    train_examples: int = 0,
    folder: pathlib.Path | None = None,
    on_epoch: Callable[[int, int, float], None] = lambda seed, epoch, loss: None,
    message: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[Classifier, float]]:
    """A classifier trained fully for each seed, all by one compiled program, and the seconds of its training.

    Args:
        model: What to train.
        problem: What it is built for.
        train: The images.
        source: Where they are from.
        config: The training.
        seeds: Of the trainings.
        train_examples: Each seed draws a stratified subset of so many images anew; 0 takes all.
        folder: Takes a checkpoint of each seed between epochs, and gives it back to a later call of the same
            arguments. It must be theirs alone.
        on_epoch: Told of seed, epochs done and loss.
        message: Told of checkpoints that cannot be used.
    """
    engine = CompiledEngine(problem, config.batch_size)
    images, labels = on_device(train)
    for seed in seeds:
        subset = training_subset(train.labels, train_examples, seed)
        prepared = engine.prepare(model, (seed,))
        begin = time.perf_counter()

        def tell(epoch: int, loss: float, seed: int = seed) -> None:
            on_epoch(seed, epoch, loss)

        arguments = prepared, images, labels, config, (seed,), subset
        if folder is None:
            state = fit(*arguments, on_epoch=lambda epoch, _, loss, tell=tell: tell(epoch, loss))
            seconds = time.perf_counter() - begin
        else:
            checkpoints = checkpoint.Checkpoints(folder / f"seed{seed}")
            state, seconds, *_ = fit_resumably(*arguments, checkpoints, {"seed": seed}, tell, message)
        network = engine.network(model, state.weights)
        yield Classifier(model, problem, source, network, prepared.trainer), seconds


def wilson_interval(accuracy: float, images: int) -> tuple[float, float]:
    """Wilson's 95 % interval of an accuracy measured on that many images."""
    interval = stats.binomtest(round(accuracy * images), images).proportion_ci(0.95, method="wilson")
    return float(interval.low), float(interval.high)


def summarize(accuracies: Sequence[float], images: int) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval: Student's over several seeds, Wilson's over the images of one.

    Student's may reach over 1, where no accuracy lies: it is cut to [0, 1].
    """
    mean = float(np.mean(accuracies))
    std, interval = None, wilson_interval(mean, images)
    if len(accuracies) > 1:
        std = float(np.std(accuracies, ddof=1))
        half = float(stats.t.ppf(0.975, len(accuracies) - 1)) * std / math.sqrt(len(accuracies))
        interval = (max(0.0, mean - half), min(1.0, mean + half))
    return {"mean": mean, "std": std, "interval": list(interval), "accuracies": list(accuracies), "images": images}
