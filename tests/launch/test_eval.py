"""`launch/eval.py` as a user runs it: trains, saves, scores again, and refuses every wrong use in
one line.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest
from launching import launch

from jaxevo.config import NetworkConfig
from jaxevo.config.presets import RECIPES
from jaxevo.intervals import accuracy_interval
from jaxevo.search_space import genome_files
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.training.checkpoints import load_weights
from jaxevo.training.engine_choice import choose_engine
from jaxevo.versions import versions

CELL = Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),))
GENOME = Genome(CELL, CELL)
TINY = ("--channels=2", "--num_normal_cells=1")
RECIPE = ("--recipe=modern", "--label_smoothing=0.0")  # what is given overrides the recipe
# D=2 on 8x8x1: projection 2 + norm 4, 3x3 with 1x1 18 + 4 + norm 4, and 4 channels to 10 classes:
# 32 + 50.
ENGINE = choose_engine("auto", NetworkConfig())
PARAMETERS, MULTIPLY_ADDS = 82, 64 * (2 + 18 + 4) + 40


def run_eval(
    cwd: pathlib.Path, env: dict[str, str], *args: str, without_jax: bool = False
) -> tuple[int, str, str]:
    done = launch("launch/eval.py", *args, environment=env, folder=cwd, without_jax=without_jax)
    return done.returncode, done.stdout, done.stderr


def assert_refused(outcome: tuple[int, str, str], message: str) -> None:
    code, _, error = outcome
    assert code == 2, error
    lines = error.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ") and message in lines[0], error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A working folder with a genome, damaged ones, and images of another size."""
    path = tmp_path_factory.mktemp("eval")
    (path / "tiny.json").write_text(genome_files.dumps(GENOME))
    (path / "torn.json").write_text(genome_files.dumps(GENOME)[:60])
    (path / "cyclic.json").write_text(genome_files.dumps(GENOME).replace("[0, 1]", "[0, 2]"))
    (path / "there").mkdir()
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (60, 12, 12), np.uint8), np.arange(60) % 10
    np.savez(
        path / "others.npz", x_train=pixels, y_train=labels, x_test=pixels[:20], y_test=labels[:20]
    )
    return path


@pytest.fixture(scope="module")
def trained(folder: pathlib.Path, launch_environment: dict[str, str]) -> tuple[dict[str, Any], str]:
    """Results and output of a training with two seeds, of which the first is saved."""
    args = (
        *TINY,
        "--epochs=1",
        "--batch_size=32",
        "--learning_rate=0.02",
        "--seeds=2",
        "--seed=5",
        *RECIPE,
    )
    code, out, error = run_eval(
        folder,
        launch_environment,
        "--genome=tiny.json",
        *args,
        "--save=best",
        "--output=trained.json",
    )
    assert (code, error) == (0, "")
    return json.loads((folder / "trained.json").read_text()), out


def test_training_with_two_seeds(trained: tuple[dict[str, Any], str]):
    document, out = trained
    (score,) = document["scores"]
    varying = {name: document[name] for name in ("seconds", "training_seconds", "device", "scores")}
    assert varying["seconds"] > 0 and varying["device"] and len(varying["training_seconds"]) == 2
    assert document == varying | {
        "trained_on": "digits",
        "tested_on": "digits",
        "parameters": PARAMETERS,
        "multiply_adds": MULTIPLY_ADDS,
        "genome": GENOME.to_dict(),
        "network": dataclasses.asdict(NetworkConfig(channels=2, num_normal_cells=1)),
        "engine": ENGINE,
        "training": {"epochs": 1, "batch_size": 32, "learning_rate": 0.02, "rate_decay": 0.01}
        | RECIPES["modern"]
        | {"label_smoothing": 0.0},
        "train_images": 1437,
        "versions": versions(),
    }
    accuracies = score["accuracies"]
    assert (score["resize"], score["images"], len(accuracies)) == ("stretch", 360, 2)
    assert score["mean"] == pytest.approx(sum(accuracies) / 2)
    assert score["std"] == pytest.approx(abs(accuracies[0] - accuracies[1]) / 2**0.5)
    assert 0 <= score["interval"][0] <= score["mean"] <= score["interval"][1] <= 1
    data, first, engine, *epochs, result, size = out.splitlines()
    assert data.startswith("digits: 1,437 training images, 360 for the test (a fixed 20% of")
    assert first.startswith(f"{document['parameters']:,} parameters (paper: EvoA 0.22 M")
    assert engine.startswith(f"engine {ENGINE}")
    assert [line.rsplit(" ", 1)[0] for line in epochs] == [
        "seed 5  epoch 1/1  loss",
        "seed 6  epoch 1/1  loss",
    ]
    assert result.startswith(
        f"trained on digits, tested on digits (360 images): {score['mean']:.2%} (95 % interval of "
        "seeds and images "
    )
    assert result.endswith(f"standard deviation {score['std']:.2%} over 2 seeds)")
    assert size == "82 parameters, 1,576 multiply-adds"


def test_saved_weights_have_the_same_accuracy(
    trained: tuple[dict[str, Any], str], folder: pathlib.Path, launch_environment: dict[str, str]
):
    code, out, error = run_eval(
        folder, launch_environment, "--weights=best", "--output=scored.json"
    )
    assert (code, error) == (0, "")
    document, before = json.loads((folder / "scored.json").read_text()), trained[0]
    accuracy = before["scores"][0]["accuracies"][0]
    assert document["scores"] == [
        {
            "resize": "stretch",
            "mean": accuracy,
            "std": None,
            "interval": list(accuracy_interval(accuracy, 360)),
            "accuracies": [accuracy],
            "images": 360,
        }
    ]
    same = (
        "trained_on",
        "tested_on",
        "parameters",
        "multiply_adds",
        "genome",
        "network",
        "versions",
    )
    assert before["device"].startswith(document["device"])  # the kernels that trained follow
    assert {name: document[name] for name in same} == {name: before[name] for name in same}
    assert document.keys() == {*same, "device", "scores", "seconds"}
    assert f"{accuracy:.2%}" in out


def test_saved_weights_are_timed(
    trained: tuple[dict[str, Any], str], folder: pathlib.Path, launch_environment: dict[str, str]
):
    pytest.importorskip("onnx", reason="needs the extra export")
    args = ("--weights=best", "--latency", "--output=timed.json")
    code, out, error = run_eval(folder, launch_environment, *args)
    assert (code, error) == (0, "")
    latency = json.loads((folder / "timed.json").read_text())["latency"]
    assert [row["images"] for row in latency["batches"]] == [1, 64]
    assert f"{latency['bytes']:,} bytes as ONNX; onnxruntime" in out
    assert "64 images at once: median" in out


def test_other_data_is_scored_resized_in_both_ways(
    trained: tuple[dict[str, Any], str], folder: pathlib.Path, launch_environment: dict[str, str]
):
    args = ("--weights=best", "--test_dataset=others.npz", "--output=foreign.json")
    code, out, error = run_eval(folder, launch_environment, *args)
    assert (code, error) == (0, "")
    document = json.loads((folder / "foreign.json").read_text())
    assert (document["trained_on"], document["tested_on"]) == ("digits", "others.npz")
    assert [(score["resize"], score["images"]) for score in document["scores"]] == [
        ("stretch", 20),
        ("mnist_box", 20),
    ]
    assert "tested on others.npz resized by mnist_box (20 images)" in out


def test_a_workdir_resumes_and_is_one_trainings_own(
    folder: pathlib.Path, launch_environment: dict[str, str]
):
    args = ("--model=small_cnn", "--epochs=2", "--train_examples=64", "--workdir=long")
    outcome = run_eval(folder, launch_environment, *args, "--train_examples=9999")
    assert_refused(outcome, "train_examples=9999 is not possible")
    assert not (folder / "long").exists()
    code, out, error = run_eval(folder, launch_environment, *args)
    assert (
        (code, error) == (0, "")
        and "epoch 2/2" in out
        and "19,258 parameters, 138,720 multiply-adds" in out
    )
    code, again, error = run_eval(folder, launch_environment, *args)
    assert (
        (code, error) == (0, "")
        and "epoch" not in again
        and again.splitlines()[-2:] == out.splitlines()[-2:]
    )
    assert load_weights(folder / "long" / "weights")[0]["model"] == "small_cnn"
    outcome = run_eval(folder, launch_environment, *args, "--learning_rate=0.1")
    assert_refused(
        outcome, "long holds another training (see long/training.json); give another --workdir"
    )
    (folder / "search").mkdir()
    (folder / "search" / "config.json").write_text("{}")
    outcome = run_eval(folder, launch_environment, *args, "--workdir=search")
    assert_refused(outcome, "search is the folder of a search; give another --workdir")


def test_diverged_training_is_told_in_one_line(
    folder: pathlib.Path, launch_environment: dict[str, str]
):
    args = (*TINY, "--epochs=2", "--batch_size=32", "--learning_rate=1e38", "--save=diverged")
    outcome = run_eval(folder, launch_environment, "--genome=tiny.json", *args)
    assert_refused(outcome, "; a lower learning rate may help")
    assert not (folder / "diverged").exists()


def test_damaged_weights_are_told_in_one_line(
    trained: tuple[dict[str, Any], str], folder: pathlib.Path, launch_environment: dict[str, str]
):
    damaged = pathlib.Path(shutil.copytree(folder / "best", folder / "damaged"))
    for path in damaged.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:10])
    outcome = run_eval(folder, launch_environment, "--weights=damaged")
    assert_refused(outcome, f"{damaged} is damaged and cannot be read (")


# Refused before jax is imported: flags, and what is said.
ONE_OF = "give one of --genome and --model (to train it) and --weights (to score saved weights)"
WRONG_USES = [
    ("", ONE_OF),
    ("--genome=tiny.json --weights=best", ONE_OF),
    ("--weights=", "flag --weights=: an empty path is given: name a file or a folder"),
    ("--genome=tiny.json --model=resnet18", ONE_OF),
    ("--model=vgg", "flag --model=vgg: value should be one of <resnet18|small_cnn>"),
    ("--model=small_cnn --channels=8", "--channels is for genomes; of small_cnn only the"),
    (
        "--genome=tiny.json --save=new --workdir=new",
        "--save is not needed: the first seed's weights will be in new/weights",
    ),
    (
        "--weights=best --workdir=new",
        "--workdir is for training; with --weights nothing is trained",
    ),
    ("--model=small_cnn --engine=native", "--engine is for genomes; of small_cnn only the"),
    ("--model=small_cnn --latency", "--latency is for saved weights; give it with --weights"),
    (
        "--weights=best --engine=native",
        "--engine is for training; with --weights nothing is trained",
    ),
    (
        "--genome=tiny.json --engine=fast",
        "flag --engine=fast: value should be one of <auto|native|universal|compiled>",
    ),
    ("--weights=best --save=new", "--save is for training; with --weights nothing is trained"),
    (
        "--weights=best --recipe=modern",
        "--recipe is for training; with --weights nothing is trained",
    ),
    (
        "--genome=tiny.json --model_parameters=100",
        "--model_parameters is for hand-designed networks; give it with --model",
    ),
    ("--genome=evoZ", "genome 'evoZ' is neither a file nor one of the shipped ones"),
    ("--genome=torn.json", "torn.json: not a JSON document"),
    (
        "--genome=cyclic.json",
        "cyclic.json: normal: node 0: input 2 is not one of the earlier states 0 to 1",
    ),
    (
        "--genome=tiny.json --dataset=cats",
        "dataset=cats is not known and no such file or folder exists: ",
    ),
    (
        "--genome=tiny.json --num_normal_cells=5",
        "its 4 reductions need images of at least 16x16 pixels, these have 8x8",
    ),
    ("--genome=tiny.json --save=there", "--save=there exists already; give a new folder"),
    (
        "--genome=tiny.json --output=nowhere/x.json",
        "--output=nowhere/x.json: its folder does not exist; create it first",
    ),
    ("--genome=tiny.json --class_map=a=b", "--class_map is for other data than those trained on"),
    (
        "--genome=tiny.json --dataset=digits --test_dataset=digits --test_pixel_range=0,9",
        "--test_pixel_range is for other data than those trained on; name them by --test_dataset",
    ),
    ("--weights=best --test_pixel_range=0,9", "--test_pixel_range is for other data than those"),
    ("--genome=tiny.json --output=/proc/x.json", "--output=/proc/x.json: /proc: "),
    ("--genome=tiny.json --output=there", "--output=there is a folder; give the name of a file"),
    ("--genome=tiny.json --chanels=2", "Unknown command line flag 'chanels'"),
    (
        "--genome=tiny.json --epochs=many",
        "flag --epochs=many: give a whole number",
    ),
    (
        "--genome=tiny.json --conv_kind=dense",
        "flag --conv_kind=dense: value should be one of <separable|full>",
    ),
    ("--genome=tiny.json --seeds=0", "flag --seeds=0: 0 is not a positive integer"),
    (
        "--genome=tiny.json --recipe=old",
        "flag --recipe=old: value should be one of <paper|modern|light>",
    ),
    ("--genome=tiny.json --warmup=1", "warmup=1.0 is not possible: it lies in [0, 1)"),
    ("--genome=tiny.json --epochs=0", "epochs=0 is not possible: the smallest value is 1"),
    (
        "--genome=tiny.json epochs=3",
        "unexpected argument 'epochs=3'; flags are written --name=value, see --help",
    ),
]


@pytest.mark.parametrize(("flags", "words"), WRONG_USES)
def test_wrong_uses_are_refused_at_once(
    folder: pathlib.Path, launch_environment: dict[str, str], flags: str, words: str
):
    before = sorted(folder.rglob("*"))
    # Importing JAX takes seconds.
    outcome = run_eval(folder, launch_environment, *flags.split(), without_jax=True)
    assert_refused(outcome, words)
    assert sorted(folder.rglob("*")) == before
