"""Searches on a model of candidates whose layouts are genes, by which one takes a second.

    python benchmarks/layouts.py --repetitions=60

The table has genomes for MNIST within 2,000 parameters, whose width, number of cells and factor on
the width differ, with the fitness of their trainings in searches. A forest is fitted to it. What it
leaves of a genome is drawn for each genome, and the noise between trainings is that of genomes that
were trained again. A search ends as one of preset `quick`, and is as good as its winner's true
fitness. `searches.py` makes such candidates; `--runs` reads them from its folders.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import pathlib
from typing import Any

import numpy as np
from curves import read, tau
from scipy.stats import mannwhitneyu
from simulated import forest_features, normal_of
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import STRATEGIES, preset
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.drawn import bounded_strategy
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.individual import Individual

TABLE = pathlib.Path(__file__).parent / "tables" / "mnist-layouts.jsonl.xz"
BOUND = 2000  # parameters
CANDIDATES = 72
SPACE = {
    **{"channels": 16, "min_channels": 2, "num_normal_cells": 4, "min_normal_cells": 2},
    **{"min_channel_multiplier": 1, "output_relu": True, "max_parameters": BOUND},
}
BUILDER = NetworkBuilder(replace(SearchConfig(), SPACE).network, (28, 28, 1), num_classes=10)


def table_features(genome: Genome) -> list[float]:
    """What the forest sees of a genome: its operations, its layout and its network's size."""
    layout = genome.layout
    assert layout is not None and layout.channel_multiplier is not None
    genes = (layout.channels, layout.num_normal_cells, layout.channel_multiplier)
    size = BUILDER.complexity(genome)
    sizes = (math.log(size.parameters), math.log(size.multiply_adds))
    return [*forest_features(genome), *genes, *sizes]


@dataclasses.dataclass(frozen=True)
class Landscape:
    """True fitness of genomes, and what trainings make of it.

    Attributes:
        forest: Of the mean fitness of a genome.
        own: Standard deviation of what the forest leaves of genomes.
        noise: Standard deviation between trainings of a genome.
    """

    forest: RandomForestRegressor
    own: float
    noise: float

    @classmethod
    def fit(cls, lines: list[dict[str, Any]]) -> Landscape:
        """The model of what was measured, which is described."""
        genomes = [Genome.from_dict(line["genome"]) for line in lines]
        rows = np.array([table_features(genome) for genome in genomes])
        means = np.array([np.mean(line["fitness"]) for line in lines])
        again = [np.var(line["again"], ddof=1) for line in lines if len(line["again"]) > 1]
        noise = float(np.mean(again)) ** 0.5
        forest = RandomForestRegressor(
            100, min_samples_leaf=3, max_features=0.5, random_state=0, n_jobs=1
        )
        foretold = np.asarray(cross_val_predict(forest, rows, means, cv=10))
        own = max(0.0, float((means - foretold).var()) - noise**2) ** 0.5
        print(
            f"{len(lines)} genomes; the forest foretells unseen ones with tau "
            f"{tau(foretold, means):.2f} and leaves {own:.3f}; noise of a training {noise:.3f}\n"
        )
        return cls(forest.fit(rows, means), own, noise)

    def truth(self, genome: Genome) -> float:
        """The true fitness; isomorphic genomes have the same."""
        row = np.array([table_features(genome)], np.float32)
        # Without what the forest's own method adds to each call.
        foretold = np.mean([tree.tree_.predict(row)[0, 0] for tree in self.forest.estimators_])
        return float(foretold + self.own * normal_of(genome.canonical_key(), 1)[0])


def search(landscape: Landscape, strategy_name: str, seed: int) -> float:
    """The true fitness of what a search by so many candidates would choose."""
    settings = preset("quick", 60_000) | STRATEGIES[strategy_name] | SPACE
    settings |= {"fitness": "likelihood", "racing": 0.0, "num_generations": 1000, "seed": seed}
    config = replace(SearchConfig(), settings)
    strategy = bounded_strategy(config, BUILDER.complexity)
    rng = np.random.default_rng([3, seed])
    told: list[Individual] = []
    true: dict[str, float] = {}
    measured: dict[str, float] = {}
    while len(true) < CANDIDATES:
        candidate = strategy.ask()[0]
        key = candidate.genome.canonical_key()
        if key not in true:
            true[key] = landscape.truth(candidate.genome)
            measured[key] = true[key] + landscape.noise * rng.normal()
        told.append(dataclasses.replace(candidate, fitness=measured[key]))
        strategy.tell(told[-1])
    # The best are trained again, and the highest mean wins.
    ranked = dict.fromkeys(each.genome.canonical_key() for each in strategy.ranked(told))
    best = list(ranked)[: config.retrain_best]
    spread = landscape.noise / config.retrain_seeds**0.5
    return true[max(best, key=lambda key: true[key] + spread * rng.normal())]


def candidates_of(folders: list[pathlib.Path]) -> list[dict[str, Any]]:
    """The candidates of runs, a line a genome: fitness in the search, and when trained again."""
    lines: dict[str, dict[str, Any]] = {}
    for folder in sorted(folders):
        keys: dict[int, str] = {}
        for record in map(json.loads, (folder / "history.jsonl").read_text().splitlines()):
            if record["kind"] == "individual" and record["fitness"] is not None:
                key = Genome.from_dict(record["genome"]).canonical_key()
                empty = {"genome": record["genome"], "fitness": [], "again": []}
                line = lines.setdefault(key, empty)
                if record["reused"] is None:
                    line["fitness"].append(round(record["fitness"], 4))
                keys[record["id"]] = key
            elif record["kind"] == "retraining" and record["fitness"] is not None:
                lines[keys[record["id"]]]["again"].append(round(record["fitness"], 4))
    return list(lines.values())


def main() -> None:
    """A row a strategy."""
    parser = argparse.ArgumentParser(description="Searches on a model of layouts.")
    parser.add_argument("--table", type=pathlib.Path, default=TABLE)
    parser.add_argument("--runs", type=pathlib.Path, nargs="*", help="makes the table of these")
    parser.add_argument("--repetitions", type=int, default=60)
    parser.add_argument("--strategies", nargs="*", default=["random", "guided", "rea", "aging"])
    options = parser.parse_args()
    if options.runs:
        lines = candidates_of(options.runs)
        options.table.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return
    landscape = Landscape.fit(read(options.table))
    print("| strategy | true fitness of the winner | better than the first | p |")
    print("|---|---|---|---|")
    first: np.ndarray | None = None
    for name in options.strategies:
        seeds = range(options.repetitions)
        found = np.array([search(landscape, name, seed) for seed in seeds])
        first = found if first is None else first
        u, p = map(float, mannwhitneyu(found, first))
        share = u / (len(found) * len(first))
        cells = f"{found.mean():.3f} ± {found.std(ddof=1):.3f} | {share:.0%} | {p:.1g}"
        print(f"| {name} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
