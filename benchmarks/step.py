"""Milliseconds of a training step: Flax's own layers, our operations, the universal network and
its native form, PyTorch (if installed).

    python benchmarks/step.py --size=8 --channels=8 --output=step8.json
    python benchmarks/step.py --size=28 --channels=24 --steps=4 --repeats=3

Every way does the same network on the same random images; parameter counts are compared, and
PyTorch's losses with ours over the first steps on real digits. Only ratios within one run count:
machines differ, and shared ones drift.
"""

from __future__ import annotations

import argparse
import pathlib
import time

import jax
import numpy as np
from flax import nnx
from measuring import BATCH, CLASSES, MAX_NODES, forms, genomes, random_images, time_epochs, write
from plain import PlainNetwork, PlainTraining
from rich.console import Console
from rich.table import Table

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets import load_search_data
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network
from jaxevo.search_space.complexity import measure
from jaxevo.search_space.genome import Genome
from jaxevo.training.data import TrainingData
from jaxevo.training.epoch import draw_epoch
from jaxevo.training.schedule import make_plan
from jaxevo.training.trainer import Trainer

try:
    import torch_network
except ImportError:
    torch_network = None


def run(args: argparse.Namespace) -> list[dict]:
    """A row for each genome and way."""
    shape, config = (args.size, args.size, 1), NetworkConfig(channels=args.channels)
    images, labels = random_images(args.size, args.steps)
    shared = {
        form: make(config, MAX_NODES, shape, num_classes=CLASSES) for form, make in forms().items()
    }
    trainers = {form: Trainer(split(each).graphdef, BATCH) for form, each in shared.items()}
    rows = []
    for name, genome in genomes().items():
        own = Network(genome, config, shape, num_classes=CLASSES, seed=0)
        ways: dict[str, tuple[nnx.Module, Trainer, tuple]] = {}
        ways["our operations"] = own, Trainer(split(own).graphdef, BATCH), ()
        for form, network in shared.items():
            from_network(network, own, genome)
            ways[form] = network, trainers[form], (encode(genome, MAX_NODES),)
        rows.append(
            {"genome": name, "way": "Flax's layers"}
            | time_flax(genome, config, images, labels, args.repeats)
        )
        for way, (module, trainer, inputs) in ways.items():
            with trainer.stopwatch.lap() as lap:
                milliseconds = time_epochs(module, trainer, inputs, images, labels, args.repeats)
            compiling = lap.get("compile", 0.0)
            rows.append({"genome": name, "way": way, "compile": compiling, "ms": milliseconds})
        if torch_network is not None:
            milliseconds = time_torch(genome, config, images, labels, args.repeats)
            rows.append({"genome": name, "way": "PyTorch", "compile": 0.0, "ms": milliseconds})
    return rows


def time_flax(genome: Genome, config: NetworkConfig, images, labels, repeats: int) -> dict:
    """Milliseconds of `repeats` steps after one, whose seconds count as compiling."""
    shape = images.shape[1:]
    network = PlainNetwork(genome, config, shape, CLASSES, 0)
    parameters = sum(p.size for p in jax.tree.leaves(split(network).params))
    assert parameters == measure(genome, config, shape, num_classes=CLASSES).parameters
    training, milliseconds = PlainTraining(network), []
    for step in range(repeats + 1):
        index = np.arange(step * BATCH, (step + 1) * BATCH) % len(images)
        begin = time.perf_counter()
        training.step(images[index], labels[index], jax.random.key(step)).block_until_ready()
        milliseconds.append(1000 * (time.perf_counter() - begin))
    return {"compile": milliseconds[0] / 1000, "ms": milliseconds[1:]}


def time_torch(genome: Genome, config: NetworkConfig, images, labels, repeats: int) -> list[float]:
    """As `time_epochs`, in PyTorch."""
    assert torch_network is not None
    shape = images.shape[1:]
    assert (
        torch_network.parameters(genome, config, shape, CLASSES)
        == measure(genome, config, shape, num_classes=CLASSES).parameters
    )
    network = torch_network.TorchNetwork(genome, config, shape, CLASSES)
    training, order = torch_network.Training(network, images, labels, BATCH), np.arange(len(images))
    milliseconds, steps = [], len(images) // BATCH
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        training.epoch(order, [1e-3] * steps)
        milliseconds.append(1000 * (time.perf_counter() - begin) / steps)
    return milliseconds[1:]


def loss_curves(genome: Genome, epochs: int) -> np.ndarray:
    """Mean losses `[2, epochs]` of ours and PyTorch's from the same weights on the same digits,
    without dropout.
    """
    assert torch_network is not None
    data = load_search_data("digits")
    config = NetworkConfig(channels=8, dropout_rate=0.0)
    training = TrainingConfig(epochs=epochs, batch_size=BATCH, learning_rate=1e-3)
    network = Network(genome, config, data.image_shape, num_classes=CLASSES, seed=0)
    theirs = torch_network.TorchNetwork(genome, config, data.image_shape, CLASSES)
    torch_network.copy_weights(network, theirs)
    other = torch_network.Training(theirs, data.train.images, data.train.labels, BATCH)
    graphdef, params, stats = split(network)
    trainer = Trainer(graphdef, BATCH)
    every = np.arange(len(data.train))
    losses = []
    steps, settings = make_plan(training, BATCH, len(every))
    start = trainer.start(params, stats)
    digits = TrainingData.of(data.train)
    trained = trainer.epochs(start, (), digits, config=training, seed=(0,))
    for epoch, (_, loss) in enumerate(trained):
        order, _ = draw_epoch((0,), epoch, every, batch_size=BATCH, length=len(every))
        rates = [
            float(settings.schedule(step))
            for step in range(epoch * int(steps), (epoch + 1) * int(steps))
        ]
        losses.append([loss, float(other.epoch(order, rates).mean())])
    return np.array(losses).T


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=8, help="side of the images")
    parser.add_argument("--channels", type=int, default=8, help="D")
    parser.add_argument("--steps", type=int, default=20, help="steps of an epoch")
    parser.add_argument("--repeats", type=int, default=5, help="epochs that are timed")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    console, curves = Console(), None
    if torch_network is not None:
        curves = loss_curves(next(iter(genomes().values())), 5)
        difference = np.abs(curves[0] - curves[1]).max()
        console.print(
            f"digits, 5 epochs: our losses {curves[0].round(4)}, PyTorch's differ by "
            f"{difference:.1e} at most"
        )
        assert difference < 0.02
    rows = run(args)
    table = Table("genome", "way", "compile, s", "median ms a step", "least", "most")
    for row in rows:
        ms = row["ms"]
        cells = [
            f"{row['compile']:.0f}",
            f"{np.median(ms):.1f}",
            f"{min(ms):.1f}",
            f"{max(ms):.1f}",
        ]
        table.add_row(row["genome"], row["way"], *cells)
    console.print(f"{args.size}x{args.size}, D={args.channels}, batch {BATCH}", table)
    write(args.output, vars(args), rows=rows, curves=None if curves is None else curves.tolist())


if __name__ == "__main__":
    main()
