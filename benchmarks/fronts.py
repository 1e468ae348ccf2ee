"""Searches for networks of many sizes at once, at equal cost; what they found is trained anew.

    python benchmarks/fronts.py --dataset=digits --seeds=10

Width, number of cells, factor on the width and kind of convolutions are genes. Of each search and
each bound on parameters, the fittest candidate within the bound is trained to the end three times
and scored on the test images: these figures choose nothing. Seeds are paired. The folder keeps all
runs and trainings, so the same command goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from curves import BATCH, RECIPES_TRIED, Bench, column, train_missing
from scipy.stats import ttest_1samp, wilcoxon

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.config.presets import RECIPES
from jaxevo.run.prepare import make_task
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.search import find_winner
from jaxevo.run.workdir import Workdir

# Random genomes are rarely small, so the second has a search of each bound, with an equal part of
# the trainings.
WAYS = ("random", "random, each bound", "nsga2", "guided_front")
REPEATS = 3  # trainings of a network
WIDEST = {"channels": 16, "num_normal_cells": 3, "dropout_rate": 0.0}
GENES = {
    **{"min_channels": 2, "min_normal_cells": 1, "min_channel_multiplier": 1},
    **{"vary_conv_kind": True, "min_nodes": 1, "population_size": 20, "num_offspring": 10},
}


def jobs(options: argparse.Namespace, bench: Bench) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every search, seed by seed."""
    final = dataclasses.replace(
        TrainingConfig(),
        **RECIPES["light"] | {"weight_average": 0.98},
        epochs=options.epochs,
        learning_rate=1e-2,
        batch_size=BATCH,
    )
    for seed in range(options.seeds):
        for strategy in options.ways:

            def run(strategy=strategy, seed=seed):
                found = candidates(options, strategy, seed)
                networks = []
                for best in (fittest(found, bound) for bound in options.bounds):
                    genome = best.individual.genome
                    seeds = [(99, seed, repeat) for repeat in range(REPEATS)]
                    ends = [bench.curve(genome, final, each, whole=True)[-1] for each in seeds]
                    about = {"parameters": best.parameters, "fitness": best.fitness}
                    networks.append(about | {"genome": genome.to_dict(), "ends": ends})
                return {"networks": networks}

            yield {"strategy": strategy, "seed": seed, "bounds": options.bounds}, run


def candidates(options: argparse.Namespace, way: str, seed: int) -> list[Any]:
    """The candidates of the search, or of the searches, of a way."""
    strategy, _, parts = way.partition(", ")
    if not parts:
        return search(options, strategy, seed, max(options.bounds), options.candidates)
    share = options.candidates // len(options.bounds)
    return [
        candidate  # each search has a seed of its own, or they would draw the same genomes
        for place, bound in enumerate(options.bounds)
        for candidate in search(options, strategy, 100 * (seed + 1) + place, bound, share)
    ]


def search(
    options: argparse.Namespace, strategy: str, seed: int, bound: int, trainings: int
) -> list[Any]:
    """The candidates of a search that have a fitness."""
    settings = {
        **WIDEST,
        **GENES,
        **{"fitness": "likelihood", "seed": seed, "num_generations": trainings},
        **{"max_parameters": bound, "max_trainings": trainings},
        **{"epochs": options.candidate_epochs, "racing": 0.0},
        **{"retrain_best": 0, "keep": 1, "final_epochs": 1, "compare_winner": False},
        **({"train_examples": images} if (images := options.candidate_examples) else {}),
        **RECIPES_TRIED["warm"],
    }
    workdir = options.workdir / f"{strategy}-{bound}-{seed}"
    task = make_task(
        options.dataset,
        preset="quick",
        strategy=strategy,
        workdir=workdir,
        data_dir=options.data_dir,
        settings=settings,
    )
    find_winner(task, Silent())
    candidates = load_run(Workdir(workdir)).candidates.values()
    return [each for each in candidates if each.fitness is not None]


def fittest(candidates: list[Any], bound: int) -> Any:
    """The fittest candidate within a bound on parameters; of equals, the first."""
    within = [each for each in candidates if each.parameters <= bound]
    return max(within, key=lambda each: each.fitness)


def table(lines: list[dict[str, Any]], bounds: list[int], ways: list[str]) -> str:
    """A row a bound and way, with the differences from the first way's; at last all bounds."""
    rows = [
        "| bound | strategy | seeds | parameters | accuracy | cross entropy | difference "
        "| p (Wilcoxon) | p (paired t) |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines = [line for line in lines if line["key"]["bounds"] == bounds]
    places = [[k] for k in range(len(bounds))] + [list(range(len(bounds)))]
    for place in places:
        first: dict[int, float] = {}
        for way in ways:
            scores = {
                line["key"]["seed"]: _means([line["networks"][k] for k in place])
                for line in lines
                if line["key"]["strategy"] == way
            }
            if len(scores) < 2:
                continue
            first = first or {seed: score[2] for seed, score in scores.items()}
            own = np.array([*scores.values()])
            gaps = np.array([scores[seed][2] - first[seed] for seed in scores if seed in first])
            name = f"{bounds[place[0]]:,}" if len(place) == 1 else "all"
            rows.append(
                f"| {name} | {way} | {len(own)} | {own[:, 0].mean():,.0f} "
                f"| {own[:, 1].mean():.2%} ± {100 * own[:, 1].std(ddof=1):.2f} "
                f"| {own[:, 2].mean():.4f} ± {own[:, 2].std(ddof=1):.4f} | {_tests(gaps)}"
            )
    return "\n".join(rows)


def _tests(gaps: np.ndarray) -> str:
    """The mean of paired differences and two p-values; nothing of a way with itself."""
    if not gaps.any():
        return "| | |"
    (_, by_ranks), (_, by_t) = wilcoxon(gaps), ttest_1samp(gaps, 0.0)
    return f"{gaps.mean():+.4f} | {by_ranks:.2g} | {by_t:.2g} |"


def _means(networks: list[dict[str, Any]]) -> tuple[float, float, float]:
    """Parameters, test accuracy and test cross entropy in the mean of networks."""
    names = ("test_accuracy", "test_cross_entropy")
    scores = [[column(each["ends"], name).mean() for name in names] for each in networks]
    accuracy, cross_entropy = np.mean(scores, axis=0)
    return float(np.mean([each["parameters"] for each in networks])), accuracy, cross_entropy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data_dir")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--bounds", type=int, nargs="+", default=[500, 1000, 2000, 4000, 8000])
    parser.add_argument("--candidates", type=int, default=144, help="trainings of a search")
    parser.add_argument("--candidate_epochs", type=int, default=6)
    parser.add_argument("--candidate_examples", type=int, help="images of an epoch")
    parser.add_argument("--epochs", type=int, default=40, help="of the networks that are found")
    parser.add_argument(
        "--ways",
        nargs="*",
        choices=WAYS,
        default=list(WAYS),
        help="the others are compared with the first",
    )
    parser.add_argument("--workdir", type=pathlib.Path, default=pathlib.Path("fronts"))
    options = parser.parse_args()
    options.workdir.mkdir(parents=True, exist_ok=True)
    network = dataclasses.replace(NetworkConfig(), **WIDEST)
    bench = Bench.open(
        options.dataset, options.data_dir, network=network, examples=0, validation=0.2
    )
    lines = train_missing(options.workdir / "found.jsonl", jobs(options, bench))
    print(table(lines, options.bounds, options.ways))


if __name__ == "__main__":
    main()
