"""The parts of the paper's tables: searches, trainings and scores, made where they are missing."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import MODELS, RECIPES
from jaxevo.console import say
from jaxevo.datasets import Images, load_training_data
from jaxevo.experiments.parts import PartFailedError
from jaxevo.experiments.scored_images import load_tests
from jaxevo.files import write_json
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.reports import paper_tables
from jaxevo.reports.paper_tables import BUDGETS, SEARCHED, TABLES, DataPair
from jaxevo.run.claim import check_no_search, claim_training
from jaxevo.run.prepare import load_task
from jaxevo.run.progress import RunReporter
from jaxevo.run.search import find_winner
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.genome_files import load, shipped_path
from jaxevo.training.classifier import Classifier
from jaxevo.training.engine_choice import device_name, settle_engine, with_engine
from jaxevo.training.fit import DivergedError
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.source import Source
from jaxevo.versions import versions


@dataclasses.dataclass(frozen=True)
class TablePlan:
    """A table to make: its budget, models and folder.

    Attributes:
        table: One of `paper_tables.TABLES`.
        path: Folder of trainings and tables.
        budget: One of `paper_tables.BUDGETS`.
        recipe: Of every training.
        models: Rows to make; empty: all of the table.
        epochs: Of each training; 0: the budget's.
        seeds: Trainings of each model; 0: the budget's.
        data_dir: Folder with published files.
        engine: Of searches, and of trainings of genomes.
    """

    table: str
    path: pathlib.Path
    budget: str = "smoke"
    recipe: str = "paper"
    models: Sequence[str] = ()
    epochs: int = 0
    seeds: int = 0
    data_dir: str | None = None
    engine: str = "auto"


class Reproduction:
    """Parts of a table, each kept in the workdir as soon as it is there.

    Attributes:
        failed: Why a pool could not make some parts, by `search_name` and `training_name`.
    """

    def __init__(self, plan: TablePlan, console: Console):
        self.plan = plan
        self.table = TABLES[plan.table]
        self.path = plan.path
        check_no_search(self.path)
        self.console = console
        self.failed: Mapping[Any, str] = {}
        self.budget = BUDGETS[plan.budget]
        epochs = {"epochs": plan.epochs} if plan.epochs else {}
        self.training = dataclasses.replace(self.budget.training, **RECIPES[plan.recipe] | epochs)
        self.seeds = range(plan.seeds or self.budget.seeds)
        # All images at once: what is missing is missing before the first training.
        names = {name for task in self.table.tasks for name in task}
        self.train = {name: load_training_data(name, plan.data_dir) for name in names}
        self.tests = {task: self.load_tests(task) for task in self.table.tasks}

    def say(self, text: str) -> None:
        """A line."""
        say(self.console, text)

    def shape(self, task: DataPair) -> tuple[int, int, int]:
        """Height, width and channels of the images trained on."""
        return self.train[task.trained_on].form.image_shape

    def load_tests(self, task: DataPair) -> dict[str, Images]:
        """Test images by the way they were resized."""
        form = self.train[task.trained_on].form
        scored = load_tests(self.source(task), form, task.tested_on, data_dir=self.plan.data_dir)
        return {method: test.images for method, test in scored.items()}

    def source(self, task: DataPair) -> Source:
        """The data trained on, as saved weights name it."""
        data = self.train[task.trained_on]
        return Source(task.trained_on, data.class_names, data.form.resize, data.form, data.content)

    def builder(self, task: DataPair) -> NetworkBuilder:
        """The builder of a task's networks."""
        network = self.budget.networks[task.trained_on]
        classes = self.train[task.trained_on].class_names
        return NetworkBuilder(network, self.shape(task), len(classes))

    @functools.cache  # noqa: B019  the object lives as long as the process
    def architecture(self, model: str) -> Architecture:
        """Hand-designed, shipped, or what a search on MNIST finds."""
        if model in MODELS:
            return Baseline(model)
        return self.search(model) if model in SEARCHED else shipped_genome(model)[0]

    def search_config(self, model: str) -> SearchConfig:
        """The configuration of a model's search."""
        config = self.budget.search_config(model, len(self.train["mnist"].images))
        return with_engine(replace(config, {"engine": self.plan.engine}))

    def search(self, model: str) -> Genome:
        """The winner of a search, which is carried to that choice, or read back."""
        path = self.path / search_name(model)
        self.say(f"search {path}")
        if path.name in self.failed:
            raise PartFailedError(self.failed[path.name])
        config = self.search_config(model)
        task = load_task(
            config,
            "mnist",
            path,
            preset=self.budget.preset,
            data_dir=self.plan.data_dir,
            part=True,
        )
        reporter = RunReporter(task.config, self.console)
        with reporter.live():
            return find_winner(task, reporter).genome

    def folder(self, model: str, task: DataPair) -> pathlib.Path:
        """The folder of a model's trainings on a task's data."""
        return self.path / f"{model}-{task.trained_on}"

    def missing(self, folder: pathlib.Path) -> list[int]:
        """The seeds that have not been trained there."""
        return [seed for seed in self.seeds if not (folder / f"seed{seed}.json").exists()]

    def claim(self, folder: pathlib.Path, model: Architecture, task: DataPair) -> None:
        """Claims a folder for these trainings. Raises `InputError` if it is of other ones."""
        images = self.train[task.trained_on].images
        builder = self.builder(task)
        claim_training(
            folder,
            model,
            images,
            network=builder.network,
            training=self.training,
            train_examples=self.budget.train_examples,
        )

    def fit(
        self, folder: pathlib.Path, model: Architecture, task: DataPair
    ) -> list[dict[str, Any]]:
        """Trains the seeds that are missing.

        Returns, for each seed, its seconds, device, versions and, if it failed, the reason. Raises
        `PartFailedError` where a pool could not train one.
        """
        self.claim(folder, model, task)
        for seed in self.missing(folder):
            if (name := training_name(folder, seed)) in self.failed:
                raise PartFailedError(self.failed[name])
            self.fit_seed(folder, model, task, seed=seed)
        shutil.rmtree(_checkpoints(folder), ignore_errors=True)
        kinds = {"seconds": float, "device": str, "versions": dict, "failure": str | None}
        return [paper_tables.read_part(folder / f"seed{seed}.json", kinds) for seed in self.seeds]

    def fit_seed(
        self, folder: pathlib.Path, model: Architecture, task: DataPair, *, seed: int
    ) -> str | None:
        """Trains with one seed, scores, and keeps the weights; returns why that failed, if so.

        Seeds of a folder may be trained at the same time.
        """

        def on_epoch(seed: int, epoch: int, loss: float) -> None:
            self.say(
                f"{folder.name}  seed {seed}  epoch {epoch}/{self.training.epochs}  loss {loss:.4f}"
            )

        images = self.train[task.trained_on].images
        # Train and save; a training that diverges is recorded as failed.
        checkpoints = _checkpoints(folder)
        builder = self.builder(task)
        wanted = self.plan.engine if isinstance(model, Genome) else "auto"
        engine = settle_engine(wanted, model, builder.network, folder=checkpoints)
        begin = time.perf_counter()
        failure = None
        # What was measured of weights that were here before is not of these.
        for score in folder.glob(f"seed{seed}-*.json"):
            score.unlink()
        try:
            trained = train_classifiers(
                model,
                builder,
                images,
                source=self.source(task),
                config=self.training,
                seeds=(seed,),
                engine=engine,
                train_examples=self.budget.train_examples,
                folder=checkpoints,
                on_epoch=on_epoch,
                message=self.say,
            )
            ((classifier, seconds),) = trained
            classifier.save(folder / f"seed{seed}")
            if task.tested_on == task.trained_on:  # else the program for it would be compiled again
                self.score(folder, seed, task, classifier=classifier)
        except DivergedError as error:
            failure = str(error)
            seconds = time.perf_counter() - begin
        # The record is written last: where it is, the seed is done.
        about = {
            "seconds": seconds,
            "device": device_name(engine),
            "versions": versions(),
            "failure": failure,
        }
        write_json(folder / f"seed{seed}.json", about)
        shutil.rmtree(checkpoints / f"seed{seed}", ignore_errors=True)
        return failure

    def score(
        self,
        folder: pathlib.Path,
        seed: int,
        task: DataPair,
        *,
        classifier: Classifier | None = None,
    ) -> dict[str, float]:
        """Accuracy by the way the test images were resized.

        It is measured once for each training and test images.
        """
        tests = self.tests[task]
        document = folder / f"seed{seed}-{task.tested_on}.json"
        # Take the accuracy measured before, if it was on the same images.
        digests = {f"{method} images": test.digest() for method, test in tests.items()}
        kinds = dict.fromkeys(digests, str) | dict.fromkeys(tests, float)
        known = paper_tables.read_part(document, kinds) if document.exists() else {}
        if any(known.get(name) != digest for name, digest in digests.items()):
            classifier = classifier or Classifier.load(folder / f"seed{seed}")
            known = {method: classifier.accuracy(test) for method, test in tests.items()}
            write_json(document, known | digests)
        return {method: known[method] for method in tests}


def search_name(model: str) -> str:
    """The name of a model's search, and of its folder."""
    return f"search-{model}"


def training_name(folder: pathlib.Path, seed: int) -> str:
    """The name of a training."""
    return f"{folder.name} seed {seed}"


def _checkpoints(folder: pathlib.Path) -> pathlib.Path:
    """Of all seeds trained in a folder: one folder each, and the engine of all."""
    return folder / "checkpoints"


def shipped_genome(model: str) -> tuple[Genome, dict[str, Any]]:
    """A shipped genome and what its file tells of it."""
    path = shipped_path(model)
    assert path is not None, f"{model}.json is part of the package"
    return load(path)
