"""Milliseconds of a training step: Flax's own layers, our operations, the universal network, PyTorch (if installed).

    python benchmarks/step.py --size=8 --channels=8 --output=step8.json
    python benchmarks/step.py --size=28 --channels=24 --steps=4 --repeats=3

Every way does the same network on the same random images; the parameter counts are compared. Only ratios within one run
count: machines differ, and shared ones drift.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import time

import jax
import numpy as np
from plain import PlainNetwork
from rich.console import Console
from rich.table import Table

from jaxevo.complexity import measure
from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.genome import Genome
from jaxevo.network import Network
from jaxevo.training import Trainer, split
from jaxevo.universal import UniversalNetwork, encode, from_network
from jaxevo.variation import random_cell
from jaxevo.workdir import versions

MAX_NODES, CLASSES, BATCH = 6, 10, 64
SIZES = ((5, 6), (2, 4), (4, 3))  # B of the normal and of the reduction cell


def genomes() -> dict[str, Genome]:
    """Fixed random genomes of these sizes."""
    rng = np.random.default_rng(3)
    return {f"B={a}/{b}": Genome(random_cell(rng, a), random_cell(rng, b)) for a, b in SIZES}


def time_module(module, trainer: Trainer, inputs: tuple, images, labels, repeats: int) -> list[float]:
    """Seconds of an epoch, `repeats` times, after one that compiles."""
    _, params, stats = split(module)
    config = TrainingConfig(epochs=repeats + 1, batch_size=BATCH, learning_rate=1e-3)
    pixels, classes = jax.device_put((images, labels))
    every, start = np.arange(len(images)), trainer.start(params, stats)
    seconds, begin = [], time.perf_counter()
    for _ in trainer.epochs(start, inputs, pixels, classes, every, config, (0,)):
        seconds.append(time.perf_counter() - begin)
        begin = time.perf_counter()
    return seconds[1:]


def run(args: argparse.Namespace) -> list[dict]:
    """A row for each genome and way."""
    shape, config = (args.size, args.size, 1), NetworkConfig(channels=args.channels)
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (BATCH * args.steps, *shape), np.uint8)
    labels = rng.integers(0, CLASSES, len(images)).astype(np.int32)
    universal = UniversalNetwork(config, MAX_NODES, shape, CLASSES)
    shared, rows = Trainer(split(universal).graphdef, BATCH), []
    for name, genome in genomes().items():
        own, plain = Network(genome, config, shape, CLASSES, 0), PlainNetwork(genome, config, shape, CLASSES, 0)
        from_network(universal, own, genome)
        ways = {
            "Flax's layers": (plain, Trainer(split(plain).graphdef, BATCH), ()),
            "our operations": (own, Trainer(split(own).graphdef, BATCH), ()),
            "universal": (universal, shared, (encode(genome, MAX_NODES),)),
        }
        size = measure(genome, config, shape, CLASSES).parameters
        assert sum(p.size for p in jax.tree.leaves(split(plain).params)) == size
        for way, (module, trainer, inputs) in ways.items():
            before = trainer.compile_seconds
            seconds = time_module(module, trainer, inputs, images, labels, args.repeats)
            compiling = trainer.compile_seconds - before
            rows.append({"genome": name, "way": way, "compile": compiling, "ms": _milliseconds(seconds, args.steps)})
        try:
            import torch_network
        except ImportError:
            continue
        assert torch_network.parameters(genome, config, shape, CLASSES) == size
        seconds = torch_network.time_steps(genome, config, images, labels, CLASSES, BATCH, args.repeats)
        rows.append({"genome": name, "way": "PyTorch", "compile": 0.0, "ms": _milliseconds(seconds, args.steps)})
    return rows


def _milliseconds(seconds: list[float], steps: int) -> list[float]:
    return [1000 * value / steps for value in seconds]


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=8, help="side of the images")
    parser.add_argument("--channels", type=int, default=8, help="D")
    parser.add_argument("--steps", type=int, default=20, help="steps of an epoch")
    parser.add_argument("--repeats", type=int, default=5, help="epochs that are timed")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    rows = run(args)
    table = Table("genome", "way", "compile, s", "median ms a step", "least", "most")
    for row in rows:
        ms = row["ms"]
        cells = [f"{row['compile']:.0f}", f"{np.median(ms):.1f}", f"{min(ms):.1f}", f"{max(ms):.1f}"]
        table.add_row(row["genome"], row["way"], *cells)
    Console().print(f"{args.size}x{args.size}, D={args.channels}, batch {BATCH}", table)
    if args.output:
        about = {"machine": platform.processor() or platform.machine(), "cores": os.cpu_count(), "versions": versions()}
        args.output.write_text(json.dumps(about | {"arguments": vars(args) | {"output": None}, "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
