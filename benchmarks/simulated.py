"""Searches on a model of measured trainings, by which a whole search takes a second.

    python benchmarks/simulated.py --trained=benchmarks/tables/digits.jsonl.xz --repetitions=200

`fitness.py` has trained the genomes of the file, shortly and fully. A forest is fitted to what full
trainings gave (the truth) and to what a short one tells after each epoch (the fitness). What it
leaves of a genome's values is drawn for each genome, with the correlations that it has in the file,
and so is the noise between seeds. A search ends as one of preset `quick`: fresh trainings of its
best decide. It is as good as its winner's true value, in standard deviations between random
genomes. The forest sees other features than the strategy `guided` does.

A search may spend so many epochs of candidates' trainings. Settings are to be chosen with
`--part=0`, one half of the genomes, and confirmed with `--part=1`.
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
from jaxevo.run.trial import Rival
from jaxevo.search_space.genome import OPS, Genome
from jaxevo.search_space.variation import random_genome
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import make_strategy

MARGIN = STRATEGIES["guided"]["racing"]


@dataclasses.dataclass(frozen=True)
class Way:
    """A way to search.

    Attributes:
        strategy: Its name.
        fitness: By which it selects.
        epochs: Of a candidate's training.
        racing: Whether trainings are a race, as in the program.
        noise: Whether a fitness has any; without, it is what endless repetition would come to.
        training: Of `curves.RECIPES_TRIED`; `warm` has as many epochs as it was trained for.
        lag: How many candidates are under way at once.
    """

    strategy: str
    fitness: str
    epochs: int = 6
    racing: bool = False
    noise: bool = True
    training: str = "steady"
    lag: int = 1

    def __str__(self) -> str:
        epochs = f"{self.epochs} epochs" if self.epochs > 1 else "1 epoch"
        others = [", racing"] * self.racing + [", without noise"] * (not self.noise)
        others += [", rising and falling rate"] * (self.training == "warm")
        others += [f", lag {self.lag}"] * (self.lag > 1)
        return f"{self.strategy}, {self.fitness}, {epochs}{''.join(others)}"


# The first that is tried is what the others are compared with.
WAYS = (
    *(Way(name, "accuracy") for name in ("random", "rea", "aging", "guided")),
    *(Way(name, "speed") for name in ("random", "rea", "aging", "guided")),
    Way("guided", "speed", racing=True),
    *(Way("guided", "speed", epochs) for epochs in (3, 2, 1)),
    Way("guided", "speed", 3, racing=True),
    Way("guided", "speed", 3, noise=False),
    *(Way(name, "accuracy", 3, training="warm") for name in ("random", "rea", "aging", "guided")),
    *(Way(name, "likelihood", 3, training="warm") for name in ("random", "guided")),
    *(Way(name, "speed", 3, training="warm") for name in ("random", "guided")),
    Way("guided", "speed", 3, racing=True, training="warm"),
    *(Way("guided", "speed", 3, racing=True, lag=lag) for lag in (4, 8, 16)),
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
    """Minus the logarithm of a full training's mean cross entropy on validation and test images."""
    both = (column(line["curve"], f"{kind}cross_entropy")[-1] for kind in ("", "test_"))
    return -float(np.log(max(1e-3, np.mean(list(both)))))


def fitness_of(kind: str, line: dict[str, Any], epochs: int) -> float:
    """The fitness of a short training after so many epochs, as a search has it."""
    accuracy, cross_entropy, losses = (
        column(line["curve"], name)[:epochs] for name in ("accuracy", "cross_entropy", "loss")
    )
    ended = Evaluation(accuracy[-1], cross_entropy=cross_entropy[-1], loss=losses.mean())
    return ended.fitness(kind) or 0.0


@dataclasses.dataclass(frozen=True)
class Landscape:
    """True values and fitness of genomes; residuals and noise are normal.

    E is the number of epochs of a short training.

    Attributes:
        forest: Of the truth and of the fitness after each epoch, standardized.
        scale: Means and standard deviations of these, `[2, 1 + E]`.
        root: Matrix root of the covariance of what the forest leaves of genomes' means,
            standardized, `[1 + E, 1 + E]`.
        noise: Matrix root of the covariance of fitness between seeds, `[E, E]`.
        unit: The truth's spread between genomes.
        taus: Kendall's, of the forest's predictions of unseen genomes with their means, `[1 + E]`.
    """

    forest: RandomForestRegressor
    scale: np.ndarray
    root: np.ndarray
    noise: np.ndarray
    unit: float
    taus: list[float]

    @classmethod
    def fit(cls, lines: list[dict[str, Any]], kind: str, training: str) -> Landscape:
        """The model of what was measured, by this fitness after these short trainings."""
        epochs = max(len(line["curve"]) for line in lines if line["key"]["training"] == training)
        measured = [scores(lines, REFERENCE, truth_of)] + [
            scores(lines, training, lambda line, e=e: fitness_of(kind, line, e))
            for e in range(1, epochs + 1)
        ]
        genomes = {line["key"]["genome"]: Genome.from_dict(line["genome"]) for line in lines}
        rows = np.array([forest_features(genomes[number]) for number in sorted(genomes)])
        means = np.array([values.mean(1) for values in measured]).T
        scale = np.array([means.mean(0), means.std(0)])
        standard = (means - scale[0]) / scale[1]
        forest = RandomForestRegressor(60, min_samples_leaf=5, random_state=0, n_jobs=1)
        foretold = np.asarray(cross_val_predict(forest, rows, standard, cv=10))
        # A mean over seeds has a part of their spread, which is none of the genome's.
        between_seeds = np.array(
            [values - values.mean(1, keepdims=True) for values in measured[1:]]
        )
        seeds = between_seeds.shape[2]
        noise = np.einsum("egs,fgs->ef", between_seeds, between_seeds)
        noise /= between_seeds.shape[1] * (seeds - 1)
        left = np.cov((standard - foretold).T)
        left[1:, 1:] -= noise / np.outer(scale[1, 1:], scale[1, 1:]) / seeds
        _, unit, within = variance_parts(measured[0])
        left[0, 0] -= (within / scale[1, 0]) ** 2 / measured[0].shape[1]
        taus = [tau(foretold[:, k], means[:, k]) for k in range(1 + epochs)]
        forest.fit(rows, standard)
        return cls(forest, scale, _root(left), _root(noise), unit, taus)

    def values(self, genomes: list[Genome]) -> np.ndarray:
        """Truth in units of its spread, and mean fitness after each epoch, `[N, 1 + E]`.

        Isomorphic genomes have the same.
        """
        rows = np.array([forest_features(genome) for genome in genomes])
        own = np.array([normal_of(genome.canonical_key(), len(self.root)) for genome in genomes])
        found = (_predict(self.forest, rows) + own @ self.root.T) * self.scale[1]
        return np.hstack([found[:, :1] / self.unit, found[:, 1:] + self.scale[0, 1:]])

    def seed_noise(self, rng: np.random.Generator, trainings: int = 1) -> np.ndarray:
        """What the mean of so many trainings is off after each epoch, `[E]`."""
        return self.noise @ rng.normal(size=len(self.noise)) / np.sqrt(trainings)


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(values.clip(0))


def _predict(forest: RandomForestRegressor, rows: np.ndarray) -> np.ndarray:
    """The forest's predictions, `[N, 1 + E]`, without what its own method adds to each call."""
    inputs = np.ascontiguousarray(rows, np.float32)
    return np.mean([tree.tree_.predict(inputs)[..., 0] for tree in forest.estimators_], axis=0)


def normal_of(text: str, count: int) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=count)


def search(landscape: Landscape, way: Way, seed: int, budget: int) -> float:
    """The true value of what a search would choose that spends so many epochs on candidates."""
    # Of the preset only the populations and retrainings matter here, which no data set changes.
    settings = preset("quick", 1149, 8) | STRATEGIES[way.strategy]
    settings |= {"fitness": way.fitness, "seed": seed, "num_generations": 1000}
    settings |= {"racing": MARGIN if way.racing else 0.0, "lag": way.lag}
    config = replace(SearchConfig(), settings)
    strategy = make_strategy(config)
    rng = np.random.default_rng([3, seed])
    if not way.noise:
        landscape = dataclasses.replace(landscape, noise=np.zeros_like(landscape.noise))
    known: dict[str, tuple[Individual, np.ndarray]] = {}  # with its values
    told: list[Individual] = []
    trained: dict[int, Rival] = {}  # by individual
    spent = 0
    while spent < budget:
        candidate = strategy.ask()[0]
        key = candidate.genome.canonical_key()
        if key in known:  # an isomorphic one's fitness is taken over
            fitness = known[key][0].fitness
            trained[candidate.id] = trained[known[key][0].id]
        else:
            values = landscape.values([candidate.genome])[0]
            curve = (values[1:] + landscape.seed_noise(rng))[: way.epochs]
            rival = None if candidate.rival is None else trained[candidate.rival]
            trained[candidate.id] = race(curve, rival)
            spent += len(trained[candidate.id].losses)
            foretold = np.exp(-trained[candidate.id].loss)
            fitness = float(foretold if way.racing else curve[-1])
        told.append(dataclasses.replace(candidate, fitness=fitness))
        if key not in known:
            known[key] = told[-1], values
        strategy.tell(told[-1])
    # The best are trained again, and the highest mean wins.
    best: dict[str, np.ndarray] = {}
    for individual in strategy.ranked(told):
        key = individual.genome.canonical_key()
        best.setdefault(key, known[key][1])
        if len(best) == config.retrain_best:
            break
    fresh = [
        (values[1:] + landscape.seed_noise(rng, config.retrain_seeds))[way.epochs - 1]
        for values in best.values()
    ]
    return float(list(best.values())[int(np.argmax(fresh))][0])


def race(curve: np.ndarray, rival: Rival | None) -> Rival:
    """The training whose speed after each epoch is `curve`, until it falls behind its rival."""
    means = -np.log(curve.clip(1e-9))
    losses = np.diff(means * np.arange(1, len(means) + 1), prepend=0.0).tolist()
    for epochs in range(1, len(losses)):
        if rival is not None and rival.is_ahead(losses[:epochs], MARGIN):
            return Rival(tuple(losses[:epochs]), rival.foretell(losses[:epochs]))
    return Rival(tuple(losses), float(means[-1]))


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
    parser.add_argument("--epochs", type=int, nargs="*", default=[108, 216], help="of a search")
    names = [str(way) for way in WAYS]
    parser.add_argument("--ways", nargs="*", choices=names, default=names)
    return parser.parse_args()


def main() -> None:
    """A row a way to search, a column a budget of epochs."""
    options = parse()
    lines = read(options.trained)
    if options.part is not None:
        lines = [line for line in lines if line["key"]["genome"] % 2 == options.part]
    known = {line["key"]["training"] for line in lines}
    ways = [way for way in WAYS if way.training in known and str(way) in options.ways]
    if not ways:
        raise SystemExit(f"{options.trained} has none of the trainings of these ways")
    kinds = dict.fromkeys((way.fitness, way.training) for way in ways)
    landscapes = {kind: Landscape.fit(lines, *kind) for kind in kinds}
    for kind, landscape in landscapes.items():
        print(f"{', '.join(kind)}: {describe(landscape)}")
    print(
        f"\n| strategy, fitness, training | {' | '.join(f'{n} epochs' for n in options.epochs)} |"
    )
    print("|---|" + "---|" * len(options.epochs))
    first, last = options.epochs[0], options.epochs[-1]
    found: dict[tuple[Way, int], np.ndarray] = {}
    for way in ways:
        for budget in options.epochs:
            runs = range(options.repetitions)
            values = [
                search(landscapes[way.fitness, way.training], way, seed, budget) for seed in runs
            ]
            found[way, budget] = np.array(values)
        cells = [
            f"{found[way, n].mean():.2f} ± {found[way, n].std(ddof=1):.2f} "
            f"({compare(found[way, n], found[ways[0], last])})"
            for n in options.epochs
        ]
        print(f"| {way} | {' | '.join(cells)} |", flush=True)
    print(f"\nIn brackets: how likely it is better than {ways[0]} by {last} epochs in all, and p.")
    ours = max(ways, key=lambda way: found[way, first].mean())
    against = "; ".join(
        f"{way} {compare(found[ours, first], found[way, last])}" for way in ways if way != ours
    )
    print(f"{ours} by {first} against others by {last}: {against}.")


def describe(landscape: Landscape) -> str:
    """How well the forest foretells, and what of a fitness is the genome's, after each epoch."""
    rng = np.random.default_rng(0)
    random = landscape.values([random_genome(rng, 2, 6) for _ in range(1000)])
    noise = (landscape.noise**2).sum(1)
    shares = random[:, 1:].var(0) / (random[:, 1:].var(0) + noise)
    truths = np.corrcoef(random.T)[0, 1:]
    return (
        f"the forest orders unseen genomes with tau {landscape.taus[0]:.2f} (truth) and "
        f"{_listed(landscape.taus[1:])} (fitness after each epoch); a fitness is the genome's by "
        f"{_listed(shares)} and has r = {_listed(truths)} with the truth without noise; random "
        f"genomes' truth has a spread of {random[:, 0].std():.2f}"
    )


def _listed(values: Any) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


if __name__ == "__main__":
    main()
