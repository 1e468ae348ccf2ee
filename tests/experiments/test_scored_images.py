"""The test images of a network: its own, moved, changed, and those of other data."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil

import pytest
from builders_data import LABELS, make_images, unsplit_folder, write_folder
from conftest import random_genomes

from jaxevo.config import NetworkConfig
from jaxevo.datasets import Content, load_training_data
from jaxevo.errors import InputError
from jaxevo.experiments.evaluation import score_weights
from jaxevo.experiments.scored_images import load_tests
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def own(tmp_path: pathlib.Path) -> pathlib.Path:
    return unsplit_folder(tmp_path / "own")


def test_moved_data_are_scored_in_the_networks_own_form_alone(own: pathlib.Path) -> None:
    """In another form the training images had another digest and were scored too."""
    data = load_training_data(str(own), image_size=6)
    moved = shutil.copytree(own, own.with_name("moved"))
    source = Source(str(own), data.class_names, "stretch", data.form, data.content)
    tests = load_tests(source, data.form, str(moved))
    assert {method: len(test.images) for method, test in tests.items()} == {"stretch": 10}
    foreign = Source("digits", data.class_names, "stretch", data.form, Content("0" * 64))
    tests = load_tests(foreign, data.form, str(moved))
    assert {method: len(test.images) for method, test in tests.items()} == {
        "stretch": 50,
        "mnist_box": 50,
    }


def test_images_that_changed_since_the_training_are_not_scored(own: pathlib.Path) -> None:
    data = load_training_data(str(own))
    source = Source(str(own), data.class_names, "stretch", data.form, data.content)
    assert len(load_tests(source, data.form, str(own), trained_before=True)["stretch"].images) == 10
    # Four more images of a class: another fifth would be the test.
    write_folder(own, make_images(4, (8, 8), 1), LABELS[:4], ending="bmp")
    with pytest.raises(InputError, match="other images than those the network was trained on"):
        load_tests(source, data.form, str(own), trained_before=True)
    # Weights of versions that kept no digest are scored as they were.
    older = dataclasses.replace(source, content=Content())
    assert len(load_tests(older, data.form, str(own), trained_before=True)["stretch"].images) == 11


def test_images_trained_on_are_told_under_another_path(own: pathlib.Path, tmp_path: pathlib.Path):
    data = load_training_data(str(own))
    source = Source(str(own), data.class_names, "stretch", data.form, data.content)
    network = NetworkConfig(channels=1, num_normal_cells=1)
    builder = NetworkBuilder.for_images(network, data.images.images, 2)
    (genome,) = random_genomes(1, 1, 1)
    Classifier.of(genome, builder, source, network=builder.build(genome)).save(tmp_path / "best")
    # The same images and four more: other data, which have images that were trained on.
    moved = shutil.copytree(own, own.with_name("moved"))
    write_folder(moved, make_images(4, (8, 8), 1), LABELS[:4], ending="bmp")
    said: list[str] = []
    score_weights(str(tmp_path / "best"), str(moved), message=said.append)
    assert said[-1] == (
        "the network was trained on 40 of the 54 test images that could be compared, which "
        "flatters the accuracy"
    )
    # Its own test part has none of them.
    score_weights(str(tmp_path / "best"), message=said.append)
    assert len(said) == 3 and "10 for the test" in said[-1]
