"""Trains a genome (or hand-designed network) fully and reports its test accuracy.

With --weights, saved weights are scored instead.

    python -m jaxevo eval --genome=evoA.json --dataset=mnist --data_dir=DIR --seeds=3

    # Trained on one data set, scored on another:
    python -m jaxevo eval --genome=evoA.json --dataset=mnist --test_dataset=usps
    # Checkpoints between epochs, from which the same command resumes:
    python -m jaxevo eval --model=resnet18 --dataset=mnist --workdir=runs/resnet18
    # Saved weights, without training:
    python -m jaxevo eval --weights=runs/digits-quick-seed0/best --dataset=digits
    # How long the network takes in onnxruntime on this machine:
    python -m jaxevo eval --weights=runs/digits-quick-seed0/best --latency
    # A hand-designed network of a genome's size:
    python -m jaxevo eval --model=small_cnn --model_parameters=8000 --dataset=mnist
    # The paper's width on SVHN:
    python -m jaxevo eval --genome=evoA.json --dataset=svhn --channels=32
"""

from __future__ import annotations

import dataclasses
import pathlib
import time
from typing import Any

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.config import RESIZE_METHODS, NetworkConfig, SearchConfig, TrainingConfig
from jaxevo.config.presets import MODELS, RECIPES
from jaxevo.console import say
from jaxevo.datasets import load_training_data
from jaxevo.errors import InputError
from jaxevo.extras import need
from jaxevo.files import check_file_place, check_place, check_weights_place, write_json
from jaxevo.search_space import complexity, genome_files
from jaxevo.versions import versions

FLAGS = flags.FLAGS
WHEN_INTERRUPTED = "with --workdir the same command goes on, else it begins anew"
PAPER_SIZES = {  # by --model; None: a genome
    None: " (paper: EvoA 0.22 M and EvoB 0.21 M on MNIST, 0.39 M and 0.37 M on SVHN)",
    "resnet18": " (paper: 11.18 M)",
    "small_cnn": "",
}
NETWORK = {field.name: field for field in dataclasses.fields(NetworkConfig)}
TRAINING = {field.name: field for field in dataclasses.fields(TrainingConfig)}
FINAL = SearchConfig().final_training

flags.DEFINE(
    shared.PATH, "genome", None, "a genome file, or the name of a shipped genome such as evoA.json"
)
flags.DEFINE_enum("model", None, list(MODELS), "a hand-designed network instead of a genome")
flags.DEFINE_integer(
    "model_parameters",
    0,
    "make the hand-designed network as wide as so many parameters allow; 0: as it is",
    lower_bound=0,
)
flags.DEFINE(
    shared.PATH,
    "weights",
    None,
    "folder or zip file of saved weights to score without training, such as runs/.../best",
)
flags.DEFINE(
    shared.PATH,
    "dataset",
    None,
    "a data set's name, a folder of class folders, or an .npz, .csv or .parquet file (default: "
    "digits, or the weights')",
)
flags.DEFINE(
    shared.PATH,
    "test_dataset",
    None,
    "data set whose test split is scored (default: that of --dataset)",
)
flags.DEFINE_integer(
    "image_size", 0, "resize training images to this side in pixels; 0: as they are", lower_bound=0
)
flags.DEFINE_integer(
    "train_examples", 0, "train on a stratified subset of this many images; 0: all", lower_bound=0
)
flags.DEFINE_integer("seeds", 1, "trainings with different seeds", lower_bound=1)
flags.DEFINE_integer("seed", 0, "first of the seeds", lower_bound=0)
flags.DEFINE(
    shared.PATH,
    "workdir",
    None,
    "folder for checkpoints between epochs, by which the same command resumes, and the weights",
)
flags.DEFINE(shared.PATH, "save", None, "folder to save the (first seed's) trained weights in")
flags.DEFINE_bool(
    "latency", False, "with --weights: time the exported network in onnxruntime, on one thread"
)
flags.DEFINE(
    shared.PATH, "output", None, "file to write the results to as JSON, in place of what is there"
)
shared.define_config_flags(NETWORK, {"default": dataclasses.asdict(NetworkConfig())})
shared.define_config_flags(TRAINING, {"default": dataclasses.asdict(FINAL)})
shared.define_recipe_flag("the training")
shared.define_engine_flag()
flags.DEFINE_enum(
    "resize", "stretch", list(RESIZE_METHODS), "how images of another size are resized"
)
shared.define_reading_flags()
shared.define_machine_flags()


def train_and_score(console: Console) -> dict[str, Any]:
    """Trains the model with each seed and scores it."""
    network = NetworkConfig(**shared.given(NETWORK))
    training = dataclasses.replace(FINAL, **RECIPES[FLAGS.recipe] | shared.given(TRAINING))
    genome = genome_files.find(FLAGS.genome)[0] if FLAGS.genome else None
    own, other = shared.reading_options()
    dataset = FLAGS.dataset or "digits"
    train = load_training_data(
        dataset,
        FLAGS.data_dir,
        image_size=FLAGS.image_size,
        resize=FLAGS.resize,
        options=own,
    )
    if genome is not None:
        complexity.check_given(genome, shared.given(NETWORK))
        complexity.network_settings(genome, network).check_image(*train.images.images.shape[1:3])
    # Imports JAX, which takes seconds: what can be refused has been.
    command.start_jax()
    from jaxevo.experiments import evaluation
    from jaxevo.networks.baselines import Architecture, Baseline
    from jaxevo.training.fit import DivergedError

    model: Architecture
    if genome is not None:
        model = genome
    elif FLAGS.model_parameters:
        model = Baseline.of_size(
            FLAGS.model,
            FLAGS.model_parameters,
            train.images.images.shape[1:],
            num_classes=len(train.class_names),
        )
    else:
        model = Baseline(FLAGS.model)
    task = evaluation.EvaluationTask(
        model=model,
        network=network,
        training=training,
        engine=FLAGS.engine or "auto",
        trained_on=dataset,
        tested_on=FLAGS.test_dataset,
        data_dir=FLAGS.data_dir,
        image_size=FLAGS.image_size,
        resize=FLAGS.resize,
        train_examples=FLAGS.train_examples,
        seeds=range(FLAGS.seed, FLAGS.seed + FLAGS.seeds),
        folder=pathlib.Path(FLAGS.workdir) if FLAGS.workdir else None,
        save=pathlib.Path(FLAGS.save) if FLAGS.save else None,
        options=own,
        test_options=other,
        train=train,
    )

    def on_epoch(seed: int, epoch: int, loss: float) -> None:
        say(console, f"seed {seed}  epoch {epoch}/{training.epochs}  loss {loss:.4f}")

    def message(text: str) -> None:
        published = text.endswith(" parameters") and not FLAGS.model_parameters
        paper = PAPER_SIZES[FLAGS.model] if published else ""
        say(console, text + paper)

    try:
        return evaluation.train_and_score(task, on_epoch, message)
    except DivergedError as error:
        raise InputError(str(error)) from error


def score_weights(console: Console) -> dict[str, Any]:
    """Scores saved weights on test images.

    The images are those of the data trained on, unless other data is named.
    """
    _, options = shared.reading_options()
    command.start_jax()
    from jaxevo.experiments import evaluation

    dataset = FLAGS.test_dataset or FLAGS.dataset

    def message(text: str) -> None:
        say(console, text)

    scored = evaluation.score_weights(
        FLAGS.weights, dataset, FLAGS.data_dir, options=options, message=message
    )
    if not FLAGS.latency:
        return scored
    from jaxevo.export import latency
    from jaxevo.training.classifier import Classifier

    return scored | {"latency": latency.measure(Classifier.load(FLAGS.weights))}


def check_flags() -> None:
    """Refuses impossible flags before anything is computed."""
    if [bool(FLAGS.genome), bool(FLAGS.model), bool(FLAGS.weights)].count(True) != 1:
        raise InputError(
            "give one of --genome and --model (to train it) and --weights (to score saved weights)"
        )
    if FLAGS.model_parameters and not FLAGS.model:
        raise InputError("--model_parameters is for hand-designed networks; give it with --model")
    for name in (*NETWORK, "engine"):
        if FLAGS.model and FLAGS[name].present and name != "precision":
            raise InputError(
                f"--{name} is for genomes; of {FLAGS.model} only the size can be named, by "
                "--model_parameters=N"
            )
    training = (
        "workdir",
        "save",
        "seeds",
        "seed",
        "train_examples",
        "image_size",
        "pixel_range",
        "resize",
        "recipe",
        "engine",
    )
    for name in (*training, *NETWORK, *TRAINING):
        if FLAGS.weights and FLAGS[name].present:
            raise InputError(f"--{name} is for training; with --weights nothing is trained")
    if FLAGS.weights:
        foreign = bool(FLAGS.test_dataset or FLAGS.dataset)
    else:
        foreign = FLAGS.test_dataset not in (None, FLAGS.dataset)
    for name in ("class_map", "test_pixel_range"):
        if FLAGS[name].value and not foreign:
            raise InputError(
                f"--{name} is for other data than those trained on; name them by --test_dataset"
            )
    if FLAGS.latency and not FLAGS.weights:
        raise InputError("--latency is for saved weights; give it with --weights")
    if FLAGS.latency:
        need("onnx", "export")
        need("onnxruntime", "export")
    if FLAGS.save and FLAGS.workdir:
        raise InputError(
            f"--save is not needed: the first seed's weights will be in {FLAGS.workdir}/weights"
        )
    if FLAGS.save:
        if pathlib.Path(FLAGS.save).exists():
            raise InputError(f"--save={FLAGS.save} exists already; give a new folder")
        check_place("--save", FLAGS.save)
        check_weights_place(pathlib.Path(FLAGS.save))
    if FLAGS.output:
        check_file_place("--output", FLAGS.output)


def main(console: Console) -> None:
    """Flags in, one library call, words out."""
    check_flags()
    begin = time.perf_counter()
    document = score_weights(console) if FLAGS.weights else train_and_score(console)
    from jaxevo.experiments.scores import document_lines
    from jaxevo.training.engine_choice import device_name

    say(console, "\n".join(document_lines(document)))
    if FLAGS.latency:
        from jaxevo.export import latency

        say(console, "\n".join(latency.document_lines(document["latency"])))
    if FLAGS.output:
        about = {"versions": versions(), "device": device_name(document.get("engine", ""))}
        about |= {"seconds": round(time.perf_counter() - begin, 1)}
        write_json(pathlib.Path(FLAGS.output), document | about)


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, WHEN_INTERRUPTED, arguments=arguments, grouped=shared.grouped)
