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
from typing import TYPE_CHECKING, Any

import common
from absl import flags
from rich.console import Console

from jaxevo import config as configs
from jaxevo import genome as genomes
from jaxevo import reproduction
from jaxevo.config import MODELS
from jaxevo.datasets import Images, load_train_data
from jaxevo.errors import InputError
from jaxevo.progress import RunReporter
from jaxevo.reproduction import BUDGETS, LABELS, SEARCHED, TABLES, Task
from jaxevo.workdir import Workdir, read_json, versions, write_json, write_text

if TYPE_CHECKING:  # imported late, as they bring jax
    from jaxevo.baselines import Architecture
    from jaxevo.classifier import Classifier, Source
    from jaxevo.evaluation import Problem

FLAGS = flags.FLAGS

flags.DEFINE_enum("table", None, list(TABLES), "which of the paper's tables")
flags.DEFINE_enum("budget", "smoke", list(BUDGETS), "how long everything is trained")
flags.DEFINE_integer("seeds", None, "trainings of each model (default: the budget's)", lower_bound=1)
flags.DEFINE_string("workdir", None, "folder for trainings and tables (default: runs/reproduce-<budget>-<recipe>)")
common.define_recipe_flag("every training")
common.define_machine_flags()


class Reproduction:
    """Parts of a table, each kept in the workdir as soon as it is there."""

    def __init__(self, path: pathlib.Path, console: Console):
        self.path, self.console = path, console
        self.budget = BUDGETS[FLAGS.budget]
        self.training = dataclasses.replace(self.budget.training, **common.recipe())
        self.seeds = range(FLAGS.seeds or self.budget.seeds)

    def say(self, text: str) -> None:
        """A line."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    @functools.cached_property
    def train(self) -> dict[str, tuple[Images, tuple[str, ...]]]:
        """Training images and class names by data set, once they are asked for."""
        tasks = TABLES[FLAGS.table].tasks
        return {name: load_train_data(name, FLAGS.data_dir) for name in {task.trained_on for task in tasks}}

    def row(self, model: str, task: Task) -> list[dict[str, Any]]:
        """The rows of a model, one for each way of resizing the test images."""
        from jaxevo.classifier import summarize

        row = reproduction.published_row(model, task)
        if model == "deepswarm":
            return [row]
        images, _ = self.train[task.trained_on]
        architecture, problem = self.architecture(model), self.problem(task.trained_on)
        folder = self.path / f"{model}-{task.trained_on}"
        seconds = self.fit(folder, architecture, task.trained_on)
        size, number = problem.complexity(architecture), self.budget.train_examples or len(images)
        epochs = self.training.epochs
        row |= {"parameters": size.parameters, "multiply_adds": size.multiply_adds, "seeds": len(self.seeds)}
        row["training"] = f"{epochs} epoch{'s' * (epochs > 1)} of {number:,} of {len(images):,} images"
        row["seconds"] = statistics.fmean(seconds)
        scores = [self.score(folder, seed, task.tested_on) for seed in self.seeds]
        rows = []
        for method, (_, tested) in scores[0].items():
            found = summarize([score[method][0] for score in scores], tested)
            low, high = found["interval"]
            resize = method if len(scores[0]) > 1 else None
            rows.append(row | {"resize": resize, "mean": found["mean"], "std": found["std"], "low": low, "high": high})
        return rows

    def problem(self, dataset: str) -> Problem:
        """What networks are built for."""
        from jaxevo.evaluation import Problem

        images, names = self.train[dataset]
        height, width, channels = images.images.shape[1:]
        return Problem(self.budget.networks[dataset], (height, width, channels), len(names))

    def architecture(self, model: str) -> Architecture:
        """By hand, shipped, or what a search on MNIST finds."""
        from jaxevo.baselines import Baseline

        if model in MODELS:
            return Baseline(model)
        return self.search(model) if model in SEARCHED else genomes.find(f"{model}.json")[0]

    def search(self, model: str) -> genomes.Genome:
        """The winner of the model's search, which is carried to its end unless it is there."""
        workdir = Workdir(self.path / f"search-{model}")
        if not workdir.best_genome.exists():
            from jaxevo.evaluation import choose_engine
            from jaxevo.search import Search, SearchFailedError, Task

            images, _ = load_train_data("mnist", FLAGS.data_dir)
            config = self.budget.search_config(model, len(images))
            config = configs.replace(config, {"engine": choose_engine(config.engine, config.network.conv_kind)})
            data, load_test, seconds = common.load_images(config)
            common.enter(workdir, config, self.budget.preset, data)
            reporter = RunReporter(config, self.console)
            self.say(f"search {workdir.path}")
            try:
                with reporter.live():
                    Search(Task(config, workdir, data, load_test, seconds), reporter).find()
            except SearchFailedError as error:
                raise InputError(f"{workdir.path}: {error}") from error
        return genomes.load(workdir.best_genome)[0]

    def fit(self, folder: pathlib.Path, model: Architecture, dataset: str) -> list[float]:
        """Trains those seeds that are not there; seconds of each seed's training."""
        from jaxevo.baselines import describe
        from jaxevo.classifier import Source, train_classifiers
        from jaxevo.evaluation import DivergedError

        (images, names), problem = self.train[dataset], self.problem(dataset)
        network, training = dataclasses.asdict(problem.network), dataclasses.asdict(self.training)
        subset = self.budget.train_examples
        settings = {"network": network, "training": training, "train_examples": subset, "images": images.digest()}
        common.claim(folder, describe(model) | settings)
        missing = [seed for seed in self.seeds if not (folder / f"seed{seed}.json").exists()]

        def on_epoch(seed: int, epoch: int, loss: float) -> None:
            self.say(f"{folder.name}  seed {seed}  epoch {epoch}/{self.training.epochs}  loss {loss:.4f}")

        source, checkpoints = Source(dataset, names, "stretch"), folder / "checkpoints"
        arguments = model, problem, images, source, self.training, missing, subset, checkpoints, on_epoch, self.say
        try:
            for seed, (classifier, seconds) in zip(missing, train_classifiers(*arguments), strict=True):
                classifier.save(folder / f"seed{seed}")
                write_json(folder / f"seed{seed}.json", {"seconds": seconds})
                self.score(folder, seed, dataset, classifier)
                shutil.rmtree(checkpoints)
        except DivergedError as error:
            raise InputError(f"{folder}: {error}") from error
        return [float(read_json(folder / f"seed{seed}.json")["seconds"]) for seed in self.seeds]

    def score(
        self, folder: pathlib.Path, seed: int, dataset: str, classifier: Classifier | None = None
    ) -> dict[str, tuple[float, int]]:
        """Accuracy and number of test images by the way they were resized; measured once for each training."""
        from jaxevo.classifier import Classifier

        document = folder / f"seed{seed}-{dataset}.json"
        if not document.exists():
            classifier = classifier or Classifier.load(folder / f"seed{seed}")
            tests = self.tests(classifier.source, dataset, classifier.problem.image_shape)
            write_json(document, {method: [classifier.accuracy(test), len(test)] for method, test in tests.items()})
        return {method: (float(accuracy), int(number)) for method, (accuracy, number) in read_json(document).items()}

    @functools.cache  # noqa: B019  the object lives as long as the process
    def tests(self, source: Source, dataset: str, image_shape: tuple[int, int, int]) -> dict[str, Images]:
        """Test images by the way they were resized."""
        return common.load_tests(source, dataset, image_shape)

    def caption(self) -> str:
        """Budget, split and protocol."""
        from jaxevo.evaluation import device_name

        table, training, number = TABLES[FLAGS.table], self.training, len(self.seeds)
        lines = [
            f"Table {FLAGS.table} of the paper, budget {FLAGS.budget}, recipe {FLAGS.recipe}, on {device_name()}:",
            f"{number} training{'s' * (number > 1)} of each model, batch {training.batch_size}, Adam at",
            f"{training.learning_rate:g}. All models are trained alike, on the training split (a stratified part of it",
            "where the remark says so) for a number of epochs that was fixed before; then the test split is read once.",
            "Intervals: Wilson's over the test images for one training, Student's over several.",
        ]
        for name in {task.trained_on: None for task in table.tasks}:
            network = self.budget.networks[name]
            lines.append(f"Genomes' networks on {name}: D={network.channels}, N={network.num_normal_cells}.")
            if name == "svhn_cropped":
                literal = dataclasses.replace(network, num_normal_cells=4, normal_repeats=3)
                size = dataclasses.replace(self.problem(name), network=literal).complexity(self.architecture("evoA"))
                lines.append(f"With N=4 and each normal cell thrice, as the paper says, EvoA has {size.parameters:,}")
                lines.append("parameters there; only N=3 fits the paper's sizes.")
        for task in table.tasks:
            classes = self.train[task.trained_on][1]
            from jaxevo.datasets import load_test_data

            test = load_test_data(task.tested_on, FLAGS.data_dir, class_names=classes)
            train, _ = load_train_data(task.tested_on, FLAGS.data_dir)
            lines.append(reproduction.unofficial(task.tested_on, len(train), len(test)))
        return " ".join(filter(None, lines))


def main() -> None:
    """Flags in, one row after the other, a table out."""
    if FLAGS.table is None:
        raise InputError(f"give --table={'|'.join(TABLES)}")
    common.use_compilation_cache()
    console = Console()
    path = pathlib.Path(FLAGS.workdir or f"runs/reproduce-{FLAGS.budget}-{FLAGS.recipe}")
    path.mkdir(parents=True, exist_ok=True)
    Workdir(path).lock()  # until the process ends
    made = Reproduction(path, console)
    table, rows = TABLES[FLAGS.table], []
    for task in table.tasks:
        for model in table.models:
            made.say(f"{LABELS[model]}, trained on {task.trained_on}, tested on {task.tested_on}")
            for row in made.row(model, task):
                made.say(f"  {reproduction.sentence(row)}")
                rows.append(row)
    caption = made.caption()
    write_text(path / f"{FLAGS.table}.md", reproduction.markdown(rows, caption))
    write_text(path / f"{FLAGS.table}.csv", reproduction.table_csv(rows))
    write_json(path / f"{FLAGS.table}.json", {"caption": caption, "rows": rows, "versions": versions()})
    made.say(f"written: {path}/{FLAGS.table}.md, .csv and .json")


if __name__ == "__main__":
    common.run(main, __doc__ or "", "nothing is lost: give the same command to go on")
    sys.exit(0)
