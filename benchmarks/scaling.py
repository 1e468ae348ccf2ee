"""What a training step for any genome costs against B, D and the size of the images, by form.

    python benchmarks/scaling.py

Random genomes of B nodes in both cells; of D and the image's side one is varied, the other as in
the first row.
"""

from __future__ import annotations

import argparse
import pathlib

import numpy as np
from measuring import BATCH, CLASSES, MAX_NODES, forms, genomes, random_images, time_epochs, write
from rich.console import Console
from rich.table import Table

from jaxevo.config import NetworkConfig
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal_encoding import encode
from jaxevo.networks.universal_weights import from_network
from jaxevo.search_space.complexity import measure
from jaxevo.training.trainer import Trainer

SETTINGS = ((8, 8), (14, 8), (28, 8), (8, 16), (8, 24))  # side of the images, D
NODES = (2, 4, 6)


def run(form: str, size: int, channels: int, steps: int, repeats: int) -> list[dict]:
    """A row for each B; compiled once."""
    shape, config = (size, size, 1), NetworkConfig(channels=channels)
    network = forms()[form](config, MAX_NODES, shape, num_classes=CLASSES)
    trainer = Trainer(split(network).graphdef, BATCH)
    rows = []
    for nodes, genome in zip(NODES, genomes(tuple((b, b) for b in NODES)).values(), strict=True):
        from_network(network, Network(genome, config, shape, num_classes=CLASSES, seed=0), genome)
        inputs = (encode(genome, MAX_NODES),)
        milliseconds = time_epochs(network, trainer, inputs, *random_images(size, steps), repeats)
        adds = measure(genome, config, shape, num_classes=CLASSES).multiply_adds
        about = {"form": form, "size": size, "D": channels, "B": nodes}
        rows.append(about | {"multiply_adds": adds, "ms": milliseconds})
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
    rows = [
        row
        for setting in SETTINGS
        for form in forms()
        for row in run(form, *setting, args.steps, args.repeats)
    ]
    table = Table(
        "image",
        "D",
        "B",
        "form",
        "million multiply-adds an image",
        "median ms a step",
        "compile, s",
    )
    for row in rows:
        image = f"{row['size']}x{row['size']}"
        adds = f"{row['multiply_adds'] / 1e6:.2f}"
        ms = f"{np.median(row['ms']):.1f}"
        about = image, str(row["D"]), str(row["B"]), row["form"]
        table.add_row(*about, adds, ms, f"{row['compile']:.0f}")
    Console().print(table)
    write(args.output, vars(args), rows=rows)


if __name__ == "__main__":
    main()
