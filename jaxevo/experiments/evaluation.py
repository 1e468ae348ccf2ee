"""Full evaluation of one model.

The model is trained with several seeds, or read back, and scored on test images.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import (
    Images,
    ReadOptions,
    TrainData,
    count_duplicates,
    load_training_data,
    same_dataset,
)
from jaxevo.datasets.splits import training_subset
from jaxevo.experiments.scored_images import load_tests, trained_on_note
from jaxevo.experiments.scores import document_lines, score_document
from jaxevo.files import check_weights_place
from jaxevo.networks.baselines import Architecture
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.claim import claim_training
from jaxevo.run.words import duplicates_note
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.complexity import network_settings
from jaxevo.search_space.genome import Genome
from jaxevo.training.classifier import Classifier
from jaxevo.training.engine_choice import describe_engine, settle_engine
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.model_card import write_card
from jaxevo.training.source import Source


@dataclasses.dataclass(frozen=True)
class EvaluationTask:
    """A training and scoring of a model: the data, the number of seeds, and the folder.

    Attributes:
        model: The genome or hand-designed network.
        network: How a genome becomes a network.
        training: How it is trained.
        engine: What trains it; see `training.engine_choice.settle_engine`.
        trained_on: The data set trained on.
        tested_on: The data set whose test split is scored.
        data_dir: Folder with published files.
        image_size: Side that training images are resized to; 0 leaves them as they are.
        resize: How.
        train_examples: Size of the stratified subset of each seed; 0 takes all images.
        seeds: Of the trainings.
        folder: Takes checkpoints between epochs and the first seed's weights; None keeps nothing.
        save: Takes the first seed's weights alone.
        options: How the images trained on are to be understood.
        test_options: How the images of other data are.
        train: The training images, if they have been loaded already.
    """

    model: Architecture
    network: NetworkConfig
    training: TrainingConfig
    engine: str = "auto"
    trained_on: str = "digits"
    tested_on: str | None = None
    data_dir: str | None = None
    image_size: int = 0
    resize: str = "stretch"
    train_examples: int = 0
    seeds: range = range(1)
    folder: pathlib.Path | None = None
    save: pathlib.Path | None = None
    options: ReadOptions = ReadOptions()
    test_options: ReadOptions = ReadOptions()
    train: TrainData | None = None


def score_weights(
    folder: str,
    dataset: str | None = None,
    data_dir: str | None = None,
    *,
    options: ReadOptions | None = None,
    message: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Scores saved weights on the test images of a data set, by default of their own.

    Args:
        folder: Of the weights.
        dataset: The data to score; None: those trained on.
        data_dir: Folder with published files.
        options: How the data's images are to be understood.
        message: Told what was understood of the data.
    """
    # Read the network, and the images in its form.
    classifier = Classifier.load(folder)
    dataset = dataset or classifier.source.dataset
    tests = load_tests(
        classifier.source,
        classifier.form,
        dataset,
        data_dir=data_dir,
        options=options,
        trained_before=True,
    )
    message(next(iter(tests.values())).summary.describe())
    images = {method: test.images for method, test in tests.items()}
    if note := trained_on_note(classifier, tests):
        message(note)
    accuracies = {method: [classifier.accuracy(test)] for method, test in images.items()}
    return score_document(
        classifier.source,
        dataset,
        classifier.builder,
        model=classifier.model,
        accuracies=accuracies,
        tests=images,
    )


def train_and_score(
    task: EvaluationTask,
    on_epoch: Callable[[int, int, float], None] = lambda seed, epoch, loss: None,
    message: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Trains the model with each seed and scores it.

    Args:
        task: What to train, on what, and where it is kept; its folder is locked meanwhile.
        on_epoch: Told of seed, epochs done and loss.
        message: Told of the network's size, of the engine, and of checkpoints that cannot be used.

    Returns:
        The scores and what they are of, as plain values for JSON.

    Raises:
        InputError: The data or the folder cannot be used.
        DivergedError: The loss is not finite any more.
    """
    # What can be refused is refused before a folder is made.
    if task.folder:
        check_weights_place(task.folder)
    loaded = _load(task, message)
    with Workdir(task.folder).locked() if task.folder else contextlib.nullcontext():
        return _train_and_score(task, loaded, on_epoch, message=message)


class _Loaded(NamedTuple):
    """Images to train and to score on, and what a network is built for."""

    train: Images
    tests: dict[str, Images]
    builder: NetworkBuilder
    source: Source


def _load(task: EvaluationTask, message: Callable[[str], None]) -> _Loaded:
    """Raises `InputError` where the data cannot be used."""
    loaded = task.train or load_training_data(
        task.trained_on,
        task.data_dir,
        image_size=task.image_size,
        resize=task.resize,
        options=task.options,
    )
    train = loaded.images
    if isinstance(task.model, Genome):
        network_settings(task.model, task.network).check_image(*train.images.shape[1:3])
    # The network is built for the images trained on.
    builder = NetworkBuilder.for_images(task.network, train.images, len(loaded.class_names))
    source = Source(task.trained_on, loaded.class_names, task.resize, loaded.form, loaded.content)
    # The test images, of the same data or of other data.
    dataset = task.tested_on or task.trained_on
    foreign = not same_dataset(dataset, task.trained_on)
    options = task.test_options if foreign else task.options
    scored = load_tests(source, loaded.form, dataset, data_dir=task.data_dir, options=options)
    tests = {method: test.images for method, test in scored.items()}
    message(loaded.summary.describe())
    if foreign:
        message(next(iter(scored.values())).summary.describe())
    test = next(iter(tests.values()))
    if note := duplicates_note(count_duplicates(test, train), len(test)):
        message(note)
    # Drawn here only so that a subset that cannot be drawn is refused early.
    training_subset(train.labels, task.train_examples, task.seeds[0])
    return _Loaded(train, tests, builder, source)


def _train_and_score(
    task: EvaluationTask,
    loaded: _Loaded,
    on_epoch: Callable[[int, int, float], None],
    *,
    message: Callable[[str], None],
) -> dict[str, Any]:
    train, tests, builder, source = loaded
    settings = {
        "training": dataclasses.asdict(task.training),
        "train_images": task.train_examples or len(train),
    }
    # A folder belongs to one training with its settings.
    if task.folder is not None:
        claim_training(
            task.folder,
            task.model,
            train,
            network=task.network,
            training=task.training,
            train_images=settings["train_images"],
        )
    message(f"{builder.complexity(task.model).parameters:,} parameters")
    engine = settle_engine(task.engine, task.model, task.network, folder=task.folder)
    message(describe_engine(engine, task.network))
    # Each seed's classifier is scored as soon as it is trained.
    trained = train_classifiers(
        task.model,
        builder,
        train,
        source=source,
        config=task.training,
        seeds=task.seeds,
        engine=engine,
        train_examples=task.train_examples,
        folder=task.folder,
        on_epoch=on_epoch,
        message=message,
    )
    accuracies: dict[str, list[float]] = {method: [] for method in tests}
    seconds: list[float] = []
    kept = task.folder / "weights" if task.folder else task.save
    saved = None
    for number, (classifier, took) in enumerate(trained):
        seconds.append(round(took, 1))
        for method, images in tests.items():
            accuracies[method].append(classifier.accuracy(images))
        if number == 0 and kept:
            classifier.save(kept)
            saved = classifier
    tested_on = task.tested_on or task.trained_on
    document = score_document(
        source, tested_on, builder, model=task.model, accuracies=accuracies, tests=tests
    )
    if saved and kept:
        first = [f"the weights are those of seed {task.seeds[0]}"] if len(task.seeds) > 1 else []
        results = [*document_lines(document), *first]
        card = settings["training"] | {"training images": settings["train_images"]}
        write_card(kept, saved, results, training=card | {"seed": task.seeds[0]})
    return document | settings | {"engine": engine, "training_seconds": seconds}
