"""One of the paper's tables: its parts by this process or by a pool, then row by row.

A part is the search of a genome on MNIST, or a training of one model on one data set with one seed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console

from jaxevo.config import WorkerConfig
from jaxevo.experiments.parts import HERE, Workplace, make_parts, making, shared_place
from jaxevo.experiments.reproduction import Reproduction, TablePlan, search_name, training_name
from jaxevo.experiments.table_rows import table_rows, write_table
from jaxevo.networks.baselines import Architecture
from jaxevo.reports import paper_tables
from jaxevo.reports.paper_tables import LABELS, SEARCHED, DataPair
from jaxevo.run.pool import Function, Job, Key
from jaxevo.run.workdir import Workdir
from jaxevo.training.fit import DivergedError


def reproduce(plan: TablePlan, console: Console, limits: WorkerConfig = HERE) -> None:
    """Makes the table, row by row, and writes it after each; called again, it goes on.

    With `limits` of a pool, that makes all missing parts before the first row.

    Raises `InputError` where data or folder cannot be used.
    """
    with Workdir(plan.path).locked():
        made = Reproduction(plan, console)
        models = [name for name in LABELS if name in plan.models] or list(made.table.models)
        if limits.apart:
            make_missing(made, models, limits)
        parts = [(model, task) for task in made.table.tasks for model in models]
        rows = [
            [paper_tables.published_row(model, task) | {"note": "still to be made"}]
            for model, task in parts
        ]
        for number, (model, task) in enumerate(parts):
            made.say(f"{LABELS[model]}, trained on {task.trained_on}, tested on {task.tested_on}")
            # Make the rows of this model, and write the table as far as it is made.
            rows[number] = table_rows(made, model, task)
            for row in rows[number]:
                made.say(f"  {paper_tables.sentence(row)}")
            write_table(made, [row for part in rows for row in part])
        made.say(f"written: {plan.path}/{plan.table}.md, .html, .csv and .json")


class Training(NamedTuple):
    """A training of a table that is missing."""

    model: str
    task: DataPair
    seed: int


@dataclasses.dataclass(frozen=True)
class PartSetup:
    """Makes parts of a table in a worker, which loads the table's images with its first one."""

    plan: TablePlan
    place: Workplace

    def build(self) -> Function:
        """From a search's model to its genome, or from a training and its model to its folder."""
        quiet = Console(quiet=True, force_terminal=False)
        reproduction = functools.cache(lambda: Reproduction(self.plan, quiet))

        def make(part: str | Training, model: Architecture | None = None) -> Architecture | None:
            made = reproduction()
            if isinstance(part, str):
                return made.search(part)
            assert model is not None, "a training comes with its model"
            folder = made.folder(part.model, part.task)
            if failure := made.fit_seed(folder, model, part.task, seed=part.seed):
                raise DivergedError(failure)

        return making(self.place, make)


def make_missing(made: Reproduction, models: list[str], limits: WorkerConfig) -> None:
    """Has a pool make the parts of these models that are missing; `made.failed` names failures.

    Searches come first, as trainings wait for them, and then the longest trainings.

    Raises like `make_parts`.
    """
    # Models that are searched, by the names of their searches, and the others.
    unfinished = [model for model in models if any(missing(made, model))]
    searches: dict[Key, str] = {search_name(each): each for each in unfinished if each in SEARCHED}
    known = [each for each in unfinished if each not in SEARCHED]
    with shared_place(made.path, limits) as place:
        setup = PartSetup(made.plan, place)

        def followers(key: Key, found: Any) -> list[Job]:
            """The trainings of the genome that a search has found."""
            model = searches.get(key)
            return [job for _, job in trainings(made, model, found, setup=setup)] if model else []

        jobs = [Job(name, setup, (model,)) for name, model in searches.items()]
        lengths = [
            each
            for model in known
            for each in trainings(made, model, made.architecture(model), setup=setup)
        ]
        jobs += [job for _, job in sorted(lengths, key=lambda each: each[0], reverse=True)]
        made.failed = make_parts(jobs, limits, say=made.say, followers=followers)


def trainings(
    made: Reproduction, model: str, architecture: Architecture, *, setup: PartSetup
) -> Iterator[tuple[int, Job]]:
    """Jobs of a model's missing trainings, with the multiply-adds that an epoch of each takes.

    Claims their folders; raises `InputError` for one that holds other trainings.
    """
    for training in missing(made, model):
        folder = made.folder(model, training.task)
        made.claim(folder, architecture, training.task)
        size = made.builder(training.task).complexity(architecture)
        images = made.budget.train_examples or len(made.train[training.task.trained_on].images)
        job = Job(training_name(folder, training.seed), setup, (training, architecture))
        yield size.multiply_adds * images, job


def missing(made: Reproduction, model: str) -> Iterator[Training]:
    """The trainings of a model that its rows need and that are not there."""
    if model != "deepswarm":  # published only
        for task in made.table.tasks:
            for seed in made.missing(made.folder(model, task)):
                yield Training(model, task, seed)
