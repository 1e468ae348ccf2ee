"""What tests of runs are made of: a small configuration, a table for training, and the phases.

`builders_runs.py` has records and whole runs' folders, `builders_data.py` files of data sets.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jaxevo.config import FRONT_KINDS, SearchConfig, replace
from jaxevo.run.changes import settle_changes
from jaxevo.run.choose import rank_best
from jaxevo.run.explore import Explorer
from jaxevo.run.ledger import Ledger
from jaxevo.run.reporter import Silent
from jaxevo.run.trial import Rival, Trial
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.seeds import Seed
from jaxevo.strategies.individual import Individual

SMALL: SearchConfig = replace(
    SearchConfig(),
    {
        "population_size": 4,
        "num_offspring": 4,
        "num_generations": 6,
        "max_nodes": 3,
        "stagnation_start": 2,
        "stagnation_patience": 2,
        "channels": 2,
        "num_normal_cells": 1,
        "batch_size": 32,
        "final_epochs": 2,
        "final_batch_size": 32,
        "final_learning_rate": 0.01,
        "engine": "universal",
        "retrain_best": 2,
        "retrain_seeds": 2,
    },
)
ABOUT = {"preset": "none", "device": "test"}  # what `config.json` says beside the configuration
LABELS = np.arange(100) % 10  # of validation images; each class has a tenth of them


@dataclasses.dataclass(frozen=True)
class Outcome:
    """As `evaluator.Evaluation`, which would bring JAX into a worker."""

    accuracy: float | None
    failure: str | None = None
    details: str | None = None
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    cross_entropy: float | None = None
    loss: float | None = None
    losses: tuple[float, ...] = ()
    place: None = None

    def fitness(self, kind: str) -> float | None:
        """The accuracy."""
        return self.accuracy


def table_fitness(genome: Genome, seed: Seed) -> float:
    """As if trained: decided by genome and seed, between 0 and 1; every eighth fails."""
    digest = hashlib.sha256(f"{genome.canonical_key()} {seed}".encode()).digest()
    return np.nan if digest[0] < 32 else digest[1] / 256


def table_outcome(genome: Genome, seed: Seed) -> Outcome:
    """What the table gives for a training, which takes a second by its word."""
    fitness = table_fitness(genome, seed)
    if np.isnan(fitness):
        return Outcome(None, "by the table")
    return Outcome(float(fitness), seconds={"train": 1.0})


def race_outcome(genome: Genome, seed: Seed, rival: Rival | None) -> Outcome:
    """What the table gives for a training of four epochs that may end early, by a margin of 0.05.

    The accuracy is the speed of learning.
    """
    digest = hashlib.sha256(f"{genome.canonical_key()} {seed}".encode()).digest()
    losses: tuple[float, ...] = ()
    for epoch in range(4):
        losses += ((1 + digest[0] / 256 + digest[epoch + 1] / 2560) / (epoch + 1),)
        if rival is not None and epoch < 3 and rival.is_ahead(losses, 0.05):
            loss = rival.foretell(losses)
            break
    else:
        loss = float(np.mean(losses))
    return Outcome(float(np.exp(-loss)), loss=loss, losses=losses)


STRATEGIES = ("rea", "aging", "random", "aco", "guided", "nsga2", "guided_front")


def config_of(strategy: str, **settings: object) -> SearchConfig:
    genes = {"min_channels": 1} if strategy in FRONT_KINDS else {}
    return replace(SMALL, {"strategy": strategy, "num_ants": 6} | genes | settings)


class Table:
    """Evaluates by the table in place of training.

    Args:
        limit: Interrupts like a signal after so many trainings.
        racing: Whether trainings are a race.
    """

    def __init__(self, limit: int | None = None, *, racing: bool = False):
        self.limit = limit
        self.racing = racing
        self.count = 0
        self.trials: list[list[Seed]] = []  # the seeds that each call named

    def __call__(self, trials: Sequence[Trial]) -> Any:
        """The result of the first trial."""
        if self.count == self.limit:
            raise KeyboardInterrupt
        self.count += 1
        self.trials.append([trial.seed for trial in trials])
        genome, seed, rival = trials[0]
        return race_outcome(genome, seed, rival) if self.racing else table_outcome(genome, seed)


class Forgetful:
    """Checkpoints that keep nothing."""

    def load_newest(self, message: Callable[[str], None]) -> None:
        """There is none."""

    def save(self, step: int, state: dict[str, Any]) -> None:
        """Does nothing."""


def no_complexity(genome: Genome) -> Complexity:
    """In place of arithmetic over a network, which constant costs are not measured on."""
    return Complexity(1, 1)


def open_ledger(path: pathlib.Path, config: SearchConfig = SMALL) -> Ledger:
    """The ledger of a run in this folder, which is made if it is not there.

    Changes that `change_run` has made are settled.
    """
    path.mkdir(exist_ok=True)
    workdir = Workdir(path)
    document = workdir.open(config, ABOUT)
    ledger = Ledger.open(workdir, config)
    settle_changes(workdir, ledger, workdir.changes(document))
    return ledger


def make_explorer(
    path: pathlib.Path,
    config: SearchConfig = SMALL,
    *,
    evaluate: Callable[..., Any] | None = None,
    **fields: Any,
) -> Explorer:
    """The first phase of a run in this folder, with its own checkpoints; by default by a table."""
    from jaxevo.training.checkpoints import Checkpoints  # brings JAX

    defaults: dict[str, Any] = {
        "config": config,
        "ledger": fields.pop("ledger", None) or open_ledger(path, config),
        "checkpoints": Checkpoints(Workdir(path).checkpoints),
        "complexity": no_complexity,
        "evaluate": evaluate or Table(),
        "labels": LABELS,
        "reporter": Silent(),
    }
    return Explorer(**(defaults | fields))


def explore_and_choose(
    path: pathlib.Path,
    config: SearchConfig = SMALL,
    *,
    evaluate: Callable[..., Any] | None = None,
    **fields: Any,
) -> Individual:
    """The first two phases of a run in this folder; the winner."""
    explorer = make_explorer(path, config, evaluate=evaluate, **fields)
    ranked = explorer.run().ranked
    evaluate, reporter = explorer.evaluate, explorer.reporter
    return rank_best(config, explorer.ledger, evaluate, ranked=ranked, reporter=reporter)[0]


def history_of(path: pathlib.Path, kind: str | None = None) -> list[dict[str, Any]]:
    """The lines of a run's history, or of one kind, without what equal runs differ in."""
    lines = [json.loads(line) for line in Workdir(path).history.read_text().splitlines()]
    kept = [line for line in lines if kind in (None, line["kind"])]
    differing = {"seconds", "where", "attempt", "lost"}
    return [{k: value for k, value in line.items() if k not in differing} for line in kept]


def damage_checkpoints(path: pathlib.Path) -> None:
    """Leaves no checkpoint of the search that can be read."""
    damaged = [
        file for step in Workdir(path).checkpoints.iterdir() for file in step.rglob("data.json")
    ]
    assert damaged
    for file in damaged:
        file.write_text("{")


def chain(number: int, op: Op = Op.CONV_3X3) -> Genome:
    """A genome of two like cells of so many nodes, each of which reads the one before."""
    nodes = tuple(Node((k, k + 1), (op, Op.IDENTITY)) for k in range(number))
    return Genome(Cell(nodes), Cell(nodes))
