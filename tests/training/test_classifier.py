"""Trained networks: what is saved is what is loaded, and wrong documents are refused in time."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import shutil
from typing import Any

import chex
import numpy as np
import pytest
from builders_classifiers import BUILDER, CLASSES, GENOME, SOURCE, train, with_document

from jaxevo.datasets import Images, ValueRange
from jaxevo.errors import InputError
from jaxevo.networks.builder import NetworkBuilder, split
from jaxevo.search_space.genome import Genome, Layout
from jaxevo.training.checkpoints import CheckpointError, load_weights
from jaxevo.training.classifier import Classifier


def predictions(classifier: Classifier, images: Images) -> np.ndarray:
    return classifier.trainer.predict(split(classifier.network)[1:], (), images.images)


@pytest.fixture(scope="module")
def trained(few_digits: tuple[Images, Images]) -> Classifier:
    (classifier,) = train(few_digits[0], (3,), train_examples=100)
    return classifier


@pytest.fixture(scope="module")
def saved(trained: Classifier, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("classifier") / "best"
    trained.save(folder)
    return folder


def test_what_is_loaded_is_what_was_saved(
    trained: Classifier, saved: pathlib.Path, few_digits: tuple[Images, Images]
):
    images = few_digits[1]
    loaded = Classifier.load(saved)
    assert (loaded.model, loaded.builder, loaded.source) == (GENOME, BUILDER, SOURCE)
    expected = predictions(trained, images)
    np.testing.assert_array_equal(predictions(loaded, images), expected)
    chex.assert_trees_all_equal(split(loaded.network)[1:], split(trained.network)[1:])
    assert len(set(expected.tolist())) > 1  # or every network would do
    accuracy = float((expected == images.labels).mean())
    assert loaded.accuracy(images) == trained.accuracy(images) == accuracy


def test_only_weights_are_replaced_by_weights(trained: Classifier, tmp_path: pathlib.Path):
    folder = tmp_path / "weights"
    for _ in range(2):
        trained.save(str(folder))  # as text, too
        assert Classifier.load(folder).model == GENOME
    # Damaged weights are weights still.
    shutil.rmtree(folder / "data")
    trained.save(folder)
    assert Classifier.load(folder).model == GENOME
    own, empty, file = tmp_path / "own", tmp_path / "empty", tmp_path / "file"
    own.mkdir()
    (own / "thesis.tex").write_text("years of work")
    file.write_text("the same")
    for there in (own, file):
        with pytest.raises(CheckpointError, match=f"{there} exists and holds no saved weights"):
            trained.save(there)
    assert (own / "thesis.tex").read_text() == "years of work" and file.read_text() == "the same"
    empty.mkdir()
    trained.save(empty)
    assert Classifier.load(empty).model == GENOME


def test_images_that_became_bytes_otherwise_are_not_scored(
    trained: Classifier, few_digits: tuple[Images, Images]
):
    own = trained.form
    source = dataclasses.replace(SOURCE, form=own)
    classifier = Classifier.of(GENOME, BUILDER, source, network=trained.network)
    images = few_digits[1]
    assert classifier.accuracy(dataclasses.replace(images, form=own)) == trained.accuracy(images)
    for other in ({"resize": "mnist_box"}, {"values": ValueRange(0, 4095)}):
        form = dataclasses.replace(own, **other)
        with pytest.raises(InputError, match="load them with form=classifier.form"):
            classifier.accuracy(dataclasses.replace(images, form=form))


def test_a_classifier_is_printed_in_a_line(trained: Classifier):
    assert repr(trained) == "<Classifier: 10 classes, 8 x 8 x 1, 82 parameters>"


def test_document_says_what_the_network_is(saved: pathlib.Path):
    document, weights = load_weights(saved)
    assert document == {
        "genome": GENOME.to_dict(),
        "network": {
            "channels": 2,
            "channel_multiplier": 2,
            "num_normal_cells": 1,
            "normal_repeats": 1,
            "dropout_rate": 0.2,
            "precision": "float32",
            "conv_kind": "separable",
            "output_relu": False,
        },
        "image_shape": [8, 8, 1],
        "class_names": list(CLASSES),
        "dataset": "digits",
        "resize": "stretch",
    }
    assert (
        sum(array.size for array in weights.values())
        == BUILDER.complexity(GENOME).parameters + 2 * 4
    )  # averages


NODE = {"inputs": [0, 0], "ops": ["conv_7x7", "conv_7x7"]}
WRONG_DOCUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    # More than was saved: refused before anything is allocated.
    "many channels": ({"network": {"channels": 10**9}}, "parameters, more than were saved"),
    "many cells": (
        {"network": {"num_normal_cells": 100}, "image_shape": [2**100, 2**100, 1]},
        "more than were saved",
    ),
    "endless cells": (
        {"network": {"num_normal_cells": 10**9}},
        "num_normal_cells=1000000000 is not possible",
    ),
    "endless repeats": (
        {"network": {"normal_repeats": 10**12}},
        "normal_repeats=1000000000000 is not possible",
    ),
    "many classes": ({"class_names": list(map(str, range(100_000)))}, "more than were saved"),
    "many image channels": ({"image_shape": [8, 8, 10**12]}, "more than were saved"),
    "large genome": (
        {"genome": {"normal": [NODE] * 12, "reduction": [NODE]}},
        "more than were saved",
    ),
    "large model": ({"model": "resnet18"}, "parameters, more than were saved"),
    # As many or fewer: refused as the weights do not fit.
    "few classes": (
        {"class_names": ["0", "1"]},
        "the weights belong to another network: 0.head.value",
    ),
    "few channels": (
        {"network": {"channels": 1}},
        "the weights belong to another network: 0.cells.0.norm.bias.value",
    ),
    "other genome": (
        {
            "genome": {
                "normal": [{"inputs": [0, 1], "ops": ["identity", "identity"]}],
                "reduction": [NODE],
            }
        },
        "the weights belong to another network: 0.cells.0.operands.0.kernel.value",
    ),
    # No network at all.
    "no genome": (
        {"genome": None},
        "does not describe its network (ValueError: genome: expected an object",
    ),
    "unknown model": (
        {"model": "vgg"},
        "model=vgg is not known; choose one of resnet18, small_cnn",
    ),
    "unknown op": (
        {"genome": {"normal": [NODE | {"ops": ["conv_9x9"] * 2}], "reduction": [NODE]}},
        "normal node 0: ",
    ),
    "unknown field": ({"network": {"kernel": 3}}, "does not describe its network (TypeError"),
    "text for a number": (
        {"network": {"channels": "2"}},
        "does not describe its network (TypeError",
    ),
    "half a channel": ({"network": {"channels": 1.5}}, "does not describe its network (TypeError"),
    "wrong value": ({"network": {"dropout_rate": math.nan}}, "dropout_rate=nan is not possible"),
    "no image": ({"image_shape": [8, 8]}, "does not describe its network (ValueError"),
    "empty image": ({"image_shape": [8, 8, 0]}, "image_shape is [8, 8, 0]"),
    "negative image": ({"image_shape": [8, 8, -1]}, "image_shape is [8, 8, -1]"),
    "infinite image": (
        {"image_shape": [math.inf, 8, 1]},
        "does not describe its network (OverflowError",
    ),
    "no classes": ({"class_names": None}, "does not describe its network (TypeError"),
}


@pytest.mark.parametrize("name", WRONG_DOCUMENTS)
def test_wrong_documents_are_refused(
    saved: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    changes, message = WRONG_DOCUMENTS[name]
    folder = with_document(saved, tmp_path / "copy", changes)
    build = NetworkBuilder.build

    def small_build(builder: NetworkBuilder, genome: Genome, *args: Any) -> Any:
        assert builder.complexity(genome).parameters < 1000
        return build(builder, genome, *args)

    monkeypatch.setattr(NetworkBuilder, "build", small_build)
    with pytest.raises(CheckpointError) as caught:
        Classifier.load(folder)
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "key", ["genome", "network", "image_shape", "class_names", "dataset", "resize"]
)
def test_missing_entries_are_named(saved: pathlib.Path, tmp_path: pathlib.Path, key: str):
    path = pathlib.Path(shutil.copytree(saved, tmp_path / "copy")) / "data" / "data.json"
    document = json.loads(path.read_text())
    del document[key], document["digest"]
    document["fingerprint"] = ""  # as of a version without digests
    path.write_text(json.dumps(document))
    with pytest.raises(CheckpointError) as caught:
        Classifier.load(tmp_path / "copy")
    assert str(caught.value) == (
        f"{tmp_path / 'copy'} does not describe its network (KeyError: '{key}'); train again"
    )


def test_a_genome_with_its_own_layout_is_saved_and_loaded(tmp_path, few_digits):
    own = dataclasses.replace(GENOME, layout=Layout(3, 2))
    classifier = Classifier.of(own, BUILDER, SOURCE, network=BUILDER.build(own))
    classifier.save(tmp_path / "own")
    loaded = Classifier.load(tmp_path / "own")
    assert loaded.model == own
    np.testing.assert_array_equal(
        predictions(loaded, few_digits[1]), predictions(classifier, few_digits[1])
    )
    # A layout of more cells than there are weights of is refused before it is built.
    cells = own.to_dict() | {"layout": {"channels": 1, "num_normal_cells": 10}}
    with pytest.raises(CheckpointError, match="does not describe its network"):
        Classifier.load(with_document(tmp_path / "own", tmp_path / "claims", {"genome": cells}))
