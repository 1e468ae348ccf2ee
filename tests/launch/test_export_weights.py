"""`jaxevo export --weights` as a user runs it: a network written, and wrong uses refused."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from builders_classifiers import fresh_classifier
from launching import launch

from jaxevo.datasets import load_test_data

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
