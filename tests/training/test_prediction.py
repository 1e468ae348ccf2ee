"""What a trained network says of images: equal to the network itself, for any number of them."""

from __future__ import annotations

import copy
import pickle

import jax
import numpy as np
import pytest

from jaxevo.config import NetworkConfig
from jaxevo.datasets import DataError, Images
from jaxevo.errors import InputError
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.training import prediction
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source

CELL = Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),))
GENOME = Genome(CELL, CELL)
NAMES = ("ant", "bee", "cat")
SIZES = (0, 1, 2, 4, 5, 31, 32, 33, 36, 37, 70)


@pytest.fixture(scope="module")
def images() -> np.ndarray:
    return np.random.default_rng(2).integers(0, 256, (max(SIZES), 8, 8, 1), dtype=np.uint8)


@pytest.fixture(scope="module")
def classifier(images: np.ndarray) -> Classifier:
    """Not trained; its last layer is set so that the images' classes differ."""
    builder = NetworkBuilder(NetworkConfig(channels=2, num_normal_cells=1), (8, 8, 1), len(NAMES))
    network = builder.build(GENOME, 1)
    network.head.set_value(100 * network.head[...])
    network.head_bias.set_value(-network(images, train=False).mean(0))
    return Classifier.of(GENOME, builder, Source("insects", NAMES, "stretch"), network=network)


@pytest.fixture(scope="module")
def expected(classifier: Classifier, images: np.ndarray) -> np.ndarray:
    """Probabilities by the network itself, all images at once, and NumPy."""
    logits = np.asarray(jax.jit(lambda x: classifier.network(x, train=False))(images), np.float64)
    powers = np.exp(logits)
    return powers / powers.sum(1, keepdims=True)


@pytest.mark.parametrize("number", SIZES)
def test_any_number_of_images_is_predicted_as_by_the_network(classifier, images, expected, number):
    found = classifier.predict_proba(images[:number])
    assert found.shape == (number, 3) and found.dtype == np.float32
    np.testing.assert_allclose(found, expected[:number], rtol=2e-5)
    classes = [NAMES[k] for k in expected[:number].argmax(1)]
    assert classifier.predict(images[:number]).tolist() == classes


def test_the_images_differ_in_class(expected):
    assert set(expected.argmax(1).tolist()) == {0, 1, 2}


def test_few_images_are_not_filled_up_to_a_batch():
    def parts(number: int) -> list[tuple[int, int]]:
        return [(part.start, part.stop) for part in prediction._parts(number)]

    assert parts(0) == []
    assert parts(2) == [(0, 1), (1, 2)]
    assert parts(5) == [(0, 5)]
    assert parts(34) == [(0, 32), (32, 33), (33, 34)]
    assert parts(70) == [(0, 32), (32, 64), (64, 70)]


def test_a_single_image_may_come_alone(classifier, images, expected):
    for image in (images[3], images[3, ..., 0]):
        np.testing.assert_allclose(classifier.predict_proba(image), expected[3:4], rtol=2e-5)
        assert classifier.predict(image).tolist() == [NAMES[expected[3].argmax()]]


def test_accuracy_by_hand(classifier, images, expected):
    numbers = expected.argmax(1).astype(np.int32)
    numbers[:7] = (numbers[:7] + 1) % 3  # 7 of 70 are wrong, so 90 % are right
    assert classifier.accuracy(Images(images, numbers)) == pytest.approx(0.9)
    assert classifier.accuracy(images, numbers) == pytest.approx(0.9)
    assert classifier.accuracy(images[..., 0], np.array(NAMES)[numbers]) == pytest.approx(0.9)
    assert classifier.accuracy(images[0], [NAMES[numbers[0]]]) == 0.0
    # Classes of another data set are known by their names, in whatever order.
    other = ("cat", "ant", "bee")
    named = np.array([other.index(NAMES[k]) for k in numbers], np.int32)
    assert classifier.accuracy(Images(images, named, other)) == pytest.approx(0.9)
    with pytest.raises(DataError, match="has the class dog, which the network has not"):
        classifier.accuracy(Images(images, named, ("cat", "ant", "dog")))


def test_accuracy_refuses_labels_that_do_not_fit(classifier, images):
    with pytest.raises(InputError, match="^70 images and 69 labels: give one label an image$"):
        classifier.accuracy(images, [0] * 69)
    with pytest.raises(InputError, match="^70 images and 0 labels"):
        classifier.accuracy(images)
    with pytest.raises(InputError, match="^0 images and 0 labels"):
        classifier.accuracy(images[:0], [])
    with pytest.raises(InputError, match="label dog is no class of the network"):
        classifier.accuracy(images, ["dog"] * 70)


def test_every_way_in_checks_the_images(classifier, images):
    for call in (
        classifier.predict,
        classifier.predict_proba,
        lambda x: classifier.accuracy(x, [0]),
    ):
        with pytest.raises(InputError, match="float64 from 0 to 1 and the network takes uint8"):
            call(np.eye(8))
        with pytest.raises(InputError, match=r"images of shape \[70, 7, 8, 1\] cannot be class"):
            call(images[:, 1:])
    with pytest.raises(InputError, match=r"images of shape \[70, 7, 8, 1\] cannot be classified"):
        classifier.accuracy(Images(images[:, 1:], np.zeros(70, np.int32)))


@pytest.mark.parametrize("way", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_predict_the_same(classifier, images, way):
    classifier.predict(images[0])  # compiled programs stay behind
    again = way(classifier)
    assert (again.model, again.builder, again.source) == (
        classifier.model,
        classifier.builder,
        classifier.source,
    )
    found = again.predict_proba(images[:2])
    np.testing.assert_array_equal(found, classifier.predict_proba(images[:2]))
