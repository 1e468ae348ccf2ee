"""A whole run in its folder, in phases: explore, choose the winner, finish.

The same call resumes an interrupted run. Everything that happened is in the history, so such a run
comes to the same end as an uninterrupted one. A task that `continues` carries a run beyond its end.
The test images are scored only after the last choice. (`prepare` has read a person's own ones
before, to find damaged files early, and kept only their digest.)
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.files import check_weights_place
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.changes import change_run, settle_changes
from jaxevo.run.choose import Choice, best_of_first_generation, rank_best
from jaxevo.run.connect import check_cluster
from jaxevo.run.dispatch import Dispatcher
from jaxevo.run.drawn import check_drawn, within_bounds
from jaxevo.run.estimate import describe_estimate
from jaxevo.run.evaluator import Evaluator, class_weights
from jaxevo.run.explore import Explorer
from jaxevo.run.finish import Finisher
from jaxevo.run.lag import describe_lag
from jaxevo.run.ledger import Ledger
from jaxevo.run.reader import load_run
from jaxevo.run.records import Change
from jaxevo.run.remaining import Remaining
from jaxevo.run.reporter import Reporter
from jaxevo.run.result import Result
from jaxevo.run.sizing import Fitted
from jaxevo.run.workdir import Workdir
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.registry import initial_genomes
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.data import TrainingData
from jaxevo.training.engine_choice import describe_search_engine, device_name, with_engine
from jaxevo.versions import changed_versions


@dataclasses.dataclass(frozen=True)
class Task:
    """A search to carry out: its configuration, folder and data, and a loader of test images."""

    config: SearchConfig
    workdir: Workdir
    data: SearchData
    load_test: Callable[[], Images] | None = None  # None: there are no test images
    preset: str = "none"  # for the record
    data_seconds: float = 0.0  # that loading the data took
    workers: WorkerConfig = WorkerConfig()
    time_limit: float | None = None  # seconds, after which no candidate is begun; None: no limit
    continues: bool = False  # the run in the folder, complete or not, takes this configuration
    part: bool = False  # of a comparison or a table, whose command continues no run
    fitted: Fitted | None = None  # what was chosen of the preset for this machine
    test_digest: str = ""  # of a person's own test images

    def __post_init__(self) -> None:
        self.config.network.check_image(*self.data.image_shape[:2])
        initial_genomes(self.config, within_bounds(self.config, self.builder.complexity))
        self.workers.check(self.config)
        if self.workers.cluster:
            check_cluster(self.workers.cluster)

    @property
    def builder(self) -> NetworkBuilder:
        """Builds the networks for these images."""
        return NetworkBuilder(self.config.network, self.data.image_shape, self.data.num_classes)


def run_search(task: Task, reporter: Reporter) -> Result:
    """Carries a run to its end; called again after an interruption, it goes on.

    Raises:
        InputError: The folder is another run's or in use, or its files are damaged.
        SearchFailedError: Too many candidates in a row failed.
        DivergedError: The final training failed.
        OSError: Something cannot be written; the same call, once it can, goes on from there.
    """
    task = dataclasses.replace(task, config=with_engine(task.config))
    with _opened(task, reporter) as changes:
        # A complete run is only read. A result of before an unsettled change does not count.
        complete = load_run(task.workdir).result if task.workdir.result.exists() else None
        if complete is not None:
            return complete
        # Explore, choose the winner, finish.
        ledger = _open_ledger(task, changes)
        evaluator = make_evaluator(task, reporter.epoch)
        choice = _explore_and_choose(
            task, ledger, evaluator, reporter=reporter, compare=task.config.compare_winner
        )
        finisher = Finisher(
            config=task.config,
            workdir=task.workdir,
            data=task.data,
            load_test=task.load_test,
            evaluator=evaluator,
            ledger=ledger,
            reporter=reporter,
        )
        return finisher.run(choice)


def find_winner(task: Task, reporter: Reporter) -> Individual:
    """Carries a run to the choice of its winner, which is not trained further.

    Raises like `run_search`.
    """
    task = dataclasses.replace(task, config=with_engine(task.config))
    with _opened(task, reporter) as changes:
        ledger = _open_ledger(task, changes)
        evaluator = make_evaluator(task, reporter.epoch)
        choice = _explore_and_choose(task, ledger, evaluator, reporter=reporter, compare=False)
        return choice.winner


def make_evaluator(
    task: Task, on_epoch: Callable[[int, int], None] = lambda done, total: None
) -> Evaluator:
    """Makes the evaluator that trains the candidates of a task in this process.

    `on_epoch` is told the epochs done of the training at hand, and the number of its epochs.
    """
    config = task.config
    weights = class_weights(config, task.data.train.labels, task.data.num_classes)
    data = TrainingData.drawn(
        task.data.train, config.data.train_examples, config.seed, class_weights=weights
    )
    stopwatch = Stopwatch()
    stopwatch.add("data", task.data_seconds)
    return Evaluator(
        config,
        task.builder,
        data,
        validation=task.data.validation,
        stopwatch=stopwatch,
        on_epoch=on_epoch,
    )


def make_remaining(task: Task, stopwatch: Stopwatch, ledger: Ledger | None = None) -> Remaining:
    """Makes what tells how long a task still takes; without a ledger nothing of it is done."""
    num_validation = len(task.data.validation)
    num_test = task.data.summary.num_test if task.data.summary else 0
    return Remaining(
        task.config,
        ledger,
        stopwatch,
        num_train=len(task.data.train),
        scored=(num_validation + num_test) / num_validation,
        workers=task.workers.workers,
        time_limit=task.time_limit,
    )


@contextlib.contextmanager
def _opened(task: Task, reporter: Reporter) -> Iterator[list[Change]]:
    """Makes or checks the folder of the run, and locks it within the block.

    Yields the changes of its settings since it began, of which a task that `continues` makes one.
    """
    # Collect what a new run writes beside its configuration.
    about: dict[str, Any] = {"preset": task.preset, "device": device_name(task.config.engine)}
    about |= {"data": task.data.digest()}
    if task.test_digest:
        about["test"] = task.test_digest
    if task.fitted and task.fitted.settings:
        about["fitted"] = dict(task.fitted.settings)
    if task.data.summary is not None:
        about["summary"] = task.data.summary.describe()
    workdir = task.workdir
    if task.continues or not workdir.result.exists():  # a finished run is only read
        check_weights_place(workdir.path)
    with workdir.locked():
        # A run that is prolonged gets its changes first, since `open` compares with them.
        if task.continues:
            change = change_run(
                workdir,
                task.config,
                about,
                time_limit=task.time_limit,
                check=lambda run: check_drawn(run.config, task.builder.complexity, run.candidates),
            )
            if change is not None:
                reporter.message(change)
        document = workdir.open(task.config, about, can_continue=not task.part)
        # Say where the run goes on under other conditions.
        if changed := changed_versions(document):
            reporter.message(
                f"begun with {'; '.join(changed)}: what follows may differ from an uninterrupted "
                "run"
            )
        if (began := document["config"].get("dataset")) != task.config.data.dataset:
            reporter.message(f"{task.config.data.dataset} has the images of {began}: it goes on")
        yield workdir.changes(document)


def _open_ledger(task: Task, changes: list[Change]) -> Ledger:
    """The ledger of a run, in which its changes of settings are settled."""
    ledger = Ledger.open(task.workdir, task.config)
    settle_changes(task.workdir, ledger, changes)
    return ledger


def _explore_and_choose(
    task: Task, ledger: Ledger, evaluator: Evaluator, *, reporter: Reporter, compare: bool
) -> Choice:
    """The first two phases, with what there was before evolution if the winner is compared."""
    if task.data.summary is not None:
        reporter.message(task.data.summary.describe())
    remaining = make_remaining(task, evaluator.stopwatch, ledger)
    reporter.begin(remaining)
    # At the start, say which engine is used and how long the search may take.
    if not ledger.candidates:
        reporter.message(describe_search_engine(task.config))
        if task.fitted and task.fitted.description:
            reporter.message(task.fitted.description)
        for line in describe_lag(task.config, task.workers):
            reporter.message(line)
        reporter.message(describe_estimate(evaluator, remaining))
    # Evaluate the candidates, then train the best again.
    opened = Dispatcher.open(evaluator, task.workers, task.data, reporter=reporter)
    with opened as dispatcher:
        explorer = Explorer(
            config=task.config,
            ledger=ledger,
            checkpoints=Checkpoints(task.workdir.checkpoints),
            complexity=evaluator.builder.complexity,
            evaluate=dispatcher.evaluate_first,
            labels=task.data.validation.labels,
            reporter=reporter,
            stopwatch=evaluator.stopwatch,
            out_of_time=remaining.out_of_time,
        )
        ranked = explorer.run().ranked
        dispatcher.withdraw()  # candidates that a search which ends early no longer needs
        choosing = (task.config, ledger, dispatcher.evaluate_first)
        best = rank_best(*choosing, ranked=ranked, reporter=reporter)
        first = best_of_first_generation(*choosing, reporter=reporter) if compare else None
    remaining.chosen = True
    return Choice(tuple(best), first)
