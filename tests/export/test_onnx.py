"""Exported networks compute in onnxruntime as they do in JAX, and tell what they are."""

from __future__ import annotations

import dataclasses
import json

import jax
import numpy as np
import pytest
from builders_export import random_classifier, shaken_classifier
from conftest import random_genomes

from jaxevo.config import NetworkConfig
from jaxevo.datasets import Content
from jaxevo.errors import InputError
from jaxevo.extras import need
from jaxevo.networks.baselines import Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source

onnx = pytest.importorskip("onnx", reason="needs the extra export")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra export")

from jaxevo.export import quantized, runtime  # noqa: E402
from jaxevo.networks.onnx_network import INPUT, LOGITS  # noqa: E402

(GENOME,) = random_genomes(1, 2, 3)
SHAPE = (9, 6, 3)
BUILDER = NetworkBuilder(NetworkConfig(channels=3, num_normal_cells=2), SHAPE, 4)
SOURCE = Source("photos/mine", ("a", "<b>", "é", "d"), "stretch", content=Content("abc"))


def images_for(classifier: Classifier, number: int = 3) -> np.ndarray:
    shape = (number, *classifier.image_shape)
    return np.random.default_rng(0).integers(0, 256, shape, np.uint8)


def difference_of_logits(classifier: Classifier) -> float:
    """The largest one, as a part of the largest logit where that is above 1."""
    model = onnx.load_from_string(classifier.to_onnx())
    # Inside of the graph, and not an output: sure networks have equal probabilities too easily.
    logits = onnx.helper.make_tensor_value_info(LOGITS, onnx.TensorProto.FLOAT, None)
    model.graph.output.append(logits)
    images = images_for(classifier)
    session = runtime.open_session(model.SerializeToString(), threads=1)
    (found,) = session.run([LOGITS], {INPUT: images})
    module = classifier.network
    expected = np.asarray(jax.jit(lambda batch: module(batch, train=False))(images))
    return float(np.abs(found - expected).max() / max(1, np.abs(expected).max()))


@pytest.mark.parametrize("seed", range(20))
def test_random_genomes_have_the_same_logits(seed: int):
    classifier = random_classifier(seed, max_nodes=2, max_normal_cells=2)  # quick to compile
    assert difference_of_logits(classifier) < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 300, 50))
def test_three_hundred_random_genomes_have_the_same_logits(start: int):
    differences = [difference_of_logits(random_classifier(start + k)) for k in range(50)]
    jax.clear_caches()  # each program takes memory
    print(f"largest difference {max(differences):.2g}")
    assert max(differences) < 1e-4


@pytest.mark.parametrize(
    ("name", "shape"),
    [("small_cnn", (13, 9, 3)), ("small_cnn", (8, 8, 1)), ("resnet18", (13, 9, 3))],
)
def test_hand_designed_networks_have_the_same_logits(name: str, shape: tuple[int, int, int]):
    builder = NetworkBuilder(NetworkConfig(), shape, 5)
    assert difference_of_logits(shaken_classifier(Baseline(name), builder)) < 1e-4


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return shaken_classifier(GENOME, BUILDER, source=SOURCE)


def test_a_file_tells_what_it_is(classifier: Classifier, tmp_path):
    classifier.export(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    told = {
        key: json.loads(text) for key, text in session.get_modelmeta().custom_metadata_map.items()
    }
    assert told == {
        "genome": GENOME.to_dict(),
        "network": dataclasses.asdict(BUILDER.network),
        "class_names": list(SOURCE.class_names),
        "input_form": classifier.form.to_json(),
        "dataset": "mine",  # a path stays with its owner
        "content": "abc",
    }
    (images,), (probabilities,) = session.get_inputs(), session.get_outputs()
    assert (images.type, images.shape) == ("tensor(uint8)", ["N", *SHAPE])
    assert (probabilities.type, probabilities.shape) == ("tensor(float)", ["N", 4])


def test_the_graph_is_plain(classifier: Classifier):
    model = onnx.load_from_string(classifier.to_onnx())
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Transpose") == 1 and "BatchNormalization" not in kinds
    assert (model.ir_version, model.opset_import[0].version) == (7, 13)
    # Equal networks make equal files.
    assert classifier.to_onnx() == model.SerializeToString(deterministic=True)


@pytest.mark.parametrize("number", [1, 5])
def test_batches_of_any_size(classifier: Classifier, number: int):
    images = images_for(classifier, number)
    found = runtime.probabilities(classifier.to_onnx(), images)
    np.testing.assert_allclose(found, classifier.predict_proba(images), atol=1e-5)


def test_activations_of_bfloat16_are_exported_in_float32():
    network = dataclasses.replace(BUILDER.network, precision="bfloat16")
    narrow = shaken_classifier(GENOME, dataclasses.replace(BUILDER, network=network))
    assert runtime.verify(narrow, narrow.to_onnx()) < 1e-4


def test_another_networks_file_is_noticed(classifier: Classifier):
    other = shaken_classifier(GENOME, BUILDER, seed=1, source=SOURCE)
    with pytest.raises(InputError, match="probabilities differ from the network's by"):
        runtime.verify(classifier, other.to_onnx())


def test_eight_bits_change_little(classifier: Classifier):
    model, images = classifier.to_onnx(), images_for(classifier, 120)
    assert len(quantized.calibration_images(images)) == 120
    small = quantized.quantize(model, images)
    kinds = {node.op_type for node in onnx.load_from_string(small).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= kinds
    wide, narrow = (runtime.probabilities(each, images) for each in (model, small))
    assert 0 < np.abs(wide - narrow).max() < 0.2
    # What the model tells of itself is told still.
    props = [onnx.load_from_string(each).metadata_props for each in (model, small)]
    assert {each.key for each in props[0]} <= {each.key for each in props[1]}


def test_a_missing_package_is_named():
    with pytest.raises(InputError, match=r"needs the package no_such_package.*pip install '.\[exp"):
        need("no_such_package", "export")
