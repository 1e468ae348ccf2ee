"""The paper's tables made again, beside the published figures.

Missing trainings are carried out.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import MODELS, RECIPES
from jaxevo.datasets import Images, load_training_data
from jaxevo.experiments.claim import claim_folder
from jaxevo.experiments.parts import PartFailedError
from jaxevo.experiments.scored_images import load_tests
from jaxevo.files import write_csv, write_json, write_text
from jaxevo.intervals import summarize
from jaxevo.networks.baselines import Architecture, Baseline, describe
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.reports import paper_tables
from jaxevo.reports.page import render_tables
from jaxevo.reports.paper_tables import BUDGETS, SEARCHED, TABLES, DataPair
from jaxevo.run.explore import SearchFailedError
from jaxevo.run.prepare import load_task
from jaxevo.run.progress import RunReporter
from jaxevo.run.search import find_winner
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.genome_files import load, shipped_path
from jaxevo.training.classifier import Classifier
from jaxevo.training.engines import device_name, settle_engine, with_engine
from jaxevo.training.fit import DivergedError
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.source import Source
from jaxevo.versions import changed_versions, versions


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
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

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

    def rows(self, model: str, task: DataPair) -> list[dict[str, Any]]:
        """The rows of a model, one for each way of resizing the test images."""
        row = paper_tables.published_row(model, task)
        if model == "deepswarm":
            return [row]
        # Search the genome, and train the seeds, where that is missing.
        folder = self.folder(model, task)
        try:
            architecture = self.architecture(model)
            trained = self.fit(folder, architecture, task)
        except (SearchFailedError, DivergedError, PartFailedError) as error:
            return [row | {"seeds": len(self.seeds), "note": f"failed: {error}"}]
        # Describe the model and its training, and score the seeds unless one failed.
        notes = (self.provenance(model), row["note"], *_other_versions(trained))
        row |= self.described(architecture, task, trained) | {
            "note": "; ".join(filter(None, notes))
        }
        if failures := [each["failure"] for each in trained if each["failure"]]:
            return [row | {"note": f"failed: {failures[0]}"}]
        return [row | scores for scores in self.scores(folder, task)]

    def described(
        self, model: Architecture, task: DataPair, trained: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Sizes, and how it was trained."""
        size = self.builder(task).complexity(model)
        images = len(self.train[task.trained_on].images)
        number = self.budget.train_examples or images
        epochs = self.training.epochs
        return {
            **{
                "parameters": size.parameters,
                "multiply_adds": size.multiply_adds,
                "seeds": len(self.seeds),
            },
            "training": f"{epochs} epoch{'s' * (epochs > 1)} of {number:,} of {images:,} images",
            "seconds": statistics.fmean(each["seconds"] for each in trained),
            "device": ", ".join(sorted({each["device"] for each in trained})),
        }

    def scores(self, folder: pathlib.Path, task: DataPair) -> list[dict[str, Any]]:
        """Accuracies of all seeds' weights, for each way of resizing the test images."""
        scores = [self.score(folder, seed, task) for seed in self.seeds]
        rows = []
        for method, test in self.tests[task].items():
            found = summarize([score[method] for score in scores], len(test))
            low, high = found["interval"]
            resize = method if len(self.tests[task]) > 1 else None
            rows.append(
                {
                    "resize": resize,
                    "mean": found["mean"],
                    "std": found["std"],
                    "low": low,
                    "high": high,
                }
            )
        return rows

    @functools.cache  # noqa: B019  the object lives as long as the process
    def architecture(self, model: str) -> Architecture:
        """Hand-designed, shipped, or what a search on MNIST finds."""
        if model in MODELS:
            return Baseline(model)
        return self.search(model) if model in SEARCHED else _shipped(model)[0]

    def provenance(self, model: str) -> str:
        """Origin of a genome; nothing for hand-designed networks."""
        if model in MODELS:
            return ""
        if model in SEARCHED:
            number = self.search_config(model).num_candidates
            return f"genome: the best of {number} candidates on mnist, preset {self.budget.preset}"
        number = _shipped(model)[1]["provenance"]["candidates"]
        return f"genome: shipped, one of the best of {number} candidates on mnist"

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
            config, "mnist", path, preset=self.budget.preset, data_dir=self.plan.data_dir
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
        network = dataclasses.asdict(builder.network)
        training = dataclasses.asdict(self.training)
        settings = {
            "network": network,
            "training": training,
            "train_examples": self.budget.train_examples,
        }
        claim_folder(folder, describe(model) | settings | {"images": images.digest()})

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

    def write(self, rows: list[dict[str, Any]]) -> None:
        """The table as far as it is made."""
        caption = self.caption(rows)
        path = self.path / self.plan.table
        write_text(path.with_suffix(".md"), paper_tables.markdown(rows, caption))
        title = f"The paper's table {self.plan.table}"
        page = render_tables(title, caption, [paper_tables.table_of(rows)])
        write_text(path.with_suffix(".html"), page)
        write_csv(path.with_suffix(".csv"), rows)
        write_json(path.with_suffix(".json"), {"caption": caption, "rows": rows})

    def caption(self, rows: list[dict[str, Any]]) -> str:
        """Budget, split and protocol."""
        training = self.training
        number = len(self.seeds)
        devices = "; ".join(sorted({row["device"] for row in rows if row["device"]}))
        lines = [
            f"Table {self.plan.table} of the paper, budget {self.plan.budget}, "
            f"recipe {self.plan.recipe}, on {devices}:",
            f"{number} training{'s' * (number > 1)} of each model, batch {training.batch_size}, "
            "Adam at",
            f"{training.learning_rate:g}. All models are trained alike, on the training split (a "
            "stratified part of it",
            "where the remark says so) for a number of epochs that was fixed before; each trained "
            "network is scored",
            "once on the test split, and nothing is chosen by that. A genome is as good as the "
            "search it comes from,",
            "whose size the remark names. Intervals are 95 %: Wilson's over the test images for "
            "one training; for",
            "several, of both trainings and test images, which all trainings share.",
        ]
        # The networks of each data set, and whether its split is the official one.
        tasks = {task.trained_on: task for task in self.table.tasks}
        for name, task in tasks.items():
            network = self.budget.networks[name]
            lines.append(
                f"Genomes' networks on {name}: D={network.channels}, N={network.num_normal_cells}."
            )
            if name == "svhn_cropped":
                builder = dataclasses.replace(
                    self.builder(task), network=paper_tables.SVHN_AS_WRITTEN
                )
                size = builder.complexity(self.architecture("evoA")).parameters
                lines.append(
                    "As the paper writes it (D=32, N=4, each normal cell thrice) EvoA would have "
                    f"{size:,}"
                )
                lines.append("parameters there; of its sizes only those of D=32 and N=3 come near.")
        tested = {
            task.tested_on: len(next(iter(tests.values()))) for task, tests in self.tests.items()
        }
        for name, data in sorted(self.train.items()):
            lines.append(paper_tables.unofficial(name, len(data.images), tested.get(name)))
        return " ".join(filter(None, lines))


def search_name(model: str) -> str:
    """The name of a model's search, and of its folder."""
    return f"search-{model}"


def training_name(folder: pathlib.Path, seed: int) -> str:
    """The name of a training."""
    return f"{folder.name} seed {seed}"


def _checkpoints(folder: pathlib.Path) -> pathlib.Path:
    """Of all seeds trained in a folder: one folder each, and the engine of all."""
    return folder / "checkpoints"


def _shipped(model: str) -> tuple[Genome, dict[str, Any]]:
    path = shipped_path(model)
    assert path is not None, f"{model}.json is part of the package"
    return load(path)


def _other_versions(parts: list[dict[str, Any]]) -> list[str]:
    """Versions with which finished parts were made, where other ones are here now."""
    return sorted({f"trained with {change}" for part in parts for change in changed_versions(part)})
