"""An exported network in integers of 8 bits, by onnxruntime's own quantizer.

Only convolutions become integers, static ones: scales of activations are measured on training
images beforehand, and each output channel of a kernel has its own. `docs/export.md` has the other
ways that were tried.
"""

from __future__ import annotations

import contextlib
import io
import logging
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnxruntime import quantization

from jaxevo.networks.onnx_network import INPUT

CALIBRATION_IMAGES = 500
_BATCH = 50


class _Calibration(quantization.CalibrationDataReader):
    """Hands out images batch by batch, as the quantizer wants them."""

    def __init__(self, images: np.ndarray):
        self._batches = (images[i : i + _BATCH] for i in range(0, len(images), _BATCH))

    def get_next(self) -> Any:
        batch = next(self._batches, None)
        return None if batch is None else {INPUT: batch}


def quantize(model: bytes, images: np.ndarray) -> bytes:
    """The model with convolutions in 8 bits.

    Args:
        model: What `Classifier.to_onnx` gives.
        images: Inputs of the network to measure activations on, uint8 `[M, H, W, C]`, such as
            training images.
    """
    with tempfile.TemporaryDirectory() as folder, _quiet():
        before, after = (pathlib.Path(folder) / name for name in ("before.onnx", "after.onnx"))
        before.write_bytes(model)
        quantization.quantize_static(
            before,
            after,
            _Calibration(images),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["Conv"],
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
        return after.read_bytes()


def calibration_images(images: np.ndarray, seed: int = 0) -> np.ndarray:
    """Some of the training images `[M, ...]`, at random."""
    number = min(CALIBRATION_IMAGES, len(images))
    return images[np.sort(np.random.default_rng(seed).permutation(len(images))[:number])]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences the quantizer, which advises steps that these models do not need."""
    level = logging.root.level
    logging.root.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.root.setLevel(level)
