"""How long an exported network takes in onnxruntime on this machine, on one thread."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime

from jaxevo.export.runtime import open_session
from jaxevo.networks.onnx_network import INPUT
from jaxevo.training.classifier import Classifier

_BATCHES = (1, 64)  # images at once
_WARM_UP = 10  # calls before the first that counts
_CALLS = (30, 2000)  # at least and at most, within
_SECONDS = 2.0


def measure(classifier: Classifier) -> dict[str, Any]:
    """Times batches of random images; other work on the machine makes them slower.

    Returns:
        Plain values: the runtime, the bytes of the model, and for each size of a batch the number
        of calls with the median and the 95th percentile of their milliseconds.
    """
    model = classifier.to_onnx()
    session = open_session(model, threads=1)
    batches = []
    for size in _BATCHES:
        shape = (size, *classifier.image_shape)
        images = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
        milliseconds = 1000 * _seconds_of_calls(session, images)
        median, high = np.quantile(milliseconds, (0.5, 0.95)).round(4).tolist()
        row = {"images": size, "calls": len(milliseconds), "median_ms": median, "p95_ms": high}
        batches.append(row)
    runtime = f"onnxruntime {onnxruntime.__version__}, 1 thread"
    return {"runtime": runtime, "bytes": len(model), "batches": batches}


def document_lines(latency: Mapping[str, Any]) -> list[str]:
    """The measurement in words."""
    lines = [f"{latency['bytes']:,} bytes as ONNX; {latency['runtime']}:"]
    for row in latency["batches"]:
        images = "1 image" if row["images"] == 1 else f"{row['images']} images"
        lines.append(
            f"{images} at once: median {row['median_ms']:.3g} ms, 95th percentile "
            f"{row['p95_ms']:.3g} ms ({row['calls']:,} calls)"
        )
    return lines


def _seconds_of_calls(session: onnxruntime.InferenceSession, images: np.ndarray) -> np.ndarray:
    for _ in range(_WARM_UP):
        session.run(None, {INPUT: images})
    # Calls until the time is up.
    least, most = _CALLS
    seconds: list[float] = []
    begin = time.perf_counter()
    while len(seconds) < least or (len(seconds) < most and time.perf_counter() < begin + _SECONDS):
        start = time.perf_counter()
        session.run(None, {INPUT: images})
        seconds.append(time.perf_counter() - start)
    return np.array(seconds)
