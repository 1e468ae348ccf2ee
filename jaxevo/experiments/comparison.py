"""A comparison of strategies: a search of each for each seed.

All searches have the same number of trainings.
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from jaxevo.config import SearchConfig, WorkerConfig, flatten, replace
from jaxevo.console import say
from jaxevo.errors import InputError
from jaxevo.experiments.parts import (
    HERE,
    PartFailedError,
    Workplace,
    make_parts,
    making,
    shared_place,
)
from jaxevo.files import write_csv, write_json, write_text
from jaxevo.reports import cell_pictures, charts
from jaxevo.reports import comparison as tables
from jaxevo.reports.comparison import Failure, FinishedRun
from jaxevo.reports.page import Picture, render_tables
from jaxevo.run.claim import check_no_search
from jaxevo.run.explore import SearchFailedError
from jaxevo.run.pool import Function, Job
from jaxevo.run.prepare import load_task
from jaxevo.run.progress import RunReporter
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.search import Task, run_search
from jaxevo.run.workdir import Workdir
from jaxevo.training.fit import DivergedError

# Most candidates for each training, in case nearly all are isomorphic to earlier ones.
CANDIDATES = 20


# Settings that a comparison decides itself.
_OWN = ("max_trainings", "num_generations", "compare_winner")


def check_alike(configs: Mapping[str, SearchConfig], fresh: Mapping[str, SearchConfig]) -> None:
    """Raises `InputError` unless searches differ only in what their strategies decide.

    A search that was begun goes on with its settings, and one that is new has those of the call.

    Args:
        configs: The configurations by strategy.
        fresh: The same if no search had been begun.
    """
    settings = {name: flatten(config) for name, config in configs.items()}
    own = [flatten(config) for config in fresh.values()]
    for field in (name for name in own[0] if name not in _OWN):
        alike = all(each[field] == own[0][field] for each in own)
        values = [each[field] for each in settings.values()]
        if alike and any(value != values[0] for value in values):
            listed = ", ".join(f"{name} {each[field]}" for name, each in settings.items())
            raise InputError(
                f"{field} would differ between the searches ({listed}), some of which were begun "
                f"before: give --{field} as then, or another --workdir"
            )


def search_folder(path: pathlib.Path, strategy: str, seed: int) -> pathlib.Path:
    """The folder of a search in that of its comparison."""
    return path / f"{strategy}-seed{seed}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A comparison to carry out: strategies, seeds, budget and folder.

    Attributes:
        configs: The configuration of each strategy, by its name, in the order of the tables.
        preset: The name of the settings they began with, for the record.
        seeds: Searches of each strategy, with seeds from 0.
        trainings: Of candidates in each search.
        path: Folder of the searches, tables and plots.
        data_dir: Folder with published files.
    """

    configs: Mapping[str, SearchConfig]
    preset: str
    seeds: int
    trainings: int
    path: pathlib.Path
    data_dir: str | None = None

    def searches(self) -> list[tuple[str, SearchConfig]]:
        """The configurations of all searches, those of a seed together."""
        budget = {"max_trainings": self.trainings, "num_generations": CANDIDATES * self.trainings}
        budget |= {"compare_winner": False}  # with the other strategies' winners instead
        return [
            (name, replace(config, budget | {"seed": seed}))
            for seed in range(self.seeds)
            for name, config in self.configs.items()
        ]

    def check_begun(self) -> None:
        """Raises `InputError` where the folder is a search's, or its searches have another length.

        Also raises `FileError` where one of them is damaged.
        """
        check_no_search(self.path)
        for name, config in self.searches():
            workdir = Workdir(self.folder(name, config.seed))
            if not workdir.config.exists():
                continue
            length = workdir.settings(workdir.read_config())["max_trainings"]
            if length != self.trainings:
                remedy = f"give --evaluations={length}, or another" if length else "give another"
                raise InputError(
                    f"{workdir.path} holds a search of {length or 'any number of'} trainings, not "
                    f"of {self.trainings}: {remedy} --workdir"
                )

    def folder(self, name: str, seed: int) -> pathlib.Path:
        """The folder of a strategy's search."""
        return search_folder(self.path, name, seed)

    def task(self, name: str, config: SearchConfig) -> Task:
        """A search of this comparison, with its images. Raises `InputError`."""
        return load_task(
            config,
            config.data.dataset,
            self.folder(name, config.seed),
            preset=self.preset,
            data_dir=self.data_dir,
            part=True,
        )


@dataclasses.dataclass(frozen=True)
class SearchSetup:
    """Makes searches of a comparison in a worker."""

    comparison: Comparison
    place: Workplace

    def build(self) -> Function:
        """From a strategy's name and the search's configuration to nothing but the folder."""
        return making(self.place, self.search)

    def search(self, name: str, config: SearchConfig) -> None:
        """Carries a search to its end. Raises like `run_search`."""
        run_search(self.comparison.task(name, config), Silent())


def make_searches(comparison: Comparison, limits: WorkerConfig, console: Console) -> dict[Any, str]:
    """Has a pool carry all searches to their ends; returns why some failed, by their folders.

    Raises like `make_parts`.
    """

    with shared_place(comparison.path, limits) as place:
        setup = SearchSetup(comparison, place)
        jobs = []
        for name, config in comparison.searches():
            path = comparison.folder(name, config.seed)
            if not Workdir(path).result.exists():
                jobs.append(Job(str(path), setup, (name, config)))
        return make_parts(jobs, limits, say=functools.partial(say, console))


def run_comparison(
    comparison: Comparison, console: Console, limits: WorkerConfig = HERE
) -> tuple[list[FinishedRun], list[Failure]]:
    """Carries one search after the other to its end, or by `limits` several at a time.

    A search whose trainings fail does not keep the others from theirs; one that is damaged, or was
    begun with other settings, ends the comparison with an `InputError`.
    """
    outcomes: list[FinishedRun] = []
    failures: list[Failure] = []
    searches = comparison.searches()
    # A pool makes what is missing, and then all is read like what was there before.
    failed = make_searches(comparison, limits, console) if limits.apart else {}
    # Each search has a folder of its own, where it is resumed.
    for number, (name, config) in enumerate(searches, 1):
        path = comparison.folder(name, config.seed)
        reporter = RunReporter(config, console)
        reporter.message(f"search {number} of {len(searches)}: {path}")
        try:
            if str(path) in failed:
                raise PartFailedError(failed[str(path)])
            task = comparison.task(name, config)
            with reporter.live():
                run_search(task, reporter)
            outcomes.append(tables.outcome(name, load_run(Workdir(path))))
        except (SearchFailedError, DivergedError, PartFailedError) as error:
            reporter.message(f"failed: {path}: {error}")
            failures.append(Failure(name, config.seed, f"{path}: {error}"))
    if not outcomes:
        raise InputError(f"every search failed; the last, {failures[-1].reason}")
    # Order by strategy as configured, then by seed.
    order = {name: k for k, name in enumerate(comparison.configs)}
    return sorted(outcomes, key=lambda each: (order[each.strategy], each.seed)), failures


def write_comparison(
    comparison: Comparison, outcomes: Sequence[FinishedRun], failures: Sequence[Failure]
) -> str:
    """Writes tables and plots; returns the tables as Markdown."""
    searches = comparison.searches()
    path = comparison.path
    dataset = searches[0][1].data.dataset
    caption = (
        f"Strategies on {dataset}: {comparison.trainings} trainings a search, preset "
        f"{comparison.preset}. Mean ± standard deviation over seeds, which all have the same test "
        "images; test accuracy is that of the winner after the final training."
    )
    settings = {name: flatten(config) for name, config in searches if config.seed == 0}
    # The tables: Markdown, CSV and JSON.
    text = tables.markdown(outcomes, caption, failures)
    write_text(path / "comparison.md", text)
    write_csv(path / "comparison.csv", tables.table_rows(outcomes))
    write_json(path / "comparison.json", tables.document(outcomes, settings, failures))
    # The plots: best accuracy by trainings, and test error by parameters.
    seeds = f"{'up to ' * bool(failures)}{comparison.seeds} seeds"  # failed ones are left out
    over = f"mean of {seeds} and from the worst to the best" if comparison.seeds > 1 else "one seed"
    curves = charts.best_so_far(tables.curves(outcomes), f"{dataset}, {over}")
    cell_pictures.save(curves, path / "best_so_far")
    points = [charts.Point(each.strategy, each.parameters, each.test) for each in outcomes]
    sizes = charts.parameters_against_error([*points, *charts.PAPER.get(dataset, ())])
    cell_pictures.save(sizes, path / "parameters")
    # The same on one page for a browser.
    pictures = [
        Picture.of(figure, caption, tables.described(outcomes, measure))
        for figure, caption, measure in (
            (curves, "Best validation accuracy so far, by trainings.", "validation"),
            (sizes, "Test error and parameters of the winners.", "test"),
        )
    ]
    page = render_tables(
        f"Comparison of {', '.join(comparison.configs)}",
        caption,
        tables.tables(outcomes, failures),
        remarks=tables.remarks(outcomes, failures),
        pictures=pictures,
    )
    write_text(path / "report.html", page)
    return text
