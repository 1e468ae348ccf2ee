"""Exported models run by onnxruntime, as they are run where there is neither jaxevo nor JAX."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnxruntime

from jaxevo.datasets import Images
from jaxevo.errors import InputError
from jaxevo.networks.builder import split
from jaxevo.networks.onnx_network import INPUT, OUTPUT
from jaxevo.training.checkpoints import flatten
from jaxevo.training.classifier import Classifier, load_network

_BATCH = 256
_CHECKED = 32  # images, as many as a classifier predicts at once
_TOLERANCE = 1e-4  # of probabilities


def open_session(model: bytes, threads: int = 0) -> onnxruntime.InferenceSession:
    """A session on the processor; 0 threads are as many as it has cores."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # errors
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def probabilities(model: bytes, images: np.ndarray) -> np.ndarray:
    """Probabilities, float32 `[M, classes]`, of inputs, uint8 `[M, H, W, C]`."""
    session = open_session(model)
    parts = range(0, len(images), _BATCH)
    found = [session.run([OUTPUT], {INPUT: images[i : i + _BATCH]})[0] for i in parts]
    return np.concatenate([np.asarray(each) for each in found])


def accuracy(model: bytes, images: Images) -> float:
    """The part of the images that a model classifies rightly, from 0 to 1."""
    return float((probabilities(model, images.images).argmax(-1) == images.labels).mean())


def verify(classifier: Classifier, model: bytes) -> float:
    """The largest difference of a probability between a model and its network, on some images.

    The network computes in float32 here, as the model does.

    Raises:
        InputError: It is larger than roundings are, or no number.
    """
    # Of all brightnesses: of bright noise many a network is too sure to be compared.
    noise = np.random.default_rng(0).random((_CHECKED, *classifier.image_shape))
    images = (256 * noise * np.linspace(0, 1, _CHECKED)[:, None, None, None]).astype(np.uint8)
    expected = in_float32(classifier).predict_inputs(images)
    difference = float(np.abs(probabilities(model, images) - expected).max())
    if not difference <= _TOLERANCE:
        raise InputError(
            f"the exported network's probabilities differ from the network's by {difference:g}: "
            "if its weights are finite numbers, this is a fault of the exporter; please report it"
        )
    return difference


def in_float32(classifier: Classifier) -> Classifier:
    """The classifier with activations of this precision."""
    builder = classifier.builder
    if builder.network.precision == "float32":
        return classifier
    network = dataclasses.replace(builder.network, precision="float32")
    builder = dataclasses.replace(builder, network=network)
    weights = flatten(split(classifier.network)[1:])
    module = load_network(builder, classifier.model, weights)
    return Classifier.of(classifier.model, builder, classifier.source, network=module)
