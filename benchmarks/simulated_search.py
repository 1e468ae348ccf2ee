"""Searches without trainings, for `scaleout.py`: the real strategy, first phase and history.

A genome's fitness is the share of a random target that it has, and noise (`strategies.py`).
"""

from __future__ import annotations

import dataclasses
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from strategies import matches

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import STRATEGIES
from jaxevo.run.evaluator import Evaluation
from jaxevo.run.explore import Explorer
from jaxevo.run.ledger import Ledger
from jaxevo.run.reporter import Silent
from jaxevo.run.trial import Trial
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.seeds import Seed
from jaxevo.training.checkpoints import Checkpoints

NOISE = 0.05  # of a fitness, standard deviation
TARGET_SIZE = 6  # B of its cells
LABELS = np.repeat(np.arange(10), 50)
BARRIER = 0  # in place of L: parents are those of earlier generations, F=10


@dataclasses.dataclass
class Landscape:
    """The fitness of genomes: the share of a random target that they have, and noise."""

    seed: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng([1, self.seed])
        self.target = Genome(random_cell(rng, TARGET_SIZE), random_cell(rng, TARGET_SIZE))

    def truth(self, genome: Genome) -> float:
        """The share without noise."""
        return matches(genome, self.target)

    def fitness(self, genome: Genome, seed: Seed) -> float:
        """What a training with this seed gives."""
        noise = NOISE * np.random.default_rng([2, self.seed, seed[-1]]).normal()
        return float(np.clip(self.truth(genome) + noise, 0.0, 1.0))


class Forgetful(Checkpoints):
    """Keeps no checkpoints, where a search is simulated to its end."""

    def save(self, *_: Any, **__: Any) -> None:
        """Does nothing."""


def settings_of(strategy: str, seed: int, lag: int) -> SearchConfig:
    """A search of this lag, without an end of its own."""
    pool = {"mating_pool": "survivors"} if lag == BARRIER else {"lag": lag}
    settings = STRATEGIES[strategy] | pool | {"seed": seed, "num_generations": 10**6}
    return replace(SearchConfig(), settings)


def explore(
    config: SearchConfig,
    evaluate: Callable[[Sequence[Trial]], Evaluation],
    kind: type[Explorer] = Explorer,
    **fields: Any,
) -> Explorer:
    """Carries out the first phase of a run in a folder that is removed after it."""
    with tempfile.TemporaryDirectory() as name:
        workdir = Workdir(pathlib.Path(name))
        workdir.open(config, {"preset": "none", "device": "simulated"})
        defaults: dict[str, Any] = {
            "config": config,
            "ledger": Ledger.open(workdir, config),
            "checkpoints": Forgetful(workdir.checkpoints),
            "complexity": lambda genome: Complexity(0, 0),
            "evaluate": evaluate,
            "labels": LABELS,
            "reporter": Silent(),
        }
        if "checkpoints" in fields:
            fields["checkpoints"] = fields["checkpoints"](workdir.checkpoints)
        explorer = kind(**(defaults | fields))
        explorer.run()
        return explorer
