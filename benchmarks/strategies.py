"""Strategies on a landscape with a known best: python benchmarks/strategies.py

The fitness of a genome is the share of a random target's inputs and operations that it has, plus
noise where asked for; what counts is the true fitness of what a strategy holds for the best in the
end. No network is trained. The tests use the same landscape.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.stats import wilcoxon

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import STRATEGIES
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.strategies.registry import make_strategy

SEEDS = range(20)
# Stagnation is looked for from generation 50 on, which is the last: without avoidance it is the
# same.
COMPARED = [name for name in STRATEGIES if name not in ("random", "rea_no_avoidance")]
# Candidates, B of the target's cells, standard deviation of the noise.
LANDSCAPES = (
    (120, (6, 6), 0.0),
    (120, (6, 6), 0.02),
    (510, (6, 6), 0.05),
    (210, (4, 5), 0.0),
    (510, (4, 5), 0.05),
)


def matches(genome: Genome, target: Genome) -> float:
    """The share of inputs and operations that are the target's; nodes in excess count as misses."""
    hits, asked = 0, 0
    for cell, wanted in zip(genome.cells, target.cells, strict=True):
        asked += 4 * max(cell.num_nodes, wanted.num_nodes)
        for a, b in zip(cell.nodes, wanted.nodes, strict=False):  # states 0 and 1 are the same
            hits += sum(max(i, 1) == max(j, 1) for i, j in zip(a.inputs, b.inputs, strict=True))
            hits += sum(op == other for op, other in zip(a.ops, b.ops, strict=True))
    return hits / asked


def found(name: str, seed: int, candidates: int, sizes: tuple[int, int], noise: float) -> float:
    """The true fitness of what a strategy holds for the best."""
    rng = np.random.default_rng([1, seed])
    target = Genome(random_cell(rng, sizes[0]), random_cell(rng, sizes[1]))
    config = replace(SearchConfig(), STRATEGIES[name] | {"seed": seed})
    evolution = config.evolution
    generations = (candidates - evolution.population_size) // evolution.num_offspring
    strategy = make_strategy(replace(config, {"num_generations": generations}))
    while asked := strategy.ask():
        for candidate in asked:
            error = (
                noise * np.random.default_rng([2, seed, candidate.id]).normal() if noise else 0.0
            )
            fitness = max(0.0, matches(candidate.genome, target) + error)
            strategy.tell(dataclasses.replace(candidate, fitness=fitness))
    assert strategy.best is not None
    return matches(strategy.best.genome, target)


def main() -> None:
    """A row a landscape: means over the seeds, with the p-value of a one-sided Wilcoxon test
    against random search.
    """
    print(
        f"| candidates | target's B | noise | random | {' | '.join(COMPARED)} "
        f"|\n{'|---' * (4 + len(COMPARED))}|"
    )
    not_better = []
    for landscape in LANDSCAPES:
        candidates, sizes, noise = landscape
        baseline = np.array([found("random", seed, *landscape) for seed in SEEDS])
        cells = [f"{baseline.mean():.3f}"]
        for name in COMPARED:
            scores = np.array([found(name, seed, *landscape) for seed in SEEDS])
            _, p = map(float, wilcoxon(scores - baseline, alternative="greater"))
            cells.append(f"{scores.mean():.3f} (p = {p:.1g})")
            if p >= 0.05:
                not_better.append(
                    f"{name} ({candidates} candidates, B {sizes[0]}, {sizes[1]}, noise {noise})"
                )
        print(
            f"| {candidates} | {sizes[0]}, {sizes[1]} | {noise} | {' | '.join(cells)} |", flush=True
        )
    print(f"\nNot better than random (p >= 0.05): {'; '.join(not_better)}")


if __name__ == "__main__":
    main()
