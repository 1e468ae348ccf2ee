"""Makes one of the paper's tables again: trains what is missing, and writes it beside the published figures.

python launch/reproduce.py --table=digits --budget=smoke --data_dir=DIR     # minutes; every row, none of them good
python launch/reproduce.py --table=transfer --budget=cpu --data_dir=DIR     # a night or two; the same command resumes
python launch/reproduce.py --table=ablation --budget=paper                  # as in the paper, on a GPU
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import shutil
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import common
from absl import flags
from rich.console import Console

from jaxevo.config import SearchConfig
from jaxevo.config.presets import MODELS
from jaxevo.datasets import load_train_data
from jaxevo.errors import InputError
from jaxevo.reports import paper_tables as reproduction
from jaxevo.reports.paper_tables import BUDGETS, LABELS, SEARCHED, TABLES, Table, Task
from jaxevo.run.workdir import Workdir, changed_versions, versions, write_csv, write_json, write_text
from jaxevo.search_space import genome as genomes

if TYPE_CHECKING:  # imported late, as they bring jax
    from jaxevo.networks.baselines import Architecture
    from jaxevo.training.classifier import Classifier, Source
    from jaxevo.training.engines import Problem

FLAGS = flags.FLAGS

flags.DEFINE_enum("table", None, list(TABLES), "which of the paper's tables")
flags.DEFINE_enum("budget", "smoke", list(BUDGETS), "how long everything is trained")
flags.DEFINE_list("models", None, f"rows to make (default: all of the table), of: {', '.join(LABELS)}")
flags.DEFINE_integer("epochs", None, "epochs of each training (default: the budget's)", lower_bound=1)
flags.DEFINE_integer("seeds", None, "trainings of each model (default: the budget's)", lower_bound=1)
flags.DEFINE_string(
    "workdir", None, "folder for trainings and tables (default: runs/reproduce-<budget>-<recipe>[-<epochs>epochs])"
)
common.define_recipe_flag("every training")
common.define_machine_flags()


class Reproduction:
    """Parts of a table, each kept in the workdir as soon as it is there."""

    def __init__(self, table: Table, path: pathlib.Path, console: Console):
        self.table, self.path, self.console = table, path, console
        self.budget = BUDGETS[FLAGS.budget]
        self.training = dataclasses.replace(self.budget.training, **common.recipe() | common.given(["epochs"]))
        self.seeds = range(FLAGS.seeds or self.budget.seeds)
        # All images at once: what is missing is missing before the first training.
        names = {name for task in table.tasks for name in task}
        self.train = {name: load_train_data(name, FLAGS.data_dir) for name in names}
        self.tests = {
            task: common.load_tests(self.source(task), task.tested_on, self.shape(task)) for task in table.tasks
        }

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def shape(self, task: Task) -> tuple[int, int, int]:
        """Height, width and channels of the images trained on."""
        height, width, channels = self.train[task.trained_on][0].images.shape[1:]
        return height, width, channels

    def source(self, task: Task) -> Source:
        """What is trained on, as saved weights name it."""
        from jaxevo.training.classifier import Source

        return Source(task.trained_on, self.train[task.trained_on][1], "stretch")

    def problem(self, task: Task) -> Problem:
        """What networks are built for."""
        from jaxevo.training.engines import Problem

        network = self.budget.networks[task.trained_on]
        return Problem(network, self.shape(task), len(self.train[task.trained_on][1]))

    def rows(self, model: str, task: Task) -> list[dict[str, Any]]:
        """The rows of a model, one for each way of resizing the test images."""
        row = reproduction.published_row(model, task)
        if model == "deepswarm":
            return [row]
        try:
            architecture = self.architecture(model)
        except common.NoResultError as error:
            return [row | {"seeds": len(self.seeds), "note": f"failed: {error}"}]
        folder = self.path / f"{model}-{task.trained_on}"
        trained = self.fit(folder, architecture, task)
        notes = (self.provenance(model), row["note"], *_other_versions(trained))
        row |= self.described(architecture, task, trained) | {"note": "; ".join(filter(None, notes))}
        if failures := [each["failure"] for each in trained if each["failure"]]:
            return [row | {"note": f"failed: {failures[0]}"}]
        return [row | scores for scores in self.scores(folder, task)]

    def described(self, model: Architecture, task: Task, trained: list[dict[str, Any]]) -> dict[str, Any]:
        """Sizes, and how it was trained."""
        size, images = self.problem(task).complexity(model), len(self.train[task.trained_on][0])
        number, epochs = self.budget.train_examples or images, self.training.epochs
        return {
            **{"parameters": size.parameters, "multiply_adds": size.multiply_adds, "seeds": len(self.seeds)},
            "training": f"{epochs} epoch{'s' * (epochs > 1)} of {number:,} of {images:,} images",
            "seconds": statistics.fmean(each["seconds"] for each in trained),
            "device": ", ".join(sorted({each["device"] for each in trained})),
        }

    def scores(self, folder: pathlib.Path, task: Task) -> list[dict[str, Any]]:
        """Accuracies of all seeds' weights, for each way of resizing the test images."""
        from jaxevo.training.classifier import summarize

        scores, rows = [self.score(folder, seed, task) for seed in self.seeds], []
        for method, test in self.tests[task].items():
            found = summarize([score[method] for score in scores], len(test))
            low, high = found["interval"]
            resize = method if len(self.tests[task]) > 1 else None
            rows.append({"resize": resize, "mean": found["mean"], "std": found["std"], "low": low, "high": high})
        return rows

    @functools.cache  # noqa: B019  the object lives as long as the process
    def architecture(self, model: str) -> Architecture:
        """Hand-designed, shipped, or what a search on MNIST finds."""
        from jaxevo.networks.baselines import Baseline

        if model in MODELS:
            return Baseline(model)
        return self.search(model) if model in SEARCHED else _shipped(model)[0]

    def provenance(self, model: str) -> str:
        """Where a genome comes from; nothing for hand-designed networks."""
        if model in MODELS:
            return ""
        if model in SEARCHED:
            number = self.search_config(model).num_candidates
            return f"genome: the best of {number} candidates on mnist, preset {self.budget.preset}"
        number = _shipped(model)[1]["provenance"]["candidates"]
        return f"genome: shipped, one of the best of {number} candidates on mnist"

    def search_config(self, model: str) -> SearchConfig:
        """The configuration of a model's search."""
        return common.with_engine(self.budget.search_config(model, len(self.train["mnist"][0])))

    def search(self, model: str) -> genomes.Genome:
        """The winner of a search, which is carried to that choice, or read back."""
        workdir, config = Workdir(self.path / f"search-{model}"), self.search_config(model)
        self.say(f"search {workdir.path}")
        with common.open_search(config, self.budget.preset, workdir, self.console) as search:
            return search.find().genome

    def fit(self, folder: pathlib.Path, model: Architecture, task: Task) -> list[dict[str, Any]]:
        """Trains those seeds that are not there; of each seed seconds, device, versions, and why it failed if so."""
        from jaxevo.networks.baselines import describe

        (images, _), problem = self.train[task.trained_on], self.problem(task)
        network, training = dataclasses.asdict(problem.network), dataclasses.asdict(self.training)
        settings = {"network": network, "training": training, "train_examples": self.budget.train_examples}
        common.claim(folder, describe(model) | settings | {"images": images.digest()})
        for seed in self.seeds:
            if not (folder / f"seed{seed}.json").exists():
                self.fit_seed(folder, model, task, seed)
        kinds = {"seconds": float, "device": str, "versions": dict, "failure": str | None}
        return [reproduction.read_part(folder / f"seed{seed}.json", kinds) for seed in self.seeds]

    def fit_seed(self, folder: pathlib.Path, model: Architecture, task: Task, seed: int) -> None:
        """Trains with one seed, scores, and keeps the weights."""
        from jaxevo.machine import device_name
        from jaxevo.run.evaluator import DivergedError
        from jaxevo.training.classifier import train_classifiers

        def on_epoch(seed: int, epoch: int, loss: float) -> None:
            self.say(f"{folder.name}  seed {seed}  epoch {epoch}/{self.training.epochs}  loss {loss:.4f}")

        images, checkpoints = self.train[task.trained_on][0], folder / "checkpoints"
        data = self.problem(task), images, self.source(task), self.training
        begin, failure = time.perf_counter(), None
        try:
            subset = self.budget.train_examples
            trained = train_classifiers(model, *data, (seed,), subset, checkpoints, on_epoch, self.say)
            ((classifier, seconds),) = trained
            classifier.save(folder / f"seed{seed}")
            if task.tested_on == task.trained_on:  # else the program for it would be compiled again
                self.score(folder, seed, task, classifier)
        except DivergedError as error:
            failure, seconds = str(error), time.perf_counter() - begin
        about = {"seconds": seconds, "device": device_name(), "versions": versions(), "failure": failure}
        write_json(folder / f"seed{seed}.json", about)
        shutil.rmtree(checkpoints, ignore_errors=True)

    def score(
        self, folder: pathlib.Path, seed: int, task: Task, classifier: Classifier | None = None
    ) -> dict[str, float]:
        """Accuracy by the way the test images were resized; measured once for each training and test images."""
        from jaxevo.training.classifier import Classifier

        tests, document = self.tests[task], folder / f"seed{seed}-{task.tested_on}.json"
        digests = {f"{method} images": test.digest() for method, test in tests.items()}
        kinds = dict.fromkeys(digests, str) | dict.fromkeys(tests, float)
        known = reproduction.read_part(document, kinds) if document.exists() else {}
        if any(known.get(name) != digest for name, digest in digests.items()):
            classifier = classifier or Classifier.load(folder / f"seed{seed}")
            known = {method: classifier.accuracy(test) for method, test in tests.items()}
            write_json(document, known | digests)
        return {method: known[method] for method in tests}

    def write(self, rows: list[dict[str, Any]]) -> None:
        """The table as far as it is made."""
        caption, path = self.caption(rows), self.path / FLAGS.table
        write_text(path.with_suffix(".md"), reproduction.markdown(rows, caption))
        write_csv(path.with_suffix(".csv"), rows)
        write_json(path.with_suffix(".json"), {"caption": caption, "rows": rows})

    def caption(self, rows: list[dict[str, Any]]) -> str:
        """Budget, split and protocol."""
        training, number = self.training, len(self.seeds)
        devices = "; ".join(sorted({row["device"] for row in rows if row["device"]}))
        lines = [
            f"Table {FLAGS.table} of the paper, budget {FLAGS.budget}, recipe {FLAGS.recipe}, on {devices}:",
            f"{number} training{'s' * (number > 1)} of each model, batch {training.batch_size}, Adam at",
            f"{training.learning_rate:g}. All models are trained alike, on the training split (a stratified part of it",
            "where the remark says so) for a number of epochs that was fixed before; each trained network is scored",
            "once on the test split, and nothing is chosen by that. A genome is as good as the search it comes from,",
            "whose size the remark names. Intervals: Wilson's over the test images for one training, Student's over",
            "several.",
        ]
        tasks = {task.trained_on: task for task in self.table.tasks}
        for name, task in tasks.items():
            network = self.budget.networks[name]
            lines.append(f"Genomes' networks on {name}: D={network.channels}, N={network.num_normal_cells}.")
            if name == "svhn_cropped":
                problem = dataclasses.replace(self.problem(task), network=reproduction.SVHN_AS_WRITTEN)
                size = problem.complexity(self.architecture("evoA")).parameters
                lines.append(f"As the paper writes it (D=32, N=4, each normal cell thrice) EvoA would have {size:,}")
                lines.append("parameters there; of its sizes only those of D=32 and N=3 come near.")
        tested = {task.tested_on: len(next(iter(tests.values()))) for task, tests in self.tests.items()}
        for name, (images, _) in sorted(self.train.items()):
            lines.append(reproduction.unofficial(name, len(images), tested.get(name)))
        return " ".join(filter(None, lines))


def _shipped(model: str) -> tuple[genomes.Genome, dict[str, Any]]:
    path = genomes.shipped_path(model)
    assert path is not None, f"{model}.json is part of the package"
    return genomes.load(path)


def _other_versions(parts: list[dict[str, Any]]) -> list[str]:
    """What finished parts were made with, where it is not what is here now."""
    return sorted({f"trained with {change}" for part in parts for change in changed_versions(part)})


def main() -> None:
    """Flags in, one row after the other, a table out."""
    if FLAGS.table is None:
        raise InputError(f"give --table={'|'.join(TABLES)}")
    table = TABLES[FLAGS.table]
    models = table.models
    if FLAGS.models is not None:
        common.check_names("models", FLAGS.models, LABELS)
        models = [name for name in LABELS if name in FLAGS.models]
    common.use_compilation_cache()
    console = Console()
    epochs = f"-{FLAGS.epochs}epochs" if FLAGS.epochs else ""
    path = pathlib.Path(FLAGS.workdir or f"runs/reproduce-{FLAGS.budget}-{FLAGS.recipe}{epochs}")
    made = Reproduction(table, path, console)
    common.lock(path)
    parts = [(model, task) for task in table.tasks for model in models]
    rows = [[reproduction.published_row(model, task) | {"note": "still to be made"}] for model, task in parts]
    for number, (model, task) in enumerate(parts):
        made.say(f"{LABELS[model]}, trained on {task.trained_on}, tested on {task.tested_on}")
        rows[number] = made.rows(model, task)
        for row in rows[number]:
            made.say(f"  {reproduction.sentence(row)}")
        made.write([row for part in rows for row in part])
    made.say(f"written: {path}/{FLAGS.table}.md, .csv and .json")


if __name__ == "__main__":
    common.run(main, __doc__ or "", "what is finished is kept: the same command goes on")
    sys.exit(0)
