"""Networks as StableHLO: the same answers for any number of images, and nothing of this machine."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from builders_export import shaken_classifier
from conftest import random_genomes

from jaxevo.config import NetworkConfig
from jaxevo.networks.baselines import Baseline
from jaxevo.networks.builder import NetworkBuilder

pytest.importorskip("flatbuffers", reason="needs the extra export")

from jaxevo.export.stablehlo import PLATFORMS, to_stablehlo  # noqa: E402

(GENOME,) = random_genomes(1, 2, 2)


@pytest.mark.parametrize("model", [GENOME, Baseline("small_cnn")], ids=["genome", "small_cnn"])
def test_the_program_gives_the_same_probabilities(model):
    builder = NetworkBuilder(NetworkConfig(channels=2, num_normal_cells=1), (6, 7, 3), 4)
    classifier = shaken_classifier(model, builder)
    written = to_stablehlo(classifier)
    program = jax.export.deserialize(bytearray(written))
    for number in (1, 5):
        images = np.random.default_rng(0).integers(0, 256, (number, 6, 7, 3), np.uint8)
        expected = classifier.predict_proba(images)
        np.testing.assert_allclose(program.call(images), expected, atol=1e-5)
    # It runs wherever JAX does: no kernel of this program is in it, and no path of this machine.
    assert program.platforms == PLATFORMS
    called = set(re.findall(r"custom_call @(\w+)", program.mlir_module()))
    assert called <= {"shape_assertion"}
    assert b".py" not in written
