"""The page for a browser: what is in its folder, and images converted as training images were.

The slow test draws digits in a real browser. It needs `chromium`, `node`, and a folder
`JAXEVO_NODE_MODULES` into which `npm install onnxruntime-web playwright-core` was done.
"""

from __future__ import annotations

import dataclasses
import functools
import http.server
import json
import os
import pathlib
import shutil
import subprocess
import threading
from typing import Any

import numpy as np
import pytest
from builders_classifiers import BUILDER, GENOME, SOURCE, fresh_classifier
from conftest import REPOSITORY

from jaxevo.config import TrainingConfig
from jaxevo.datasets import InputForm, ValueRange, load_training_data
from jaxevo.errors import InputError
from jaxevo.networks.baselines import Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.training.classifier import Classifier
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.source import Source

pytest.importorskip("onnx", reason="needs the extra export")

from jaxevo.export.browser import RUNTIME_FILES, drawn, remaining_steps, save_page  # noqa: E402

PAGE = REPOSITORY / "jaxevo" / "export" / "page"


def test_the_folder_has_all_but_the_runtime(tmp_path: pathlib.Path):
    folder = tmp_path / "page"
    save_page(fresh_classifier(), b"model", folder)
    names = {"index.html", "page.css", "page.js", "convert.js", "model.onnx", "model.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert [path.name for path in tmp_path.iterdir()] == ["page"]
    assert json.loads((folder / "model.json").read_text()) == {
        "class_names": list(SOURCE.class_names),
        "form": fresh_classifier().form.to_json(),
        "drawn": "stretch",
    }
    assert all(name in remaining_steps(folder) for name in RUNTIME_FILES)


def test_the_page_runs_no_text_of_others():
    html = (PAGE / "index.html").read_text()
    assert "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'" in html
    script = (PAGE / "page.js").read_text()
    assert not any(word in script for word in ("innerHTML", "insertAdjacentHTML", "document.write"))


@pytest.mark.parametrize(
    ("dataset", "form", "expected"),
    [
        ("mnist", InputForm(28, 28, 1), "mnist_box"),  # boxed already as it is published
        ("mine", InputForm(28, 28, 1, "mnist_box"), "mnist_box"),
        ("mine", InputForm(28, 28, 1), "stretch"),
        ("mnist", InputForm(28, 20, 1), ""),
        ("photos", InputForm(32, 32, 3), ""),
    ],
)
def test_how_a_drawing_becomes_an_input(dataset: str, form: InputForm, expected: str):
    source = Source(dataset, SOURCE.class_names, form.resize, form)
    builder = NetworkBuilder(BUILDER.network, form.image_shape, 10)
    network = builder.build(GENOME)
    assert drawn(Classifier.of(GENOME, builder, source, network=network)) == expected


# Sides of images, channels, and the form of inputs.
CASES = [
    ((28, 28, 1), InputForm(8, 8, 1)),
    ((13, 9, 3), InputForm(8, 12, 3)),
    ((40, 31, 3), InputForm(16, 16, 1)),
    ((5, 7, 1), InputForm(11, 20, 3)),
    ((60, 50, 1), InputForm(28, 28, 1, "mnist_box")),
    ((33, 20, 3), InputForm(16, 16, 3, "mnist_box")),
    ((28, 28, 1), InputForm(28, 28, 1, "mnist_box")),
]
PROGRAM = """
import {readFileSync} from "node:fs";
import {toInput} from "./convert.mjs";

const found = JSON.parse(readFileSync(0)).map(({image, form}) =>
  [...toInput({...image, data: Uint8Array.from(image.data)}, form).data]);
console.log(JSON.stringify(found));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_converts_images_as_training_images(tmp_path: pathlib.Path):
    rng = np.random.default_rng(0)
    images = [_blob(rng, *shape) for shape, _ in CASES]
    images[-1][:] = 0  # no ink
    given = [
        {
            "image": dict(zip(("height", "width", "channels"), image.shape, strict=True))
            | {"data": image.ravel().tolist()},
            "form": form.to_json(),
        }
        for image, (_, form) in zip(images, CASES, strict=True)
    ]
    answers = answers_of(tmp_path, PROGRAM, given)
    for image, (_, form), found in zip(images, CASES, answers, strict=True):
        expected = form.to_input(image[None], "the image")[0]
        # Pillow begins with the side that is less work, which rounds otherwise; most are equal.
        difference = np.abs(np.reshape(found, form.image_shape) - expected.astype(int))
        assert difference.max() <= 1 and (difference > 0).mean() < 0.2


RANGES = [(0, 255), (0, 15), (0, 6), (-1, 1), (100, 255)]
SCALING = """
import {readFileSync} from "node:fs";
import {scaled} from "./convert.mjs";

const answers = JSON.parse(readFileSync(0)).map(([data, range]) => {
  try {
    return [...scaled({height: 1, width: data.length / 4, data}, range).data];
  } catch (error) {
    return error.message;
  }
});
console.log(JSON.stringify(answers));
"""


def answers_of(folder: pathlib.Path, program: str, given: object) -> Any:
    """What a program beside the page's conversions prints."""
    shutil.copy(PAGE / "convert.js", folder / "convert.mjs")
    (folder / "program.mjs").write_text(program)
    done = subprocess.run(
        ["node", "program.mjs"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_page_scales_values_as_training_images(tmp_path: pathlib.Path):
    """Each value of each range, beside an opaque and an invisible pixel of values beyond it."""
    given, expected = [], []
    for low, high in RANGES:
        values = np.arange(max(0, low), high + 1)
        given.append(
            ([*np.stack([values] * 3 + [np.full_like(values, 9)], 1).ravel().tolist()], (low, high))
        )
        expected.append(ValueRange(low, high).to_bytes(values))
    invisible = [250, 250, 250, 0]
    given += [([1, 2, 16, 255], (0, 15)), (invisible, (0, 15)), ([7, 8, 9, 255], (0, 65535))]
    *found, refused, hidden, deep = answers_of(tmp_path, SCALING, given)
    for answer, wanted in zip(found, expected, strict=True):
        pixels = np.reshape(answer, (-1, 4))
        assert (pixels[:, 3] == 9).all()
        for channel in range(3):
            np.testing.assert_array_equal(pixels[:, channel], wanted)
    assert refused == "The image has the value 16, the training images had 0 to 15."
    assert hidden[3] == 0 and deep == [7, 8, 9, 255]


def test_a_page_for_values_that_no_browser_reads_is_refused(tmp_path: pathlib.Path):
    source = dataclasses.replace(SOURCE, form=InputForm(8, 8, 3, values=ValueRange(0, 4095)))
    builder = NetworkBuilder(BUILDER.network, (8, 8, 3), 10)
    classifier = Classifier.of(GENOME, builder, source, network=builder.build(GENOME))
    with pytest.raises(InputError, match="images of values 0 to 4095 is not possible, as a brows"):
        save_page(classifier, b"model", tmp_path / "page")
    assert not (tmp_path / "page").exists()


def _blob(rng: np.random.Generator, height: int, width: int, channels: int) -> np.ndarray:
    """Noise within a part of a black image."""
    image = np.zeros((height, width, channels), np.uint8)
    part = image[height // 5 : -height // 4, width // 6 : -width // 7]
    part[:] = rng.integers(0, 256, part.shape)
    return image


MODULES = os.environ.get("JAXEVO_NODE_MODULES", "")


@pytest.mark.slow
@pytest.mark.skipif(not MODULES, reason="needs JAXEVO_NODE_MODULES, see above")
def test_drawn_digits_are_recognised_in_a_browser(tmp_path: pathlib.Path):
    # A network of the embedded digits, boxed at 16x16 pixels, so that a drawing is boxed too.
    data = load_training_data("digits", image_size=16, resize="mnist_box")
    builder = NetworkBuilder.for_images(BUILDER.network, data.images.images, 10)
    source = Source("digits", data.class_names, "mnist_box", data.form)
    config = TrainingConfig(epochs=40, learning_rate=1e-2, max_rotation=10, max_scale=0.1)
    ((classifier, _),) = train_classifiers(
        Baseline("small_cnn"), builder, data.images, source=source, config=config, seeds=(0,)
    )
    # The page with its runtime, on a server of this machine.
    folder = tmp_path / "page"
    save_page(classifier, classifier.to_onnx(), folder)
    for name in RUNTIME_FILES:
        shutil.copy(pathlib.Path(MODULES, "onnxruntime-web", "dist", name), folder)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        driver = pathlib.Path(__file__).with_name("draw.mjs")
        command = ["node", str(driver), f"http://127.0.0.1:{server.server_port}/", MODULES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        server.shutdown()
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == []
    right = [digit for digit, answer in found["answers"].items() if answer.startswith(f"{digit},")]
    assert len(right) >= 6, found["answers"]  # of 8, by a network of 1,400 pictures
