"""The engine of a full training: each trains alike, and a folder's training keeps its own."""

from __future__ import annotations

import dataclasses
import json
import pathlib

import numpy as np
import pytest
from builders_classifiers import BUILDER, GENOME, SOURCE
from conftest import random_genomes

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.errors import InputError
from jaxevo.files import FileError
from jaxevo.networks import native
from jaxevo.networks.baselines import Baseline
from jaxevo.networks.builder import split
from jaxevo.search_space.genome import Genome
from jaxevo.training.classifier import Classifier
from jaxevo.training.engine_choice import choose_engine, settle_engine
from jaxevo.training.full_training import train_classifiers

NETWORK = BUILDER.network
SMALL_CNN = Baseline("small_cnn")


def trained(train: Images, engine: str, conv_kind: str) -> Classifier:
    """A genome of two cells that differ in size, trained for 180 steps."""
    (other,) = random_genomes(1, 3, 3, seed=3)
    genome = Genome(other.normal, GENOME.reduction)
    config = TrainingConfig(epochs=4, batch_size=32, learning_rate=0.03)
    settings = {"source": SOURCE, "config": config, "seeds": (0,), "engine": engine}
    network = dataclasses.replace(NETWORK, conv_kind=conv_kind)
    builder = dataclasses.replace(BUILDER, network=network)
    ((classifier, _),) = train_classifiers(genome, builder, train, **settings)
    return classifier


@pytest.mark.skipif(native.unavailable_reason() is not None, reason="needs native kernels")
@pytest.mark.parametrize("conv_kind", ["separable", "full"])
def test_a_genome_trained_by_the_native_engine_is_as_one_compiled(
    digits: SearchData, conv_kind: str
):
    compiled, own = (trained(digits.train, engine, conv_kind) for engine in ("compiled", "native"))
    # The weights are those of the genome's own network. Some have no influence, and differ.
    parts = [split(each.network) for each in (compiled, own)]
    assert parts[0].graphdef == parts[1].graphdef
    probabilities = [each.predict_proba(digits.validation.images) for each in (compiled, own)]
    np.testing.assert_allclose(probabilities[0], probabilities[1], atol=0.01)
    accuracies = [each.accuracy(digits.validation) for each in (compiled, own)]
    assert abs(accuracies[0] - accuracies[1]) < 0.02
    assert accuracies[0] > 0.3


def test_the_folder_keeps_the_engine_that_its_training_began_with(tmp_path: pathlib.Path):
    folder = tmp_path / "new"
    assert settle_engine("universal", GENOME, NETWORK, folder=folder) == "universal"
    assert json.loads((folder / "engine.json").read_text()) == {"engine": "universal"}
    for name in ("auto", "universal"):
        assert settle_engine(name, GENOME, NETWORK, folder=folder) == "universal"
    with pytest.raises(InputError, match=f"{folder} holds a training by engine=universal"):
        settle_engine("compiled", GENOME, NETWORK, folder=folder)


def test_a_training_of_before_engines_were_recorded_goes_on_compiled(tmp_path: pathlib.Path):
    (tmp_path / "seed3").mkdir()
    assert settle_engine("auto", GENOME, NETWORK, folder=tmp_path) == "compiled"
    with pytest.raises(InputError, match="holds a training by engine=compiled"):
        settle_engine("universal", GENOME, NETWORK, folder=tmp_path)


def test_auto_is_for_a_genome_what_it_is_in_a_search(tmp_path: pathlib.Path):
    for network in (NETWORK, NetworkConfig(conv_kind="full"), NetworkConfig(precision="bfloat16")):
        assert settle_engine("auto", GENOME, network) == choose_engine("auto", network)
    assert settle_engine("auto", GENOME, NETWORK, folder=tmp_path) == choose_engine("auto", NETWORK)


def test_a_hand_designed_model_is_compiled():
    for name in ("auto", "compiled"):
        assert settle_engine(name, SMALL_CNN, NETWORK) == "compiled"
    with pytest.raises(InputError, match="engine=universal is for genomes; small_cnn has"):
        settle_engine("universal", SMALL_CNN, NETWORK)


def test_an_engine_that_cannot_train_the_network_is_refused(monkeypatch):
    monkeypatch.setattr(native, "unavailable_reason", lambda: None)
    with pytest.raises(InputError, match="float32 only, not in bfloat16; or use engine=universal"):
        settle_engine("native", GENOME, NetworkConfig(precision="bfloat16"))


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"engine": 3}', '{"engine": "fast"}'])
def test_a_damaged_record_is_refused_by_name(tmp_path: pathlib.Path, text: str):
    (tmp_path / "engine.json").write_text(text)
    with pytest.raises(InputError) as caught:
        settle_engine("auto", GENOME, NETWORK, folder=tmp_path)
    assert isinstance(caught.value, FileError) == (text != '{"engine": "fast"}')
