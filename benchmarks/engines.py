"""A training step of the native and the universal network and of PyTorch (if installed), in turns.

    python benchmarks/engines.py --size=28 --channels=24 --steps=2
    taskset -c 0 python benchmarks/engines.py            # one core for all
    python benchmarks/engines.py --grid --steps=5        # sizes as in scaling.py
    python benchmarks/engines.py --size=28 --steps=2 --conv_kinds separable full --compiled

All train the same genomes on the same random images, ours of a kind of convolutions from the same
weights. PyTorch's networks have separable ones. An epoch of one
follows an epoch of another, so that what else the machine does meets all; the least of the epochs
counts. Processor time tells more than wall time on a machine that is shared. The last columns are
of the wall time: the multiply-adds of forward and backward pass, taken as three times the forward
ones, a second; their share of the processor's peak; and the share of the memory's peak that the
states and their gradients take at least.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from measuring import BATCH, CLASSES, MAX_NODES, forms, genomes, random_images, write
from rich.console import Console
from rich.table import Table
from roofline import least_traffic, measure_peaks

from jaxevo.config import CONV_KINDS, NetworkConfig, TrainingConfig
from jaxevo.datasets import Images
from jaxevo.machine import device_name
from jaxevo.networks import native
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network
from jaxevo.search_space.complexity import measure
from jaxevo.search_space.genome import Genome
from jaxevo.training.data import TrainingData
from jaxevo.training.trainer import Trainer, TrainState

try:
    import torch_network
except ImportError:
    torch_network = None

GRID = ((8, 8), (14, 8), (28, 8), (8, 16), (8, 24))  # side of the images, D


class Epoch(NamedTuple):
    """Milliseconds a step, and the mean loss."""

    wall: float
    processor: float
    loss: float


def now() -> tuple[float, float]:
    """Seconds on the wall clock, and of this process's processor time."""
    return time.perf_counter(), time.process_time()


def since(begin: tuple[float, float], steps: int, loss: float) -> Epoch:
    """The epoch of so many steps that began then and ends now."""
    wall, processor = (
        1000 * (end - start) / steps for end, start in zip(now(), begin, strict=True)
    )
    return Epoch(wall, processor, loss)


class TorchWay:
    """The same networks in PyTorch, as its users would write them."""

    def __init__(self, size: int, channels: int, steps: int):
        self.shape = (size, size, 1)
        self.config = NetworkConfig(channels=channels)
        self.images, self.labels = random_images(size, steps)
        self.steps = steps
        self.compiling = 0.0

    def epochs(self, genome: Genome, number: int) -> Iterator[Epoch]:
        """Trains a genome, as the caller asks for epochs."""
        assert torch_network is not None
        network = torch_network.TorchNetwork(genome, self.config, self.shape, CLASSES)
        training = torch_network.Training(network, self.images, self.labels, BATCH)
        order = np.arange(len(self.images))
        for _ in range(number):
            begin = now()
            loss = float(training.epoch(order, [1e-3] * self.steps).mean())
            yield since(begin, self.steps, loss)


class Way:
    """One form of the network at one size, compiled once for all genomes."""

    def __init__(self, form: str, size: int, config: NetworkConfig, *, steps: int):
        self.shape = (size, size, 1)
        self.config = config
        self.network = forms()[form](self.config, MAX_NODES, self.shape, num_classes=CLASSES)
        self.trainer = Trainer(split(self.network).graphdef, BATCH)
        self.data = TrainingData.of(Images(*random_images(size, steps)))
        self.steps = steps

    def own_network(self, genome: Genome) -> Network:
        """The genome's own network, with its first weights."""
        return Network(genome, self.config, self.shape, num_classes=CLASSES, seed=0)

    def start(self, genome: Genome) -> tuple[TrainState, tuple]:
        """The state before the first step, and what the network is given beside the images."""
        from_network(self.network, self.own_network(genome), genome)
        return self.trainer.start(*split(self.network)[1:]), (encode(genome, MAX_NODES),)

    def epochs(self, genome: Genome, number: int) -> Iterator[Epoch]:
        """Trains a genome, as the caller asks for epochs."""
        start, inputs = self.start(genome)
        config = TrainingConfig(epochs=number, batch_size=BATCH, learning_rate=1e-3)
        running = self.trainer.epochs(start, inputs, self.data, config=config, seed=(0,))
        for _ in range(number):
            begin = now()
            _, loss = next(running)
            yield since(begin, self.steps, loss)

    @property
    def compiling(self) -> float:
        """Seconds of compiling so far."""
        return self.trainer.stopwatch.seconds.get("compile", 0.0)


class CompiledWay(Way):
    """The genomes' own networks at one size, each compiled for itself."""

    def __init__(self, size: int, config: NetworkConfig, *, steps: int):
        self.shape = (size, size, 1)
        self.config = config
        self.data = TrainingData.of(Images(*random_images(size, steps)))
        self.steps = steps

    def start(self, genome: Genome) -> tuple[TrainState, tuple]:
        """The state before the first step of the genome's own trainer."""
        graphdef, params, stats = split(self.own_network(genome))
        self.trainer = Trainer(graphdef, BATCH)
        return self.trainer.start(params, stats), ()


def make_ways(size: int, channels: int, args: argparse.Namespace) -> dict[str, Way | TorchWay]:
    """What is compared, by name; the kind of convolutions is named where it is not separable."""
    ways: dict[str, Way | TorchWay] = {}
    for kind in args.conv_kinds:
        config = NetworkConfig(channels=channels, conv_kind=kind)
        suffix = "" if kind == "separable" else f", {kind}"
        for form in forms():
            ways[form + suffix] = Way(form, size, config, steps=args.steps)
        if args.compiled:
            ways["compiled" + suffix] = CompiledWay(size, config, steps=args.steps)
    if torch_network is not None:
        ways["PyTorch"] = TorchWay(size, channels, args.steps)
    return ways


def compare(size: int, channels: int, args: argparse.Namespace) -> list[dict]:
    """A row for each genome and form."""
    rows = []
    repeats = args.repeats
    ways = make_ways(size, channels, args)
    for name, genome in genomes().items():
        running = {form: way.epochs(genome, repeats + 1) for form, way in ways.items()}
        first = {form: next(epochs) for form, epochs in running.items()}  # compiles
        taken: dict[str, list[Epoch]] = {form: [] for form in ways}
        for _ in range(repeats):
            for form, epochs in running.items():
                taken[form].append(next(epochs))
        for form, way in ways.items():
            about = {"size": size, "D": channels, "genome": name, "form": form}
            work = measure(genome, way.config, way.shape, num_classes=CLASSES).multiply_adds
            about |= {"multiply_adds": 3 * BATCH * work, "compile": way.compiling}
            about |= {"bytes": least_traffic(genome, way.config, size)}
            rows.append(about | {"first": first[form], "epochs": taken[form]})
    return rows


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=8, help="side of the images")
    parser.add_argument("--channels", type=int, default=8, help="D")
    parser.add_argument("--grid", action="store_true", help="several sizes and D instead")
    parser.add_argument("--conv_kinds", nargs="+", choices=CONV_KINDS, default=["separable"])
    parser.add_argument("--compiled", action="store_true", help="the genomes' own networks too")
    parser.add_argument("--steps", type=int, default=10, help="steps of an epoch")
    parser.add_argument("--repeats", type=int, default=5, help="epochs that are timed")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    if reason := native.unavailable_reason():
        parser.error(reason)
    peaks = measure_peaks()
    settings = GRID if args.grid else ((args.size, args.channels),)
    rows = [row for setting in settings for row in compare(*setting, args)]
    columns = ("ms a step", "processor", "compile, s", "10^9 MAC/s")
    columns += ("of peak", "of memory")
    table = Table("image", "D", "genome", "form", *columns)
    for row in rows:
        least = np.min([epoch[:2] for epoch in row["epochs"]], axis=0)
        image = f"{row['size']}x{row['size']}"
        figures = [f"{least[0]:.1f}", f"{least[1]:.1f}", f"{row['compile']:.0f}"]
        rates = [1000 * row[part] / least[0] for part in ("multiply_adds", "bytes")]
        figures.append(f"{rates[0] / 1e9:.1f}")
        figures += [f"{rate / peak:.0%}" for rate, peak in zip(rates, peaks, strict=True)]
        table.add_row(image, f"{row['D']}", row["genome"], row["form"], *figures)
    cores = len(os.sched_getaffinity(0))
    machine = f"{device_name()}, {cores} used, kernels {native.kernels_name()}"
    peak = (
        f"10^9 multiply-adds {peaks.multiply_adds / 1e9:.0f}, GB {peaks.bytes / 1e9:.1f} a second"
    )
    Console().print(f"{machine}; peaks: {peak}", table)
    write(args.output, vars(args), kernels=native.kernels_name(), peaks=peaks._asdict(), rows=rows)


if __name__ == "__main__":
    main()
