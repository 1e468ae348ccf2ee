"""Searches on a model of measured trainings, by which a whole search takes a second.

    python benchmarks/simulated.py --trained=digits.jsonl --repetitions=200 --candidates=36

`fitness.py` has trained the genomes of the file. A forest fitted to the mean of each genome's full
trainings stands for the truth, with the differences that it does not explain drawn for each genome;
the spread between seeds is the noise of a fitness. A strategy is as good as the true value, in
standard deviations between random genomes, of what it would train at last: the winner of the fresh
trainings of its best. The forest sees other features than the strategy `guided`.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import pathlib

import numpy as np
from curves import REFERENCE, column, tau
from fitness import scores, variance_parts
from scipy.stats import wilcoxon
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import STRATEGIES
from jaxevo.search_space.genome import OPS, Genome
from jaxevo.search_space.variation import random_genome_of_any_size
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import make_strategy

RETRAINED, FRESH = 3, 2  # the best that are trained again, and how often


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


@dataclasses.dataclass(frozen=True)
class Landscape:
    """True values of genomes, and the noise of a measurement, in units of the truth's spread."""

    forest: RandomForestRegressor
    residual: float
    noise: float
    tau: float  # of the forest's predictions of unseen genomes with their means

    @classmethod
    def fit(cls, lines: list[dict]) -> Landscape:
        """The model of what was measured."""

        def score(line: dict) -> float:
            both = (column(line["curve"], f"{k}cross_entropy")[-1] for k in ("", "test_"))
            return -float(np.log(max(1e-3, np.mean(list(both)))))

        values = scores(lines, REFERENCE, score)
        _, between, within = variance_parts(values)
        genomes = {
            line["key"]["genome"]: Genome.from_dict(line["genome"])
            for line in lines
            if line["key"]["training"] == REFERENCE
        }
        rows = np.array([forest_features(genomes[k]) for k in sorted(genomes)])[: len(values)]
        truth = (values.mean(1) - values.mean()) / between
        forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0, n_jobs=1)
        foretold = np.asarray(cross_val_predict(forest, rows, truth, cv=10))
        # What the forest leaves of the genomes' variance of 1, without the seeds' part.
        residual = max(0.0, 1 - float(np.var(foretold))) ** 0.5
        order = tau(foretold, truth)
        return cls(forest.fit(rows, truth), residual, within / between, order)

    def truths(self, genomes: list[Genome]) -> np.ndarray:
        """True values; equal for isomorphic genomes."""
        own = [_normal(genome.canonical_key()) for genome in genomes]
        rows = np.array([forest_features(genome) for genome in genomes])
        return self.forest.predict(rows) + self.residual * np.array(own)


def _normal(text: str) -> float:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return float(np.random.default_rng(seed).normal())


def search(landscape: Landscape, name: str, seed: int, options: argparse.Namespace) -> float:
    """The true value of what a search would choose."""
    generations = (options.candidates - options.population) // options.offspring
    settings = STRATEGIES[name] | {"seed": seed, "num_generations": generations}
    settings |= {"population_size": options.population, "num_offspring": options.offspring}
    settings |= {"mating_pool": "survivors", "sample_size": 2}
    strategy = make_strategy(replace(SearchConfig(), settings))
    rng = np.random.default_rng([3, seed])
    told: dict[str, Individual] = {}
    truth: dict[str, float] = {}
    while asked := strategy.ask():
        values = landscape.truths([each.genome for each in asked])
        for candidate, value in zip(asked, values, strict=True):
            key = candidate.genome.canonical_key()
            noise = landscape.noise * options.noise * rng.normal()
            if key in told:  # an isomorphic one's fitness is taken over
                fitness = told[key].fitness
            else:
                fitness = value + noise
            evaluated = dataclasses.replace(candidate, fitness=fitness)
            told.setdefault(key, evaluated)
            truth[key] = float(value)
            strategy.tell(evaluated)
    # The best are trained again, and the highest mean wins.
    best = strategy.ranked(list(told.values()))[:RETRAINED]
    keys = [each.genome.canonical_key() for each in best]
    fresh = [
        truth[key] + landscape.noise * options.noise * rng.normal(size=FRESH).mean() for key in keys
    ]
    return truth[keys[int(np.argmax(fresh))]]


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Searches on a model of trainings.")
    parser.add_argument("--trained", type=pathlib.Path, required=True)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=36)
    parser.add_argument("--population", type=int, default=6)
    parser.add_argument("--offspring", type=int, default=6)
    parser.add_argument("--noise", type=float, default=1.0, help="times the seeds' spread")
    parser.add_argument("--strategies", nargs="*", default=["random", "rea", "aging", "guided"])
    return parser.parse_args()


def main() -> None:
    """A row a strategy."""
    options = parse()
    lines = [json.loads(text) for text in options.trained.read_text().splitlines()]
    landscape = Landscape.fit(lines)
    print(
        f"model: tau {landscape.tau:.2f} with the measured means of unseen genomes; seeds spread "
        f"{landscape.noise:.2f} times as widely as genomes, of whose variance the forest leaves "
        f"{landscape.residual**2:.2f}"
    )
    rng = np.random.default_rng(0)
    random = landscape.truths([random_genome_of_any_size(rng, 2, 6) for _ in range(1000)])
    print(f"random genomes: {random.mean():.2f} +- {random.std():.2f}\n")
    print(
        "| strategy | true value | better than random search in | p, Wilcoxon |\n|---|---|---|---|"
    )
    found = {
        name: np.array(
            [search(landscape, name, seed, options) for seed in range(options.repetitions)]
        )
        for name in options.strategies
    }
    baseline = found[options.strategies[0]]
    for name, values in found.items():
        difference = values - baseline
        _, p = map(float, wilcoxon(difference)) if np.any(difference) else (0.0, 1.0)
        share = float(np.mean(difference > 0))
        print(f"| {name} | {values.mean():.2f} +- {values.std():.2f} | {share:.0%} | {p:.2g} |")


if __name__ == "__main__":
    main()
