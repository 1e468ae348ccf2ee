"""A trained network as StableHLO, for programs that have JAX but not jaxevo."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import jax
import numpy as np
from flax import nnx
from jax import export

from jaxevo.training.classifier import Classifier

PLATFORMS = ("cpu", "cuda")


def to_stablehlo(classifier: Classifier) -> bytes:
    """The network as a program of `jax.export`, with its weights inside.

    It takes any number of uint8 images `[N, H, W, C]` and gives float32 `[N, classes]`, in the
    precision of the network. It is the genome's own `Network`: no kernel of this program is in it.
    """
    graphdef, state = nnx.split(classifier.network)

    def probabilities(images: jax.Array) -> jax.Array:
        logits = nnx.merge(graphdef, state)(images, train=False)
        return jax.nn.softmax(logits.astype(np.float32))

    (number,) = export.symbolic_shape("N")
    images = jax.ShapeDtypeStruct((number, *classifier.image_shape), np.uint8)
    with _without_locations():
        program = export.export(jax.jit(probabilities), platforms=PLATFORMS)(images)
    return bytes(program.serialize())


@contextlib.contextmanager
def _without_locations() -> Iterator[None]:
    """Leaves out which line of which file of this machine an operation comes from."""
    limit = jax.config.jax_traceback_in_locations_limit  # type: ignore[attr-defined]
    jax.config.update("jax_traceback_in_locations_limit", 0)
    try:
        yield
    finally:
        jax.config.update("jax_traceback_in_locations_limit", limit)
