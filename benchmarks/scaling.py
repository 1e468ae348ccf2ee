"""What a training step of the universal network costs against B, D and the size of the images.

    python benchmarks/scaling.py

Random genomes of B nodes in both cells; of D and the image's side one is varied, the other as in
the first row.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
from measuring import BATCH, CLASSES, MAX_NODES, genomes, random_images, time_epochs, write
from rich.console import Console
from rich.table import Table

from jaxevo.config import NetworkConfig
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal import UniversalNetwork
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network
from jaxevo.search_space.complexity import measure
from jaxevo.training.trainer import Trainer

SETTINGS = ((8, 8), (14, 8), (28, 8), (8, 16), (8, 24))  # side of the images, D
NODES = (2, 4, 6)


def run(size: int, channels: int, steps: int, repeats: int) -> list[dict]:
    """A row for each B; compiled once."""
    shape, config = (size, size, 1), NetworkConfig(channels=channels)
    universal = UniversalNetwork(config, MAX_NODES, shape, CLASSES)
    trainer = Trainer(split(universal).graphdef, BATCH)
    rows = []
    for nodes, genome in zip(NODES, genomes(tuple((b, b) for b in NODES)).values(), strict=True):
        from_network(universal, Network(genome, config, shape, CLASSES, 0), genome)
        inputs = (encode(genome, MAX_NODES),)
        milliseconds = time_epochs(universal, trainer, inputs, *random_images(size, steps), repeats)
        adds = measure(genome, config, shape, CLASSES).multiply_adds
        rows.append(
            {"size": size, "D": channels, "B": nodes, "multiply_adds": adds, "ms": milliseconds}
        )
    return [row | {"compile": trainer.stopwatch.seconds["compile"]} for row in rows]


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=10, help="steps of an epoch")
    parser.add_argument("--repeats", type=int, default=3, help="epochs that are timed")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    rows = [row for setting in SETTINGS for row in run(*setting, args.steps, args.repeats)]
    table = Table(
        "image", "D", "B", "million multiply-adds an image", "median ms a step", "compile, s"
    )
    for row in rows:
        image = f"{row['size']}x{row['size']}"
        adds = f"{row['multiply_adds'] / 1e6:.2f}"
        ms = f"{np.median(row['ms']):.1f}"
        table.add_row(image, str(row["D"]), str(row["B"]), adds, ms, f"{row['compile']:.0f}")
    Console().print(table)
    write(args.output, vars(args), rows=rows)


if __name__ == "__main__":
    main()
