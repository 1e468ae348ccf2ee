"""Hand-designed networks: their published sizes, what they compute, and that they are saved and
loaded like genomes.
"""

from __future__ import annotations

import math
import pathlib

import chex
import jax
import numpy as np
import pytest

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.errors import InputError
from jaxevo.networks import convolutions
from jaxevo.networks.baselines import BASELINES, Baseline, describe, from_description
from jaxevo.networks.builder import NetworkBuilder, split
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.training.classifier import Classifier
from jaxevo.training.full_training import train_classifiers
from jaxevo.training.source import Source

RESNET, SMALL = Baseline("resnet18"), Baseline("small_cnn")


@pytest.mark.parametrize(
    ("baseline", "image_shape", "classes", "expected"),
    [
        # torchvision's ResNet18 for ImageNet has 11,689,512 parameters and 1.814 G multiply-adds.
        (RESNET, (224, 224, 3), 1000, (11_689_512, 1_814_073_344)),
        # The paper's 11.18 M: 990 classes fewer of 513 parameters, then 2 channels fewer of 64 x 7
        # x 7.
        (RESNET, (32, 32, 3), 10, (11_689_512 - 990 * 513, None)),
        (RESNET, (28, 28, 1), 10, (11_689_512 - 990 * 513 - 2 * 64 * 49, None)),
        # 9 (16 + 16 x 32 + 32 x 48) weights, two for each of 96 normalised channels, 49 x 10 in the
        # head.
        (
            SMALL,
            (28, 28, 1),
            10,
            (18_576 + 192 + 490, 9 * (784 * 16 + 196 * 512 + 49 * 1536) + 480),
        ),
        (
            SMALL,
            (9, 5, 3),
            7,
            (9 * (48 + 512 + 1536) + 192 + 343, 9 * (45 * 48 + 8 * 512 + 2 * 1536) + 336),
        ),
        # Half as wide: 8, 16 and 24 channels.
        (Baseline("small_cnn", 0.5), (8, 8, 1), 10, (4_680 + 96 + 250, None)),
    ],
)
def test_sizes_by_hand(baseline, image_shape, classes, expected):
    parameters, multiply_adds = expected
    found = baseline.complexity(image_shape, classes)
    assert found == Complexity(parameters, multiply_adds or found.multiply_adds)


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(
    ("image_shape", "width"),
    [((8, 8, 1), 1.0), ((13, 6, 3), 1.0), ((8, 8, 1), 0.3), ((8, 8, 1), 0.004)],
)
def test_what_is_built_has_these_sizes(name, image_shape, width, monkeypatch):
    monkeypatch.setattr(convolutions, "_MAX_SHIFTED", 0)  # convolutions appear as such
    baseline = Baseline(name, width)
    module = baseline.build(image_shape, 5, "float32", seed=(1, 2))
    _, params, _ = split(module)
    traced = jax.make_jaxpr(lambda images: module(images, train=False))(
        np.zeros((1, *image_shape), np.uint8)
    )
    multiply_adds = 0
    for equation in traced.eqns:
        weights = equation.invars[-1].aval.shape
        if equation.primitive.name == "conv_general_dilated":
            multiply_adds += math.prod(equation.outvars[0].aval.shape) * math.prod(weights[1:])
        elif equation.primitive.name == "dot_general":
            multiply_adds += math.prod(equation.outvars[0].aval.shape) * weights[0]
    parameters = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert baseline.complexity(image_shape, 5) == Complexity(parameters, multiply_adds)
    assert traced.out_avals[0].shape == (1, 5)


@pytest.mark.parametrize("name", BASELINES)
def test_the_widest_within_a_size_is_found(name):
    shape, last = (28, 28, 1), BASELINES[name].channels[-1]
    for parameters in (1_000, 5_026, 19_258, 250_000):
        found = Baseline.of_size(name, parameters, shape, num_classes=10)
        wider = Baseline(name, found.width + 1 / last)
        assert found.complexity(shape, 10).parameters <= parameters
        assert wider.complexity(shape, 10).parameters > parameters
    assert Baseline.of_size("small_cnn", 19_258, shape, num_classes=10) == SMALL
    with pytest.raises(InputError, match=f"{name} has at least .* parameters .*, not 40"):
        Baseline.of_size(name, 40, shape, num_classes=10)


def test_a_seed_decides_the_weights():
    first, same, other = (
        split(SMALL.build((8, 8, 1), 10, "float32", seed=seed))[1] for seed in (0, 0, 1)
    )
    chex.assert_trees_all_equal(first, same)
    assert any(
        np.any(np.asarray(a) != np.asarray(b))
        for a, b in zip(*map(jax.tree.leaves, (first, other)), strict=True)
    )


def test_the_small_cnn_learns_and_comes_back_from_its_folder(few_digits, tmp_path: pathlib.Path):
    train, validation = few_digits
    builder = NetworkBuilder(NetworkConfig(), (8, 8, 1), 10)
    source = Source("digits", tuple("0123456789"), "stretch")
    config = TrainingConfig(epochs=10, batch_size=16, learning_rate=1e-2)
    trained = train_classifiers(SMALL, builder, train, source=source, config=config, seeds=(0,))
    ((classifier, seconds),) = trained
    accuracy = classifier.accuracy(validation)
    assert accuracy > 0.6 and seconds > 0  # chance is 0.1, with a standard deviation of 0.03
    classifier.save(tmp_path / "best")
    loaded = Classifier.load(tmp_path / "best")
    assert loaded.model == SMALL and loaded.accuracy(validation) == accuracy


def test_descriptions_are_read_back():
    cell = Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),))
    for model in (RESNET, SMALL, Baseline("small_cnn", 1 / 3), Genome(cell, cell)):
        assert from_description(describe(model) | {"dataset": "digits"}) == model
    assert describe(SMALL) == {"model": "small_cnn"}  # as before there were widths


def test_what_cannot_be_built_is_refused():
    with pytest.raises(
        InputError, match="model=vgg is not known; choose one of resnet18, small_cnn"
    ):
        Baseline("vgg")
    for width in (0, -1, 17, math.nan, math.inf):
        with pytest.raises(InputError, match=f"width={width} of resnet18 is not within 0 and 16"):
            from_description({"model": "resnet18", "width": width})
    with pytest.raises(ValueError, match="width='wide' is no number"):
        from_description({"model": "resnet18", "width": "wide"})
    for refused in (
        SMALL.complexity,
        lambda shape, classes: SMALL.build(shape, classes, "float32", seed=0),
    ):
        with pytest.raises(
            InputError, match="small_cnn needs images of at least 4x4 pixels, these have 8x3"
        ):
            refused((8, 3, 1), 10)
