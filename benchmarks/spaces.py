"""Which networks a search may find at all: random genomes of several stacks, beside the small CNN.

    python benchmarks/spaces.py --dataset=digits --genomes=3 --trained=spaces.jsonl
    python benchmarks/spaces.py --dataset=mnist --data_dir=DIR --genomes=5 --epochs=2 \
        --recipes modern --stacks "N R N R N, D=6" "N R N R N R N, D=3" "N R N R N R N, D=4"
    python benchmarks/spaces.py --dataset=mnist --data_dir=DIR --genomes=5 --epochs=2 \
        --recipes modern --stacks --at_most 8000 20000

With `--at_most` genomes have random layouts, with half of so many parameters to all of them, and
either kind of convolutions.

Each genome is trained fully by both recipes and scored on the validation and test images together,
since few images tell good networks apart badly. The file keeps each training as a line, so the same
command goes on where it was ended.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from curves import BATCH, MAX_NODES, Bench, train_missing

from jaxevo.config import CONV_KINDS, NetworkConfig, TrainingConfig
from jaxevo.config.presets import RECIPES, SMALL_CNN
from jaxevo.networks.baselines import Architecture, Baseline
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.layouts import LayoutSpace
from jaxevo.search_space.variation import random_genome
from jaxevo.training.engines import CompiledEngine

# Stacks by name: N a normal and R a reduction cell.
STACKS = {
    "N R N R N, D=4": NetworkConfig(channels=4),
    "N R N R N, D=8": NetworkConfig(channels=8),
    "N N R N N, D=6": NetworkConfig(channels=6, num_normal_cells=2, normal_repeats=2),
    "N R N, D=8": NetworkConfig(channels=8, num_normal_cells=2),
    "N R N, D=12": NetworkConfig(channels=12, num_normal_cells=2),
    "N, D=16": NetworkConfig(channels=16, num_normal_cells=1),
    # For images of 28 pixels, with parameters as in the one above.
    "N R N R N, D=6": NetworkConfig(channels=6),
    "N R N R N R N, D=3": NetworkConfig(channels=3, num_normal_cells=4),
    "N R N R N R N, D=4": NetworkConfig(channels=4, num_normal_cells=4),
}
CNN_SEEDS = 6
LAYOUTS = LayoutSpace.between((1, 12), (2, 4))  # of genomes of at most so many parameters


def jobs(options: argparse.Namespace, bench: Bench) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every training."""
    for recipe in options.recipes:
        settings = RECIPES[recipe] | {"epochs": options.epochs, "learning_rate": options.rate}
        config = dataclasses.replace(TrainingConfig(), batch_size=BATCH, **settings)
        compiled = dataclasses.replace(bench, engine=CompiledEngine(bench.builder, BATCH))
        for seed in range(CNN_SEEDS):
            key = {"stack": SMALL_CNN, "recipe": recipe, "number": seed}
            yield key, _job(compiled, Baseline(SMALL_CNN), config, seed)
        for name in options.stacks:
            stacked = bench.with_network(STACKS[name])
            for number in range(options.genomes):
                genome = random_genome(np.random.default_rng(number), 2, MAX_NODES)
                key = {"stack": name, "recipe": recipe, "number": number}
                yield key, _job(stacked, genome, config, number)
        for most, kind in itertools.product(options.at_most, CONV_KINDS):
            for number in range(options.genomes):
                genome = bounded_genome(bench, number, most, kind=kind)
                key = {"stack": f"at most {most:,}, {kind}", "recipe": recipe, "number": number}
                yield key, _job(bench, genome, config, number)


def bounded_genome(bench: Bench, number: int, most: int, *, kind: str) -> Genome:
    """The first of random genomes of a kind that has from `most` / 2 to `most` parameters."""
    rng = np.random.default_rng(number)
    while True:
        genome = random_genome(rng, 1, MAX_NODES)
        layout = dataclasses.replace(LAYOUTS.random(rng), conv_kind=kind)
        genome = dataclasses.replace(genome, layout=layout)
        if most // 2 <= bench.builder.complexity(genome).parameters <= most:
            return genome


def _job(bench: Bench, model: Architecture, config: TrainingConfig, seed: int) -> Any:
    """A function that trains the model and gives its sizes and its accuracy."""

    def train() -> dict[str, Any]:
        validation, _, test, _, _ = bench.curve(model, config, (seed,), whole=True)[-1]
        numbers = len(bench.validation), len(bench.test)
        accuracy = float(np.average((validation, test), weights=numbers))
        return dataclasses.asdict(bench.builder.complexity(model)) | {"accuracy": accuracy}

    return train


def table(lines: list[dict[str, Any]], recipes: list[str]) -> str:
    """A row a stack: sizes, and the mean accuracy of each recipe with its spread."""
    rows = [
        "| stack | parameters | multiply-adds | " + " | ".join(recipes) + " |",
        "|---" * (3 + len(recipes)) + "|",
    ]
    for stack in dict.fromkeys(line["key"]["stack"] for line in lines):
        own = [line for line in lines if line["key"]["stack"] == stack]
        cells = [stack]
        for measure in ("parameters", "multiply_adds"):
            sizes = sorted({line[measure] for line in own})
            cells.append(f"{sizes[0]:,} to {sizes[-1]:,}" if sizes[1:] else f"{sizes[0]:,}")
        for recipe in recipes:
            values = [line["accuracy"] for line in own if line["key"]["recipe"] == recipe]
            spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
            cells.append(f"{np.mean(values):.2%} ± {100 * spread:.2f}" if values else "")
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data_dir")
    parser.add_argument("--genomes", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument("--trained", type=pathlib.Path, default=pathlib.Path("spaces.jsonl"))
    parser.add_argument("--recipes", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--at_most", nargs="+", type=int, default=[], help="parameters")
    parser.add_argument("--stacks", nargs="*", choices=list(STACKS), default=list(STACKS)[:6])
    options = parser.parse_args()
    network = NetworkConfig(channels=8)  # each stack has its own
    bench = Bench.open(
        options.dataset, options.data_dir, network=network, examples=0, validation=0.2
    )
    print(table(train_missing(options.trained, jobs(options, bench)), options.recipes))


if __name__ == "__main__":
    main()
