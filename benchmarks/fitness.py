"""How much a fitness tells of the training that it stands for.

    python benchmarks/fitness.py --dataset=digits --genomes=24 --seeds=3 --trained=digits.jsonl

Random genomes, and with `--searched` those that searches of each strategy met, are trained shortly
in several ways and fully in the way of the final training. A way of measuring is as good as its
order of the genomes: Kendall's tau with the mean test cross entropy of the full trainings, and what
is lost by taking the genome that it puts first. The file keeps each training as a line, so the same
command goes on where it was ended.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from curves import RECIPES_TRIED, REFERENCE, Bench, column, tau, train_missing

from jaxevo.config import NetworkConfig, SearchConfig, TrainingConfig, replace
from jaxevo.run.prepare import make_task
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.search import find_winner
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.strategies.registry import layout_space

SEARCHES = ("rea", "aging", "aco", "guided", "nsga2")  # whose genomes may be trained
Score = Callable[[dict[str, Any]], float]  # of a line; the larger, the better


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to measure a candidate: a training, the epochs of it that count, and a score."""

    training: str
    score: Score
    share: float = 1.0  # of the training's epochs
    repeats: int = 1  # trainings whose mean it is


def ways() -> dict[str, Way]:
    """All ways that are compared; a half and a repeat cost as much as the whole."""
    found: dict[str, Way] = {}
    for name in RECIPES_TRIED:
        found[f"{name}, accuracy"] = Way(name, last("accuracy"))
        found[f"{name}, cross entropy"] = Way(name, last("cross_entropy", -1))
        found[f"{name}, sum of losses"] = Way(name, losses())
    half = last("cross_entropy", -1, share=0.5)
    found["steady, cross entropy, half as long"] = Way("steady", half, share=0.5)
    found["steady, cross entropy, half as long, twice"] = Way("steady", half, share=0.5, repeats=2)
    for words, share in (("half", 1 / 2), ("a third", 1 / 3)):
        shorter = Way("steady", losses(share), share=share)
        found[f"steady, sum of losses, {words} as long"] = shorter
    common = last("cross_entropy", -1)
    found["modern, cross entropy, common random numbers"] = Way("modern common", common)
    found["number of parameters"] = Way(REFERENCE, lambda line: line["parameters"], share=0)
    return found


def last(name: str, sign: int = 1, share: float = 1.0) -> Score:
    """The score at the end of a training, or of a share of it."""

    def score(line: dict[str, Any]) -> float:
        return sign * float(_until(line, name, share)[-1])

    return score


def losses(share: float = 1.0) -> Score:
    """Minus the sum of the training losses, or of a share of them (Ru et al. 2021, 2006.04492)."""

    def score(line: dict[str, Any]) -> float:
        return -float(_until(line, "loss", share).sum())

    return score


def _until(line: dict[str, Any], name: str, share: float) -> np.ndarray:
    """A column of a line's curve in the first epochs, a share of them."""
    values = column(line["curve"], name)
    return values[: max(1, round(share * len(values)))]


def jobs(options: argparse.Namespace, bench: Bench) -> Iterator[tuple[dict[str, Any], Any]]:
    """Every training: seed by seed, so that few seeds of all genomes come first."""
    genomes = draw_genomes(options, bench) + met_genomes(options, bench)
    short = dataclasses.replace(TrainingConfig(), learning_rate=options.rate, batch_size=64)
    trainings = {name: (recipe, options.epochs) for name, recipe in RECIPES_TRIED.items()}
    trainings["modern common"] = (RECIPES_TRIED["modern"], options.epochs)
    trainings[REFERENCE] = (RECIPES_TRIED["modern"], options.final_epochs)
    chosen = [name for name in trainings if name in (*options.trainings, REFERENCE)]
    for seed in range(options.seeds):
        for number, genome in enumerate(genomes):
            for kind, name in enumerate(chosen):
                recipe, epochs = trainings[name]
                config = dataclasses.replace(short, **recipe, epochs=epochs)
                # Common random numbers: the same for all genomes.
                numbers = (seed,) if name == "modern common" else (seed, kind, number)

                def train(genome=genome, config=config, numbers=numbers, name=name):
                    whole = name == REFERENCE
                    size = bench.builder.complexity(genome).parameters
                    curve = bench.curve(genome, config, numbers, whole=whole)
                    return {"parameters": size, "genome": genome.to_dict(), "curve": curve}

                yield {"genome": number, "seed": seed, "training": name}, train


def draw_genomes(options: argparse.Namespace, bench: Bench) -> list[Genome]:
    """Random genomes within the bounds on parameters, the numbers of nodes drawn too.

    Width and number of cells are drawn where there are bounds on them.
    """
    rng = np.random.default_rng(options.genome_seed)
    bounds = ("min_channels", "channels", "min_normal_cells", "num_normal_cells")
    layouts = layout_space(
        replace(SearchConfig(), {name: getattr(options, name) for name in bounds})
    )
    found: list[Genome] = []
    while len(found) < options.genomes - options.searched:
        normal, reduction = (random_cell(rng, int(rng.integers(2, 7))) for _ in range(2))
        genome = Genome(normal, reduction, layouts.random(rng) if layouts else None)
        size = bench.builder.complexity(genome).parameters
        if options.min_parameters <= size <= (options.max_parameters or size):
            found.append(genome)
    return found


def met_genomes(options: argparse.Namespace, bench: Bench) -> list[Genome]:
    """Those that searches of each strategy met after their first generation.

    A search is a run beside the file of trainings, so the same command goes on where it was ended.
    """
    found: dict[str, Genome] = {}
    for number, strategy in enumerate(SEARCHES):
        wanted = options.searched * (number + 1) // len(SEARCHES)
        if len(found) == wanted:
            continue
        task = make_task(
            options.dataset,
            preset="quick",
            strategy=strategy,
            workdir=options.trained.with_suffix("") / strategy,
            data_dir=options.data_dir,
            settings={
                **dataclasses.asdict(bench.builder.network),
                **{"max_parameters": options.max_parameters, "fitness": "speed"},
                # Some of what is trained is of the first generation, or was met before.
                **{"num_generations": 1000, "max_trainings": options.searched // 4 + 10},
                **{"retrain_best": 0, "compare_winner": False},
            },
        )
        find_winner(task, Silent())
        for candidate in load_run(task.workdir).candidates.values():
            if candidate.individual.generation and len(found) < wanted:
                genome = candidate.individual.genome
                found.setdefault(genome.canonical_key(), genome)
    return list(found.values())


def scores(lines: list[dict[str, Any]], training: str, score: Score) -> np.ndarray:
    """Scores of all genomes and seeds, `[genomes, seeds]`; genomes that lack a seed are left out.

    A training that diverged scores worst.
    """
    table: dict[tuple[int, int], float] = {
        (line["key"]["genome"], line["key"]["seed"]): score(line)
        for line in lines
        if line["key"]["training"] == training
    }
    seeds = sorted({seed for _, seed in table})
    genomes = sorted({genome for genome, _ in table})
    rows = np.array([[table.get((g, s), np.inf) for s in seeds] for g in genomes])
    values = rows[~np.isposinf(rows).any(1)]
    return np.where(np.isfinite(values), values, -1e6)


def variance_parts(values: np.ndarray) -> tuple[float, float, float]:
    """Share of the variance that is the genome's (ICC(1)), its spread, and the seeds' spread."""
    seeds = values.shape[1]
    within = float(values.var(1, ddof=1).mean())
    between = max(0.0, float(values.mean(1).var(ddof=1)) - within / seeds)
    total = between + within
    return (between / total if total else 0.0), between**0.5, within**0.5


def report(lines: list[dict[str, Any]], steps: dict[str, int]) -> list[dict[str, Any]]:
    """A row for each way whose trainings are there."""
    reference = scores(lines, REFERENCE, last("test_cross_entropy", -1))
    accuracy = scores(lines, REFERENCE, last("test_accuracy"))
    rows = []
    for name, values in (("accuracy", accuracy), ("cross entropy", reference)):
        found = row(f"final, test {name} (against other seeds)", values, reference, accuracy, 1)
        others = _against_others(values, reference, accuracy) | {"steps": steps[REFERENCE]}
        rows.append(found | others)
    known = {line["key"]["training"] for line in lines}
    for name, way in ways().items():
        if way.training in known:
            values = scores(lines, way.training, way.score)[: len(reference)]
            found = row(name, values, reference, accuracy, way.repeats)
            cost = round(way.share * way.repeats * steps[way.training])
            rows.append(found | {"steps": cost})
    return rows


def row(
    name: str, values: np.ndarray, reference: np.ndarray, accuracy: np.ndarray, repeats: int
) -> dict[str, Any]:
    """ICC and spreads of a way, and its order against the reference's means.

    The order is the mean over choices of seeds, each of which measures every genome anew.
    """
    icc, between, within = variance_parts(values)
    seeds = values.shape[1]
    draws = [values[:, [(s + k) % seeds for k in range(repeats)]].mean(1) for s in range(seeds)]
    truth, final = reference.mean(1)[: len(values)], accuracy.mean(1)[: len(values)]
    spreads = {"way": name, "icc": icc, "between": between, "within": within}
    return spreads | order(draws, [truth] * seeds, [final] * seeds)


def order(
    draws: list[np.ndarray], truths: list[np.ndarray], finals: list[np.ndarray]
) -> dict[str, float]:
    """Means over draws of the taus with truth and final accuracy, and of the regret."""
    regrets = [
        final.max() - final[draw.argmax()] for draw, final in zip(draws, finals, strict=True)
    ]
    return {
        "tau": float(np.mean([tau(*pair) for pair in zip(draws, truths, strict=True)])),
        "tau_accuracy": float(np.mean([tau(*pair) for pair in zip(draws, finals, strict=True)])),
        "regret": float(np.mean(regrets)),
    }


def _against_others(
    values: np.ndarray, reference: np.ndarray, accuracy: np.ndarray
) -> dict[str, float]:
    """`order` of one full training against the mean of the other seeds' trainings."""
    truths, finals = (
        [np.delete(scored, s, 1).mean(1) for s in range(values.shape[1])]
        for scored in (reference, accuracy)
    )
    return order(list(values.T), truths, finals)


def markdown(rows: list[dict[str, Any]]) -> str:
    """The rows as a table."""
    head = (
        "| way | steps | ICC | spread of genomes | of seeds | tau, cross entropy | tau, accuracy "
        "| regret |\n|---|---|---|---|---|---|---|---|"
    )
    body = [
        f"| {r['way']} | {r['steps']:,} | {r['icc']:.2f} | {r['between']:.4g} | {r['within']:.4g} "
        f"| {r['tau']:.2f} | {r['tau_accuracy']:.2f} | {r['regret']:.2%} |"
        for r in rows
    ]
    return "\n".join([head, *body])


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="How much a fitness tells.")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--data_dir")
    parser.add_argument("--genomes", type=int, default=24)
    parser.add_argument("--searched", type=int, default=0, help="of the genomes, from searches")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--genome_seed", type=int, default=0, help="of the random genomes")
    parser.add_argument("--channels", type=int, default=8, help="D")
    parser.add_argument("--num_normal_cells", type=int, default=3, help="N")
    parser.add_argument("--min_channels", type=int, default=0, help="above 0: D is drawn")
    parser.add_argument("--min_normal_cells", type=int, default=0, help="above 0: N is drawn")
    parser.add_argument("--min_parameters", type=int, default=0)
    parser.add_argument("--max_parameters", type=int, default=0, help="0: of any size")
    parser.add_argument("--examples", type=int, default=0, help="of short trainings; 0: all")
    parser.add_argument("--validation", type=float, default=0.2, help="part of the training split")
    parser.add_argument("--epochs", type=int, default=6, help="of short trainings")
    parser.add_argument("--final_epochs", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1e-2)
    parser.add_argument(
        "--trainings", nargs="*", default=[*RECIPES_TRIED, "modern common"], help="short ones"
    )
    parser.add_argument("--trained", type=pathlib.Path, required=True, help="keeps the trainings")
    parser.add_argument("--output", type=pathlib.Path, help="the rows as JSON")
    return parser.parse_args()


def main() -> None:
    """Trains what is missing, and prints the table."""
    options = parse()
    bench = Bench.open(
        options.dataset,
        options.data_dir,
        network=NetworkConfig(channels=options.channels, num_normal_cells=options.num_normal_cells),
        examples=options.examples,
        validation=options.validation,
    )
    lines = train_missing(options.trained, jobs(options, bench))
    lengths = {line["key"]["training"]: len(line["curve"]) for line in lines}
    steps = {name: len(bench.data.subset) // 64 * epochs for name, epochs in lengths.items()}
    steps[REFERENCE] = len(bench.data.labels) // 64 * lengths[REFERENCE]
    rows = report(lines, steps)
    print(markdown(rows))
    if options.output:
        options.output.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
