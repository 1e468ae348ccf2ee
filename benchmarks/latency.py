"""Milliseconds of predictions at 28x28: onnxruntime, PyTorch (if installed), and our predictor.

    taskset -c 0 python benchmarks/latency.py

Networks have fresh weights: EvoA at D=24 and the small CNN. onnxruntime and PyTorch have one
thread each; ours has as many as there are cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import numpy as np
from measuring import CLASSES
from rich.console import Console
from rich.table import Table

from jaxevo.config import NetworkConfig
from jaxevo.export.runtime import open_session
from jaxevo.machine import device_name
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.networks.hand_designed import SmallCNN
from jaxevo.networks.onnx_network import INPUT
from jaxevo.search_space import genome_files
from jaxevo.search_space.genome import Genome
from jaxevo.training.classifier import Classifier
from jaxevo.training.source import Source

try:
    import torch_network
except ImportError:
    torch_network = None

BUILDER = NetworkBuilder(NetworkConfig(channels=24), (28, 28, 1), CLASSES)
SECONDS = 3.0  # of timing


def ways(model: Architecture, images: np.ndarray) -> Iterator[tuple[str, Callable[[], object]]]:
    """Functions that predict the images, by name."""
    source = Source("mnist", tuple(map(str, range(CLASSES))), "stretch")
    classifier = Classifier.of(model, BUILDER, source, network=BUILDER.build(model))
    session = open_session(classifier.to_onnx(), threads=1)
    yield "onnxruntime", lambda: session.run(None, {INPUT: images})
    if torch_network is not None:
        if isinstance(model, Genome):
            network = torch_network.TorchNetwork(model, BUILDER.network, (28, 28, 1), CLASSES)
        else:
            network = torch_network.small_cnn(SmallCNN.channels, CLASSES)
        number = sum(each.numel() for each in network.parameters())
        assert number == BUILDER.complexity(model).parameters
        yield "PyTorch", torch_network.prediction(network, images)
    yield "jaxevo", lambda: classifier.predict_inputs(images)


def milliseconds(predict: Callable[[], object]) -> tuple[float, float]:
    """Median and 95th percentile of many calls."""
    for _ in range(5):
        predict()
    taken = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        predict()
        taken.append(1000 * (time.perf_counter() - begin))
    return float(np.median(taken)), float(np.percentile(taken, 95))


def main() -> None:
    """Prints a table."""
    models: dict[str, Architecture] = {"EvoA, D=24": genome_files.find("evoA")[0]}
    models["small CNN"] = Baseline("small_cnn")
    table = Table("network", "way", "1 image, ms", "64 images, ms")
    for name, model in models.items():
        found: dict[str, list[str]] = {}
        for number in (1, 64):
            images = np.random.default_rng(0).integers(0, 256, (number, 28, 28, 1), np.uint8)
            for way, predict in ways(model, images):
                median, high = milliseconds(predict)
                found.setdefault(way, []).append(f"{median:.3g} ({high:.3g})")
        for way, texts in found.items():
            table.add_row(name, way, *texts)
    Console().print(f"{device_name()}; median and 95th percentile", table)


if __name__ == "__main__":
    main()
