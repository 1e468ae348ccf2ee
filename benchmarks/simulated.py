"""Searches on a model of measured trainings, by which a whole search takes a second.

    python benchmarks/simulated.py --trained=benchmarks/tables/digits.jsonl.xz --repetitions=200

`fitness.py` has trained the genomes of the file, shortly and fully. Two forests are fitted to them:
to what full trainings gave (the truth) and to what a short one tells (the fitness). What they leave
of a genome's two values is drawn for each genome, with the correlation that it has in the file; the
spread between seeds is a fitness's noise. A search ends as one of preset `quick`: fresh trainings
of its best decide. It is as good as its winner's true value, in standard deviations between random
genomes. The forests see other features than the strategy `guided` does.

Settings are to be chosen with `--part=0`, one half of the genomes, and confirmed with `--part=1`.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import pathlib
from typing import Any

import numpy as np
from curves import REFERENCE, column, read, tau
from fitness import scores, variance_parts
from scipy.stats import mannwhitneyu
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import STRATEGIES, preset
from jaxevo.run.evaluator import Evaluation
from jaxevo.search_space.genome import OPS, Genome
from jaxevo.search_space.variation import random_genome_of_any_size
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import make_strategy

SHORT = "steady"  # the training whose scores are a fitness
# Strategy and fitness; the first is what the others are compared with.
WAYS = (
    ("random", "accuracy"),
    ("rea", "accuracy"),
    ("aging", "accuracy"),
    ("guided", "accuracy"),
    ("random", "speed"),
    ("rea", "speed"),
    ("aging", "speed"),
    ("guided", "speed"),
)


def forest_features(genome: Genome) -> list[float]:
    """How often each operation reads an input or a hidden state, in each cell, and B."""
    found: list[float] = []
    for cell in genome.cells:
        operands = [operand for node in cell.nodes for operand in node.operands]
        for op in OPS:
            found += [
                sum(other is op and (state < 2) == hidden for state, other in operands)
                for hidden in (False, True)
            ]
        found.append(cell.num_nodes)
    return found


def truth_of(line: dict[str, Any]) -> float:
    """Minus the logarithm of a full training's cross entropy on all images that it has not seen."""
    both = (column(line["curve"], f"{kind}cross_entropy")[-1] for kind in ("", "test_"))
    return -float(np.log(max(1e-3, np.mean(list(both)))))


def fitness_of(kind: str, line: dict[str, Any]) -> float:
    """A short training's fitness, as a search has it."""
    accuracy, cross_entropy, losses = (
        column(line["curve"], name) for name in ("accuracy", "cross_entropy", "loss")
    )
    ended = Evaluation(accuracy[-1], cross_entropy=cross_entropy[-1], loss=losses.mean())
    return ended.fitness(kind) or 0.0


@dataclasses.dataclass(frozen=True)
class Landscape:
    """True values and fitness of genomes; residuals and noise are normal.

    Attributes:
        forests: Of the truth and of the fitness.
        root: Matrix root of the covariance of what forests leave of genomes' means, `[2, 2]`.
        noise: Standard deviation of a fitness between seeds.
        mean: Of the truth, over the genomes of the file.
        unit: The truth's spread between them.
        taus: Kendall's, of the forests' predictions of unseen genomes with their means.
    """

    forests: tuple[RandomForestRegressor, RandomForestRegressor]
    root: np.ndarray
    noise: float
    mean: float
    unit: float
    taus: tuple[float, float]

    @classmethod
    def fit(cls, lines: list[dict[str, Any]], kind: str) -> Landscape:
        """The model of what was measured."""
        measured = [
            scores(lines, REFERENCE, truth_of),
            scores(lines, SHORT, lambda line: fitness_of(kind, line)),
        ]
        genomes = {line["key"]["genome"]: Genome.from_dict(line["genome"]) for line in lines}
        rows = np.array([forest_features(genomes[number]) for number in sorted(genomes)])
        means = np.array([values.mean(1) for values in measured])
        forests = [
            RandomForestRegressor(60, min_samples_leaf=5, random_state=0, n_jobs=1) for _ in means
        ]
        foretold = np.array(
            [
                cross_val_predict(forest, rows, values, cv=10)
                for forest, values in zip(forests, means, strict=True)
            ]
        )
        left = np.cov(means - foretold)
        parts = [variance_parts(values) for values in measured]
        # A mean over seeds has a part of their spread, which is none of the genome's.
        for number, (values, (_, _, within)) in enumerate(zip(measured, parts, strict=True)):
            left[number, number] -= within**2 / values.shape[1]
        values, vectors = np.linalg.eigh(left)
        return cls(
            (forests[0].fit(rows, means[0]), forests[1].fit(rows, means[1])),
            vectors * np.sqrt(values.clip(0)),
            parts[1][2],
            float(means[0].mean()),
            parts[0][1],
            (tau(foretold[0], means[0]), tau(foretold[1], means[1])),
        )

    def values(self, genomes: list[Genome]) -> np.ndarray:
        """Truth, in units of its spread, and mean fitness, `[2, N]`; of isomorphic ones equal."""
        rows = np.array([forest_features(genome) for genome in genomes])
        own = np.array([_normal(genome.canonical_key()) for genome in genomes])
        foretold = np.array([_predict(each, rows) for each in self.forests])
        truth, fitness = foretold + self.root @ own.T
        return np.array([(truth - self.mean) / self.unit, fitness])


def _predict(forest: RandomForestRegressor, rows: np.ndarray) -> np.ndarray:
    """The forest's predictions, `[N]`, without what its own method adds to each call: 3 ms."""
    inputs = np.ascontiguousarray(rows, np.float32)
    return np.mean([tree.tree_.predict(inputs)[:, 0] for tree in forest.estimators_], axis=0)


def _normal(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=2)


def search(landscape: Landscape, way: tuple[str, str], seed: int, candidates: int) -> float:
    """The true value of what a search would choose."""
    name, kind = way
    settings = preset("quick", 1149, 8) | STRATEGIES[name] | {"fitness": kind, "seed": seed}
    settings |= {"num_generations": 1000}
    config = replace(SearchConfig(), settings)
    strategy = make_strategy(config)
    rng = np.random.default_rng([3, seed])
    known: dict[str, tuple[Individual, float, float]] = {}  # individual, truth, mean fitness
    told: list[Individual] = []
    while len(known) < candidates:
        candidate = strategy.ask()[0]
        key = candidate.genome.canonical_key()
        if key in known:  # an isomorphic one's fitness is taken over
            fitness = known[key][0].fitness
        else:
            truth, mean = map(float, landscape.values([candidate.genome])[:, 0])
            fitness = mean + landscape.noise * rng.normal()
        told.append(dataclasses.replace(candidate, fitness=fitness))
        if key not in known:
            known[key] = told[-1], truth, mean
        strategy.tell(told[-1])
    # The best are trained again, and the highest mean wins.
    best: dict[str, tuple[Individual, float, float]] = {}
    for individual in strategy.ranked(told):
        key = individual.genome.canonical_key()
        best.setdefault(key, known[key])
        if len(best) == config.retrain_best:
            break
    spread = landscape.noise / np.sqrt(config.retrain_seeds)
    fresh = [mean + spread * rng.normal() for _, _, mean in best.values()]
    return list(best.values())[int(np.argmax(fresh))][1]


def compare(found: np.ndarray, baseline: np.ndarray) -> str:
    """How likely one search is better than the other, and p (Mann and Whitney's U, two-sided)."""
    u, p = map(float, mannwhitneyu(found, baseline))
    return f"{u / (len(found) * len(baseline)):.0%}, {p:.1g}"


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Searches on a model of trainings.")
    parser.add_argument("--trained", type=pathlib.Path, required=True)
    parser.add_argument("--part", type=int, choices=(0, 1), help="half of the genomes; else all")
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--candidates", type=int, nargs="*", default=[18, 36])
    return parser.parse_args()


def main() -> None:
    """A row a way to search, a column a number of candidates."""
    options = parse()
    lines = read(options.trained)
    if options.part is not None:
        lines = [line for line in lines if line["key"]["genome"] % 2 == options.part]
    kinds = dict.fromkeys(kind for _, kind in WAYS)
    landscapes = {kind: Landscape.fit(lines, kind) for kind in kinds}
    for kind, landscape in landscapes.items():
        rng = np.random.default_rng(0)
        random = landscape.values([random_genome_of_any_size(rng, 2, 6) for _ in range(1000)])
        share = random[1].std() ** 2 / (random[1].std() ** 2 + landscape.noise**2)
        print(
            f"{kind}: forests order unseen genomes with tau {landscape.taus[0]:.2f} (truth), "
            f"{landscape.taus[1]:.2f} (fitness); random genomes' truth {random[0].mean():.2f} ± "
            f"{random[0].std():.2f}, a fitness is the genome's by {share:.2f} and has r = "
            f"{np.corrcoef(random)[0, 1]:.2f} with the truth without noise"
        )
    print(f"\n| strategy, fitness | {' | '.join(f'{n} candidates' for n in options.candidates)} |")
    print("|---|" + "---|" * len(options.candidates))
    last = options.candidates[-1]
    found: dict[tuple[tuple[str, str], int], np.ndarray] = {}
    for way in WAYS:
        for candidates in options.candidates:
            found[way, candidates] = np.array(
                [
                    search(landscapes[way[1]], way, seed, candidates)
                    for seed in range(options.repetitions)
                ]
            )
        cells = [
            f"{found[way, n].mean():.2f} ± {found[way, n].std(ddof=1):.2f} "
            f"({compare(found[way, n], found[WAYS[0], last])})"
            for n in options.candidates
        ]
        print(f"| {', '.join(way)} | {' | '.join(cells)} |", flush=True)
    print(f"\nIn brackets: how likely it is better than {' by '.join(WAYS[0])} with {last}, and p.")
    first, ours = options.candidates[0], WAYS[-1]
    against = "; ".join(
        f"{', '.join(way)} {compare(found[ours, first], found[way, last])}" for way in WAYS[:-1]
    )
    print(f"{', '.join(ours)} with {first} against others with {last}: {against}.")


if __name__ == "__main__":
    main()
