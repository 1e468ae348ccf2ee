"""Full trainings of one model: a classifier for each seed."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Iterator, Sequence

from jaxevo.config import TrainingConfig
from jaxevo.datasets import Images
from jaxevo.datasets.splits import training_subset
from jaxevo.networks.baselines import Architecture
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.classifier import Classifier
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import make_engine_for
from jaxevo.training.fit import fit
from jaxevo.training.source import Source


def train_classifiers(
    model: Architecture,
    builder: NetworkBuilder,
    train: Images,
    *,
    source: Source,
    config: TrainingConfig,
    seeds: Sequence[int],
    engine: str = "auto",
    train_examples: int = 0,
    folder: pathlib.Path | None = None,
    on_epoch: Callable[[int, int, float], None] = lambda seed, epoch, loss: None,
    message: Callable[[str], None] = lambda text: None,
) -> Iterator[tuple[Classifier, float]]:
    """Trains a classifier fully for each seed, all by one compiled program.

    Args:
        model: What to train.
        builder: Builds its network.
        train: The images.
        source: Where they are from.
        config: The training.
        seeds: Of the trainings.
        engine: What `engine_choice.settle_engine` gives for the folder.
        train_examples: Each seed draws a stratified subset of so many images anew; 0 takes all.
        folder: Takes a checkpoint of each seed between epochs, and gives it back to a later call of
            the same arguments. No other training may use it.
        on_epoch: Told of seed, epochs done and loss.
        message: Told of checkpoints that cannot be used.

    Yields:
        Each classifier, and the seconds of its training. Raises `DivergedError`.
    """
    trains = make_engine_for(engine, model, builder, batch_size=config.batch_size)
    everything = TrainingData.of(train)
    for seed in seeds:
        # Draw the subset and the initial weights of this seed, and train.
        subset = training_subset(train.labels, train_examples, seed)
        prepared = trains.prepare(model, (seed,))
        trained = fit(
            prepared,
            everything.with_subset(subset),
            config,
            seed=(seed,),
            checkpoints=Checkpoints(folder / f"seed{seed}") if folder else None,
            identity={"seed": seed},
            on_epoch=functools.partial(on_epoch, seed),
            message=message,
        )
        network = trains.network(model, trained.state.weights)
        yield Classifier.of(model, builder, source, network=network), trained.seconds
