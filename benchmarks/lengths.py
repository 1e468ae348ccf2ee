"""How long a training has to be to foretell a longer one, by genomes that searches ended with.

    python benchmarks/lengths.py --winners=docs/layout-searches/mnist-2000.jsonl --dataset=mnist \\
        --data_dir=DATA --lengths 6000x4 12000x4 --trained=lengths.jsonl

All trainings have a rate that rises and falls. A length is a number of images and of epochs; the
last is that of all images. The file keeps each training, so the same command goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from curves import BATCH, RECIPES_TRIED, Bench, column, setting, tau, train_missing

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.datasets.splits import training_subset
from jaxevo.search_space.genome import Genome

VALIDATION = 0.2  # part of the training images
SHORT, LONG = (5, 0), (99, 0, 0)  # seeds, the same for all genomes


def jobs(
    genomes: list[Genome], lengths: Sequence[tuple[int, int]], bench: Bench
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Each training: genome by genome, so that the first ones have all lengths soon."""
    recipe = TrainingConfig(batch_size=BATCH)
    recipe = dataclasses.replace(recipe, **RECIPES_TRIED["warm"], learning_rate=1e-2)
    labels = np.asarray(bench.data.labels)
    for number, genome in enumerate(genomes):
        for images, epochs in lengths:

            def run(genome=genome, images=images, epochs=epochs):
                subset = training_subset(labels, images, seed=0)
                some = dataclasses.replace(bench, data=bench.data.with_subset(subset))
                config = dataclasses.replace(recipe, epochs=epochs)
                whole = images == len(labels)
                seed = LONG if whole else SHORT
                return {"curve": some.curve(genome, config, seed, whole=whole)}

            yield {"genome": number, "images": images, "epochs": epochs}, run


def table(lines: list[dict[str, Any]], lengths: Sequence[tuple[int, int]]) -> str:
    """A row a length: how well it orders the genomes as the last length does."""
    curves = {tuple(line["key"].values()): line["curve"] for line in lines}
    numbers = sorted({number for number, *_ in curves})
    ends = {each: [curves[number, *each][-1] for number in numbers] for each in lengths}
    truth = column(ends[lengths[-1]], "test_cross_entropy")
    rows = ["| images, epochs | steps | tau by cross entropy | by accuracy |", "|---|---|---|---|"]
    for images, epochs in lengths:
        measured = [column(ends[images, epochs], name) for name in ("cross_entropy", "accuracy")]
        taus = tau(measured[0], truth), tau(-measured[1], truth)
        steps = images // BATCH * epochs
        rows.append(f"| {images:,}, {epochs} | {steps:,} | {taus[0]:.2f} | {taus[1]:.2f} |")
    return "\n".join(rows)


def length(text: str) -> tuple[int, int]:
    """`IMAGESxN` as numbers. Raises `ValueError`."""
    images, epochs = map(int, text.split("x"))
    return images, epochs


def main() -> None:
    parser = argparse.ArgumentParser(description="How long a training has to be.")
    parser.add_argument("--winners", type=pathlib.Path, required=True, help="of searches.py")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data_dir")
    parser.add_argument("--lengths", nargs="+", default=["6000x4", "12000x4"], metavar="IMAGESxN")
    parser.add_argument("--final_epochs", type=int, default=4)
    parser.add_argument("--setting", nargs="*", type=setting, default=[], metavar="NAME=VALUE")
    parser.add_argument("--trained", type=pathlib.Path, required=True, help="keeps the trainings")
    options = parser.parse_args()
    bench = Bench.open(
        options.dataset,
        options.data_dir,
        network=NetworkConfig(**dict(options.setting)),
        examples=0,
        validation=VALIDATION,
    )
    documents = map(json.loads, options.winners.read_text().splitlines())
    genomes = [Genome.from_dict(document["genome"]) for document in documents]
    lengths = [length(text) for text in options.lengths]
    lengths.append((len(bench.data.labels), options.final_epochs))
    print(table(train_missing(options.trained, jobs(genomes, lengths, bench)), lengths))


if __name__ == "__main__":
    main()
