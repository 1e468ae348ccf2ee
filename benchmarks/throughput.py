"""Candidates per minute of a search on the embedded digits, in five ways.

    python benchmarks/throughput.py --candidates=36 --compiled=20 --flax=4

The search of preset quick with the universal engine says which genomes are trained; the other ways
train the same ones with the same number of steps: the native engine and PyTorch all of them, the
two that compile each genome, which are slow, so many. All engines of ours begin with the same
weights and see the same images, so their fitnesses are compared one by one.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import time
from collections.abc import Callable

import jax
import numpy as np
from measuring import forms, write
from plain import PlainNetwork, PlainTraining
from rich.console import Console
from rich.table import Table

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import preset
from jaxevo.datasets import SearchData, load_search_data
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluator
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.regularized import RegularizedEvolution
from jaxevo.training.data import TrainingData
from jaxevo.training.epoch import draw_epoch
from jaxevo.training.schedule import make_plan

try:
    import torch_network
except ImportError:
    torch_network = None

Way = Callable[
    [Genome, tuple[int, ...]], float
]  # trains a genome with a seed, gives its validation accuracy


def search(evaluate: Way, config: SearchConfig, candidates: int) -> tuple[list[Genome], list[dict]]:
    """The genomes that a search trains, and what each took."""
    strategy, memo, genomes, rows = RegularizedEvolution(config.evolution, config.seed), {}, [], []
    while len(genomes) < candidates:
        individual = strategy.ask()[0]
        key = individual.genome.canonical_key()
        if key not in memo:
            genomes.append(individual.genome)
            rows.append(timed(evaluate, individual.genome, len(rows)))
            memo[key] = rows[-1]["accuracy"]
        strategy.tell(dataclasses.replace(individual, fitness=memo[key]))
    return genomes, rows


def timed(evaluate: Way, genome: Genome, number: int) -> dict:
    """Accuracy and seconds of a candidate."""
    begin = time.perf_counter()
    accuracy = evaluate(genome, (number,))
    return {"candidate": number, "accuracy": accuracy, "seconds": time.perf_counter() - begin}


def engine(name: str, config: SearchConfig, builder: NetworkBuilder, data: SearchData) -> Way:
    """An engine of ours."""
    evaluator = Evaluator(
        dataclasses.replace(config, engine=name),
        builder,
        TrainingData.of(data.train),
        validation=data.validation,
    )

    def evaluate(genome: Genome, seed: tuple[int, ...]) -> float:
        evaluation = evaluator.evaluate(genome, seed)
        assert evaluation.accuracy is not None, evaluation.failure
        return evaluation.accuracy

    return evaluate


def flax(config: SearchConfig, builder: NetworkBuilder, data: SearchData) -> Way:
    """Flax's own layers, a program for each genome."""
    images, labels = data.train.images, data.train.labels
    every, batch = np.arange(len(data.train)), config.training.batch_size
    steps, settings = make_plan(config.training, batch, len(every))

    def evaluate(genome: Genome, seed: tuple[int, ...]) -> float:
        network = PlainNetwork(
            genome, config.network, builder.image_shape, builder.num_classes, seed[0]
        )
        training = PlainTraining(network, settings.schedule)
        for epoch in range(config.training.epochs):
            order, key = draw_epoch(seed, epoch, every, batch_size=batch, length=len(every))
            for step in range(int(steps)):
                index = order[step * batch : (step + 1) * batch]
                training.step(images[index], labels[index], jax.random.fold_in(key, step))
        return training.accuracy(data.validation.images, data.validation.labels)

    return evaluate


def pytorch(config: SearchConfig, builder: NetworkBuilder, data: SearchData) -> Way:
    """The loop that PyTorch's users write."""
    every, batch = np.arange(len(data.train)), config.training.batch_size
    steps, settings = make_plan(config.training, batch, len(every))
    rates = [float(settings.schedule(step)) for step in range(int(steps) * config.training.epochs)]

    def evaluate(genome: Genome, seed: tuple[int, ...]) -> float:
        assert torch_network is not None
        network = torch_network.TorchNetwork(
            genome, config.network, builder.image_shape, builder.num_classes
        )
        torch_network.copy_weights(builder.build(genome, seed), network)
        training = torch_network.Training(network, data.train.images, data.train.labels, batch)
        for epoch in range(config.training.epochs):
            order, _ = draw_epoch(seed, epoch, every, batch_size=batch, length=len(every))
            training.epoch(order, rates[epoch * int(steps) : (epoch + 1) * int(steps)])
        return training.accuracy(data.validation.images, data.validation.labels)

    return evaluate


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=36)
    parser.add_argument(
        "--compiled", type=int, default=20, help="candidates of the compiled engine"
    )
    parser.add_argument("--flax", type=int, default=4, help="candidates of Flax's layers")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    if min(args.candidates, args.compiled, args.flax) < 2:
        parser.error("each way needs at least 2 candidates, as the first one compiles")
    data = load_search_data("digits", validation_fraction=0.2)
    quick = preset("quick", len(data.train) + len(data.validation))
    config: SearchConfig = configs.replace(SearchConfig(), quick)
    builder = NetworkBuilder(config.network, data.image_shape, data.num_classes)
    setting = config, builder, data
    genomes, rows = search(engine("universal", *setting), config, args.candidates)
    ways = {"universal": rows}
    quick_ways = {}
    if "native" in forms():
        quick_ways["native"] = engine("native", *setting)
    if torch_network is not None:
        quick_ways["PyTorch"] = pytorch(*setting)
    for name, evaluate in quick_ways.items():
        ways[name] = [timed(evaluate, genome, number) for number, genome in enumerate(genomes)]
    slow = (
        ("compiled", engine("compiled", *setting), args.compiled),
        ("Flax's layers", flax(*setting), args.flax),
    )
    for name, evaluate, number in slow:
        some = np.linspace(0, len(genomes) - 1, number).astype(int).tolist()
        ways[name] = [timed(evaluate, genomes[number], number) for number in some]
    table = Table(
        "way",
        "candidates",
        "a minute",
        "a minute after the first",
        "mean accuracy",
        "universal's of the same",
    )
    for name, rows in ways.items():
        rates = [60 * len(part) / sum(row["seconds"] for row in part) for part in (rows, rows[1:])]
        same = [ways["universal"][row["candidate"]]["accuracy"] for row in rows]
        means = [np.mean([row["accuracy"] for row in rows]), np.mean(same)]
        table.add_row(
            name,
            f"{len(rows)}",
            *(f"{rate:.1f}" for rate in rates),
            *(f"{mean:.2%}" for mean in means),
        )
    both = [
        (row["accuracy"], ways["universal"][row["candidate"]]["accuracy"])
        for row in ways["compiled"]
    ]
    differences = np.abs(np.subtract(*np.array(both).T))
    Console().print(
        table,
        f"engines: fitness differs by {differences.mean():.2%} on average, {differences.max():.2%} "
        f"at most",
    )
    write(args.output, vars(args), ways=ways)


if __name__ == "__main__":
    main()
