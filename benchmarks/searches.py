"""Whole searches of several strategies at equal cost; the winners are trained equally anew.

    python benchmarks/searches.py --dataset=digits --max_parameters=5000 --seeds=10

Unless `--candidates` is given, a search trains candidates on as many images as the preset `quick`
does on MNIST. Its winner, chosen by what the search knows, is trained to the end three times and
scored on the test images: these figures choose nothing. Seeds are paired. The folder keeps all runs
and winners, so the same command goes on.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from curves import BATCH, RECIPES_TRIED, Bench, column, setting, train_missing
from scipy.stats import wilcoxon

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.config.presets import RECIPES, preset
from jaxevo.run.prepare import make_task
from jaxevo.run.reporter import Silent
from jaxevo.run.search import find_winner

QUICK = preset("quick", num_images=60_000)
CANDIDATES = QUICK["population_size"] + QUICK["num_offspring"] * QUICK["num_generations"]
IMAGES = CANDIDATES * QUICK["epochs"] * QUICK["train_examples"]  # of all candidates' trainings
REPEATS = 3  # trainings of a winner
# Strategy and fitness; the first that is tried is what the others are compared with.
WAYS = (
    ("random", "accuracy"),
    ("guided", "speed"),
    ("guided", "accuracy"),
    ("random", "speed"),
    ("rea", "accuracy"),
    ("aging", "accuracy"),
    ("random", "likelihood"),
    ("guided", "likelihood"),
)


def jobs(options: argparse.Namespace, bench: Bench) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every search, seed by seed."""
    recipe = RECIPES[options.recipe] | {"weight_average": 0.98}
    final = dataclasses.replace(
        TrainingConfig(), **recipe, epochs=options.epochs, learning_rate=1e-2, batch_size=BATCH
    )
    for seed in range(options.seeds):
        for strategy, fitness in (way for way in WAYS if ", ".join(way) in options.ways):
            settings = {
                **dataclasses.asdict(bench.builder.network),
                **{"fitness": fitness, "seed": seed, "num_generations": 15},
                **{"max_parameters": options.max_parameters, "compare_winner": False},
                "epochs": options.candidate_epochs,
                **({"train_examples": images} if (images := options.candidate_examples) else {}),
                "max_trainings": candidates(options),
                **RECIPES_TRIED[options.training],
                **dict(options.setting),
            }

            def run(strategy=strategy, fitness=fitness, settings=settings, seed=seed):
                task = make_task(
                    options.dataset,
                    preset="quick",
                    strategy=strategy,
                    workdir=options.workdir / f"{strategy}-{fitness}-{seed}",
                    data_dir=options.data_dir,
                    settings=settings,
                )
                genome = find_winner(task, Silent()).genome
                ends = [
                    bench.curve(genome, final, (99, seed, repeat), whole=True)[-1]
                    for repeat in range(REPEATS)
                ]
                size = bench.builder.complexity(genome).parameters
                return {"parameters": size, "genome": genome.to_dict(), "ends": ends}

            yield {"strategy": strategy, "fitness": fitness, "seed": seed}, run


def candidates(options: argparse.Namespace) -> int:
    """Trainings of a search; where their number is not given, longer epochs leave fewer."""
    if options.candidates:
        return options.candidates
    images = options.candidate_examples or QUICK["train_examples"]
    return IMAGES // (options.candidate_epochs * images)


def table(lines: list[dict[str, Any]]) -> str:
    """A row a way: its winners' sizes and scores, and the difference from the first way's."""
    names = ("test_accuracy", "test_cross_entropy")
    scores = {
        (line["key"]["strategy"], line["key"]["fitness"], line["key"]["seed"]): [
            column(line["ends"], name).mean() for name in names
        ]
        for line in lines
    }
    rows = [
        "| strategy, fitness | seeds | parameters | accuracy | cross entropy | difference | p |",
        "|---|---|---|---|---|---|---|",
    ]
    tried = [way for way in WAYS if sum(key[:2] == way for key in scores) > 1]
    for way in tried:
        seeds = sorted(seed for *other, seed in scores if tuple(other) == way)
        own = np.array([scores[*way, seed] for seed in seeds])
        sizes = [
            line["parameters"]
            for line in lines
            if (line["key"]["strategy"], line["key"]["fitness"]) == way
        ]
        paired = [seed for seed in seeds if (*tried[0], seed) in scores]
        gaps = np.array([scores[*way, s][1] - scores[*tried[0], s][1] for s in paired])
        differs = gaps.any()
        _, chance = map(float, wilcoxon(gaps)) if differs else (0.0, 1.0)
        rows.append(
            f"| {', '.join(way)} | {len(seeds)} | {np.mean(sizes):,.0f} "
            f"| {own[:, 0].mean():.2%} ± {100 * own[:, 0].std(ddof=1):.2f} "
            f"| {own[:, 1].mean():.4f} ± {own[:, 1].std(ddof=1):.4f} "
            f"| {f'{gaps.mean():+.4f}' if differs else ''} "
            f"| {f'{chance:.2g}' if differs else ''} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data_dir")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--channels", type=int, default=6)
    parser.add_argument("--num_normal_cells", type=int, default=2)
    parser.add_argument("--max_parameters", type=int, default=5000)
    parser.add_argument("--epochs", type=int, default=40, help="of winners")
    parser.add_argument("--candidate_epochs", type=int, default=3)
    parser.add_argument("--candidate_examples", type=int, help="images of an epoch")
    parser.add_argument("--candidates", type=int, help="trainings of a search")
    parser.add_argument("--training", choices=RECIPES_TRIED, default="paper", help="of candidates")
    parser.add_argument("--recipe", choices=RECIPES, default="modern", help="of winners")
    parser.add_argument(
        "--setting",
        nargs="*",
        type=setting,
        default=[],
        metavar="NAME=VALUE",
        help="of all searches, values as in JSON: min_channels=2 makes the width a gene",
    )
    names = [", ".join(way) for way in WAYS]
    parser.add_argument("--ways", nargs="*", choices=names, default=names)
    parser.add_argument("--workdir", type=pathlib.Path, default=pathlib.Path("searches"))
    options = parser.parse_args()
    options.workdir.mkdir(parents=True, exist_ok=True)
    named = {field.name for field in dataclasses.fields(NetworkConfig)}
    network = NetworkConfig(
        channels=options.channels,
        num_normal_cells=options.num_normal_cells,
        **{name: value for name, value in options.setting if name in named},
    )
    bench = Bench.open(
        options.dataset, options.data_dir, network=network, examples=0, validation=0.2
    )
    print(table(train_missing(options.workdir / "winners.jsonl", jobs(options, bench))))


if __name__ == "__main__":
    main()
