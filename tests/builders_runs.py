"""Runs on the disk without a search: a hand-worked table of individuals, and a result."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import zlib
from typing import Any

from jaxevo.config import EvolutionConfig, SearchConfig, replace
from jaxevo.run.reader import Run, load_run
from jaxevo.run.result import Result
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import make_strategy

NODE = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
GENOME = Genome(Cell((NODE,)), Cell((NODE, NODE)))
SMALL = SearchConfig(
    evolution=EvolutionConfig(population_size=2, num_offspring=2, num_generations=2)
)
TRAINED = {"compile": 1.0, "train": 2.0, "evaluate": 0.5}
# id, generation, parents, operators, fitness, reused. After generation 1 the best two of 3 (0.7), 2
# (0.6), 4 (0.6) and 0 (0.5) are 3 and 2; generation 2 lacks its second offspring.
TABLE = (
    (0, 0, (), "random", 0.5, None),
    (1, 0, (), "random", None, None),
    (2, 0, (), "random", 0.6, None),
    (3, 1, (2, 0), "crossover op_mutation", 0.7, None),
    (4, 1, (3, 2), "crossover", 0.6, 2),
    (5, 2, (3, 2), "crossover op_mutation", 0.65, None),
)
RESULT = {  # the content of result.json
    "id": 2,
    "dataset": "digits",
    "search_fitness": 0.6,
    "retrained_fitness": 0.62,
    "validation_accuracy": 0.6,
    "test_accuracy": 0.55,
    "test_interval": [0.5, 0.6],
    "test_images": 100,
    "parameters": 10,
    "multiply_adds": 20,
    "candidates": 7,
    "trainings": 9,
    "memo_hits": 1,
    "failures": 1,
    "seconds": {"final": 9.5},
    "session_seconds": {"train": 9.0},
    "earlier_tests": [],
    "generation": 0,
    "first_id": 2,
    "first_fitness": 0.62,
    "baseline": None,
    "no_baseline": "",
    "kept": [],
    "test_repeated": 0,
    "final_losses": [0.5, 0.25],
    "final_accuracies": [0.55, 0.6],
}


def individual_record(individual: Individual, reused: int | None = None) -> dict[str, Any]:
    """The line of an individual; without a fitness it has failed."""
    return {
        "kind": "individual",
        **individual.to_dict(),
        "parameters": 10,
        "multiply_adds": 20,
        "reused": reused,
        "failure": "diverged" if individual.fitness is None else None,
        "seconds": {} if reused is not None else TRAINED,
    }


LAST = Individual(6, GENOME, 2, (3, 2), ("crossover",), 0.1)  # completes generation 2


def table_records() -> list[dict[str, Any]]:
    """The lines of the table."""
    return [
        individual_record(
            Individual(new_id, GENOME, generation, parents, tuple(names.split()), fitness), reused
        )
        for new_id, generation, parents, names, fitness, reused in TABLE
    ]


def retraining(known: int, seed: int, fitness: float) -> dict[str, Any]:
    """The line of a retraining."""
    line = {"kind": "retraining", "id": known, "seed": seed, "fitness": fitness}
    return line | {"failure": None, "seconds": TRAINED}


def write_run(
    path: pathlib.Path, records: list[dict[str, Any]], config: SearchConfig = SMALL, tail: str = ""
) -> Workdir:
    """A run of these lines, and of `tail` after the last."""
    path.mkdir(exist_ok=True)
    workdir = Workdir(path)
    workdir.open(config, {"preset": "quick", "device": "a device"})
    workdir.history.write_text("".join(json.dumps(record) + "\n" for record in records) + tail)
    return workdir


def hash_run(path: pathlib.Path, number: int = 10**6, **settings: Any) -> Run:
    """The first `number` candidates of a search with a fitness by hash; one in eleven fails."""
    small = {"population_size": 4, "num_offspring": 4, "num_generations": 15, "num_ants": 5}
    small |= {"stagnation_start": 3, "stagnation_patience": 2}
    config = replace(SearchConfig(), small | settings)
    strategy = make_strategy(config)
    records: list[dict[str, Any]] = []
    while (candidates := strategy.ask()) and len(records) < number:
        value = zlib.crc32(candidates[0].genome.canonical_key().encode())
        fitness = None if value % 11 == 0 else 0.9 + value % 97 / 1000
        parameters = 8000 * candidates[0].genome.normal.num_nodes + value % 1000
        cost = config.cost(parameters, 20)
        told = dataclasses.replace(candidates[0], fitness=fitness, cost=cost)
        strategy.tell(told)
        records.append(individual_record(told) | {"parameters": parameters})
    return load_run(write_run(path, records, config))


def make_result(path: pathlib.Path, genome: Genome = GENOME, **changes: Any) -> Result:
    """The result `RESULT` of a run in this folder, with changes."""
    fields: dict[str, Any] = RESULT | {"path": path, "genome": genome}
    tuples = {name: tuple(value) for name, value in RESULT.items() if isinstance(value, list)}
    return Result(**fields | tuples | changes)
