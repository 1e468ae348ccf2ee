"""`jaxevo export --weights` as a user runs it: a network written, and wrong uses refused."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from builders_classifiers import BUILDER, CLASSES, GENOME, fresh_classifier
from launching import launch

from jaxevo.datasets import InputForm, load_test_data
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source

pytest.importorskip("onnx", reason="needs the extra export")
pytest.importorskip("onnxruntime", reason="needs the extra export")

from jaxevo.export import runtime  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("export")
    fresh_classifier().save(path / "best")
    return path


def export(
    folder: pathlib.Path, environment: dict[str, str], *args: str, without_jax: bool = False
):
    return launch(
        *("jaxevo", "export", *args),
        environment=environment,
        folder=folder,
        without_jax=without_jax,
    )


def test_a_network_is_written_in_8_bits_too(
    folder: pathlib.Path, launch_environment: dict[str, str]
):
    args = ("--weights=best", "--format=onnx", "--quantize=int8", "--output=small.onnx")
    done = export(folder, launch_environment, *args)
    assert (done.returncode, done.stderr) == (0, "")
    same, wide, narrow, small, wrote = done.stdout.splitlines()
    assert same.startswith("onnxruntime gives the network's probabilities; they differ by ")
    assert wide.startswith("float32: ") and wide.endswith("(360 images)")
    assert narrow.startswith("int8: ") and wrote == "wrote small.onnx"
    assert small == "a network as small as this gains nothing by 8 bits: leave --quantize out"
    images = load_test_data("digits").images
    found = runtime.probabilities((folder / "small.onnx").read_bytes(), images)
    np.testing.assert_allclose(found, fresh_classifier().predict_proba(images), atol=0.1)


def test_other_data_are_scored_in_the_networks_own_form(
    folder: pathlib.Path, launch_environment: dict[str, str]
):
    # Larger images of other data, of any brightness, in a box and stretched.
    rng = np.random.default_rng(0)
    images = (rng.random((60, 12, 12)) * rng.random((60, 1, 1)) * 256).astype(np.uint8)
    data = {"x_train": images[:20], "y_train": np.arange(20) % 10, "x_test": images[20:]}
    np.savez(folder / "other.npz", **data, y_test=np.zeros(40, np.int64))
    form, stretch = InputForm(8, 8, 1, resize="mnist_box"), InputForm(8, 8, 1)
    boxed, stretched = (
        load_test_data(str(folder / "other.npz"), form=each).images for each in (form, stretch)
    )
    # A network of images in a box, which prefers no class.
    network, source = BUILDER.build(GENOME), Source("digits", CLASSES, "mnist_box", form)
    classifier = Classifier.of(GENOME, BUILDER, source, network=network)
    network.head_bias.set_value(-np.log(classifier.predict_inputs(boxed)).mean(0))
    classifier = Classifier.of(GENOME, BUILDER, source, network=network)
    classifier.save(folder / "boxed")
    # Its own predictions are the labels; it has others for stretched images.
    labels = classifier.predict_inputs(boxed).argmax(-1)
    assert (labels != classifier.predict_inputs(stretched).argmax(-1)).any()
    np.savez(folder / "other.npz", **data, y_test=labels)
    args = ("--weights=boxed", "--dataset=other.npz", "--format=onnx", "--quantize=int8")
    done = export(folder, launch_environment, *args, "--output=boxed.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    assert "test accuracy 100.00% (40 images)" in done.stdout.splitlines()[1]


WRONG_USES = [
    ("--weights=best --run=there", "give one of --weights=..., --run=..., --genome=..."),
    ("--weights=best --format=csv", "with --weights give --format=onnx|stablehlo|browser"),
    ("--weights=best --format=onnx --output=best", "--output=best exists already"),
    (
        "--weights=best --format=stablehlo --quantize=int8 --output=x",
        "--quantize is for --format=onnx and --format=browser",
    ),
    ("--run=best --format=csv --quantize=int8 --output=x", "--quantize is for --format=onnx"),
]


@pytest.mark.parametrize(("flags", "words"), WRONG_USES)
def test_wrong_uses_are_refused_at_once(
    folder: pathlib.Path, launch_environment: dict[str, str], flags: str, words: str
):
    done = export(folder, launch_environment, *flags.split(), without_jax=True)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1
