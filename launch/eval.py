"""Trains a genome (or hand-designed network) fully and reports its test accuracy, or scores saved weights.

python launch/eval.py --genome=evoA.json --dataset=mnist --data_dir=DIR --seeds=3
python launch/eval.py --genome=evoA.json --dataset=mnist --test_dataset=usps       # trained on one, scored on another
python launch/eval.py --model=resnet18 --dataset=mnist --workdir=runs/resnet18     # the same command resumes
python launch/eval.py --weights=runs/digits-quick-seed0/best --dataset=digits
python launch/eval.py --genome=evoA.json --dataset=svhn --channels=32              # the paper's width on SVHN
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
import time
from typing import TYPE_CHECKING, Any

import common
from absl import flags
from rich.console import Console

from jaxevo.config import NetworkConfig, SearchConfig, TrainingConfig
from jaxevo.config.presets import MODELS
from jaxevo.datasets import METHODS, Images, load_train_data
from jaxevo.datasets.splits import training_subset
from jaxevo.errors import InputError
from jaxevo.run.workdir import versions, write_json
from jaxevo.search_space import genome as genomes

if TYPE_CHECKING:  # imported late, as they bring jax
    from jaxevo.networks.baselines import Architecture
    from jaxevo.training.classifier import Source
    from jaxevo.training.engines import Problem

FLAGS = flags.FLAGS
PAPER_SIZES = {  # by --model; None: a genome
    None: " (paper: EvoA 0.22 M and EvoB 0.21 M on MNIST, 0.39 M and 0.37 M on SVHN)",
    "resnet18": " (paper: 11.18 M)",
    "small_cnn": "",
}
NETWORK = {field.name: field for field in dataclasses.fields(NetworkConfig)}
TRAINING = {field.name: field for field in dataclasses.fields(TrainingConfig)}
FINAL = SearchConfig().final_training

flags.DEFINE_string("genome", None, "a genome file, or the name of a shipped genome such as evoA.json")
flags.DEFINE_enum("model", None, list(MODELS), "a hand-designed network instead of a genome")
flags.DEFINE_string("weights", None, "folder of saved weights to score without training, such as runs/.../best")
flags.DEFINE_string(
    "dataset", None, "a data set's name, a folder of class folders, or an .npz file (default: digits, or the weights')"
)
flags.DEFINE_string("test_dataset", None, "data set whose test split is scored (default: that of --dataset)")
flags.DEFINE_integer("image_size", 0, "resize training images to this side in pixels; 0: as they are", lower_bound=0)
flags.DEFINE_integer("train_examples", 0, "train on a stratified subset of this many images; 0: all", lower_bound=0)
flags.DEFINE_integer("seeds", 1, "trainings with different seeds", lower_bound=1)
flags.DEFINE_integer("seed", 0, "first of the seeds", lower_bound=0)
flags.DEFINE_string(
    "workdir", None, "folder for checkpoints between epochs, by which the same command resumes, and the weights"
)
flags.DEFINE_string("save", None, "folder to save the (first seed's) trained weights in")
flags.DEFINE_string("output", None, "file to write the results to as JSON")
common.define_config_flags(NETWORK, dataclasses.asdict(NetworkConfig()), "default")
common.define_config_flags(TRAINING, dataclasses.asdict(FINAL), "default")
common.define_recipe_flag("the training")
flags.DEFINE_enum("resize", "stretch", list(METHODS), "how images of another size are resized")
common.define_machine_flags()


def score_weights() -> dict[str, Any]:
    """Scores saved weights, on the test images of the data they were trained on unless other data is named."""
    common.use_compilation_cache()
    from jaxevo.training.classifier import Classifier

    classifier = Classifier.load(FLAGS.weights)
    dataset = FLAGS.test_dataset or FLAGS.dataset or classifier.source.dataset
    tests = common.load_tests(classifier.source, dataset, classifier.problem.image_shape)
    accuracies = {method: [classifier.accuracy(images)] for method, images in tests.items()}
    return _document(classifier.source, dataset, classifier.problem, classifier.model, accuracies, tests)


def train_and_score(console: Console) -> dict[str, Any]:
    """Trains the model with each seed and scores it."""
    network = NetworkConfig(**common.given(NETWORK))
    training = dataclasses.replace(FINAL, **common.recipe() | common.given(TRAINING))
    genome = genomes.find(FLAGS.genome)[0] if FLAGS.genome else None
    trained_on = FLAGS.dataset or "digits"
    train, classes = load_train_data(trained_on, FLAGS.data_dir, image_size=FLAGS.image_size, resize=FLAGS.resize)
    height, width, channels = train.images.shape[1:]
    if genome:
        network.check_image(height, width)
    common.use_compilation_cache()  # imports jax, which takes seconds: what can be refused has been
    from jaxevo.networks.baselines import Baseline, describe
    from jaxevo.run.evaluator import DivergedError
    from jaxevo.training.classifier import Source, train_classifiers
    from jaxevo.training.engines import Problem

    model = genome or Baseline(FLAGS.model)
    source = Source(trained_on, classes, FLAGS.resize)
    problem = Problem(network, (height, width, channels), len(classes))
    parameters = problem.complexity(model).parameters
    settings = {"training": dataclasses.asdict(training), "train_images": FLAGS.train_examples or len(train)}
    dataset = FLAGS.test_dataset or trained_on
    tests = common.load_tests(source, dataset, problem.image_shape)
    training_subset(train.labels, FLAGS.train_examples, FLAGS.seed)  # refuses more than there are
    folder = pathlib.Path(FLAGS.workdir) if FLAGS.workdir else None
    if folder:
        what = describe(model) | {"network": dataclasses.asdict(network), "images": train.digest()}
        common.lock(folder)
        common.claim(folder, settings | what)
    console.print(f"{parameters / 1e6:.2f} M parameters{PAPER_SIZES[FLAGS.model]}", highlight=False, soft_wrap=True)
    accuracies: dict[str, list[float]] = {method: [] for method in tests}
    seconds: list[float] = []

    def on_epoch(seed: int, epoch: int, loss: float) -> None:
        console.print(f"seed {seed}  epoch {epoch}/{training.epochs}  loss {loss:.4f}", highlight=False)

    def message(text: str) -> None:
        console.print(text, highlight=False, markup=False, soft_wrap=True)

    seeds = range(FLAGS.seed, FLAGS.seed + FLAGS.seeds)
    subset = FLAGS.train_examples
    trained = train_classifiers(model, problem, train, source, training, seeds, subset, folder, on_epoch, message)
    try:
        for number, (classifier, took) in enumerate(trained):
            seconds.append(round(took, 1))
            for method, images in tests.items():
                accuracies[method].append(classifier.accuracy(images))
            if number == 0 and (FLAGS.save or folder):
                classifier.save(folder / "weights" if folder else pathlib.Path(FLAGS.save))
    except DivergedError as error:
        raise InputError(str(error)) from error
    return _document(source, dataset, problem, model, accuracies, tests) | settings | {"training_seconds": seconds}


def _document(
    source: Source,
    tested_on: str,
    problem: Problem,
    model: Architecture,
    accuracies: dict[str, list[float]],
    tests: dict[str, Images],
) -> dict[str, Any]:
    from jaxevo.networks.baselines import describe
    from jaxevo.training.classifier import summarize

    size = problem.complexity(model)
    return describe(model) | {
        "trained_on": source.dataset,
        "tested_on": tested_on,
        "parameters": size.parameters,
        "multiply_adds": size.multiply_adds,
        "scores": [{"resize": m, **summarize(values, len(tests[m]))} for m, values in accuracies.items()],
    }


def print_document(document: dict[str, Any], console: Console) -> None:
    """The results in words."""
    for score in document["scores"]:
        low, high = score["interval"]
        values = score["accuracies"]
        spread = f", standard deviation {score['std']:.2%} over {len(values)} seeds" if len(values) > 1 else ""
        resized = f" resized by {score['resize']}" if len(document["scores"]) > 1 else ""
        console.print(
            f"trained on {document['trained_on']}, tested on {document['tested_on']}{resized} "
            f"({score['images']:,} images): {score['mean']:.2%} (95 % interval {low:.2%} to {high:.2%}{spread})",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    console.print(
        f"{document['parameters']:,} parameters, {document['multiply_adds']:,} multiply-adds", highlight=False
    )


def check_flags() -> None:
    """What can be refused before anything is computed."""
    if [bool(FLAGS.genome), bool(FLAGS.model), bool(FLAGS.weights)].count(True) != 1:
        raise InputError("give one of --genome and --model (to train it) and --weights (to score saved weights)")
    for name in NETWORK:
        if FLAGS.model and FLAGS[name].present and name != "precision":
            raise InputError(f"--{name} is for genomes; {FLAGS.model} is as it is")
    training = ("workdir", "save", "seeds", "seed", "train_examples", "image_size", "resize", "recipe")
    for name in (*training, *NETWORK, *TRAINING):
        if FLAGS.weights and FLAGS[name].present:
            raise InputError(f"--{name} is for training; with --weights nothing is trained")
    if FLAGS.save and FLAGS.workdir:
        raise InputError(f"--save is not needed: the first seed's weights will be in {FLAGS.workdir}/weights")
    if FLAGS.save and pathlib.Path(FLAGS.save).exists():
        raise InputError(f"--save={FLAGS.save} exists already; give a new folder")
    if FLAGS.output and not pathlib.Path(FLAGS.output).resolve().parent.is_dir():
        raise InputError(f"--output={FLAGS.output}: its folder does not exist; create it first")
    if FLAGS.output and pathlib.Path(FLAGS.output).is_dir():
        raise InputError(f"--output={FLAGS.output} is a folder; give the name of a file")


def main() -> None:
    """Flags in, one library call, words out."""
    check_flags()
    console = Console()
    begin = time.perf_counter()
    document = score_weights() if FLAGS.weights else train_and_score(console)
    from jaxevo.machine import device_name

    print_document(document, console)
    if FLAGS.output:
        seconds = round(time.perf_counter() - begin, 1)
        write_json(
            pathlib.Path(FLAGS.output), document | {"seconds": seconds, "versions": versions(), "device": device_name()}
        )


if __name__ == "__main__":
    common.run(main, __doc__ or "", "with --workdir the same command goes on, else it begins anew")
    sys.exit(0)
