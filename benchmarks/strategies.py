"""Strategies on a landscape with a known best: python benchmarks/strategies.py

The fitness of a genome is the share of a random target's inputs and operations that it has, plus noise where asked for;
what counts is the true fitness of what a strategy holds for the best in the end. No network is trained.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from jaxevo.config import SearchConfig, replace
from jaxevo.genome import Cell, Genome
from jaxevo.strategies import make_strategy
from jaxevo.variation import CELLS, random_cell

SEEDS = range(20)
STRATEGIES: dict[str, dict[str, Any]] = {
    "random": {"strategy": "random"},
    "rea": {},
    "rea, no crossover": {"crossover": False},
    "aging, S=3": {"strategy": "aging", "sample_size": 3},
    "aco": {"strategy": "aco"},
}
# Generations of ten after the first ten candidates, B of the target's cells, standard deviation of the noise.
LANDSCAPES = ((11, (6, 6), 0.0), (11, (6, 6), 0.02), (50, (6, 6), 0.05), (20, (4, 5), 0.0), (50, (4, 5), 0.05))


def matches(genome: Genome, target: Genome) -> float:
    """The share of inputs and operations that are the target's; nodes in excess count as misses."""
    hits, asked = 0, 0
    for name in CELLS:
        cell: Cell = getattr(genome, name)
        wanted: Cell = getattr(target, name)
        asked += 4 * max(cell.num_nodes, wanted.num_nodes)
        for a, b in zip(cell.nodes, wanted.nodes, strict=False):  # states 0 and 1 are the same
            hits += sum(max(i, 1) == max(j, 1) for i, j in zip(a.inputs, b.inputs, strict=True))
            hits += sum(op == other for op, other in zip(a.ops, b.ops, strict=True))
    return hits / asked


def found(settings: dict[str, Any], seed: int, sizes: tuple[int, int], noise: float) -> float:
    """The true fitness of what a strategy holds for the best."""
    rng = np.random.default_rng([1, seed])
    target = Genome(random_cell(rng, sizes[0]), random_cell(rng, sizes[1]))
    strategy = make_strategy(replace(SearchConfig(), settings | {"seed": seed}))
    while candidates := strategy.ask():
        for candidate in candidates:
            error = noise * np.random.default_rng([2, seed, candidate.id]).normal() if noise else 0.0
            fitness = max(0.0, matches(candidate.genome, target) + error)
            strategy.tell(dataclasses.replace(candidate, fitness=fitness))
    assert strategy.best is not None
    return matches(strategy.best.genome, target)


def main() -> None:
    """A row a landscape: means over the seeds, with the p-value of a one-sided Wilcoxon test against random search."""
    print(f"| candidates | target's B | noise | {' | '.join(STRATEGIES)} |\n{'|---' * (3 + len(STRATEGIES))}|")
    for generations, sizes, noise in LANDSCAPES:
        cells, baseline = [], np.zeros(0)
        for name, settings in STRATEGIES.items():
            scores = np.array([found({"num_generations": generations} | settings, s, sizes, noise) for s in SEEDS])
            if name == "random":
                baseline = scores
                cells.append(f"{scores.mean():.3f}")
            else:
                _, p = wilcoxon(scores - baseline, alternative="greater")
                cells.append(f"{scores.mean():.3f} (p = {p:.1g})")
        print(f"| {10 + 10 * generations} | {sizes[0]}, {sizes[1]} | {noise} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
