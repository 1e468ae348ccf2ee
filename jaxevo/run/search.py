"""A whole run in its folder, in phases: explore, choose the winner, finish.

The same call resumes an interrupted run. Everything that happened is in the history, so such a run
comes to the same end as an uninterrupted one. A task that `continues` carries a run beyond its end.
The test images are loaded only after the last choice has been made.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.changes import change_run, settle_changes
from jaxevo.run.choose import Choice, best_of_first_generation, rank_best
from jaxevo.run.dispatch import Dispatcher
from jaxevo.run.estimate import describe_estimate
from jaxevo.run.evaluator import Evaluator, class_weights
from jaxevo.run.explore import Explorer
from jaxevo.run.finish import Finisher
from jaxevo.run.ledger import Ledger
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Reporter
from jaxevo.run.result import Result
from jaxevo.run.workdir import Workdir
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.individual import Individual
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import describe_engine, device_name, with_engine
from jaxevo.versions import changed_versions

_TIME_RESERVE = 1.2  # on the time that what follows the search should take


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
    # The folder's run goes on with this configuration, where that is possible.
    continues: bool = False

    def __post_init__(self) -> None:
        self.config.network.check_image(*self.data.image_shape[:2])
        self.workers.check(self.config)


def run_search(task: Task, reporter: Reporter) -> Result:
    """Carries a run to its end; called again after an interruption, it goes on.

    Raises:
        InputError: The folder is another run's or in use, or its files are damaged.
        SearchFailedError: Too many candidates in a row failed.
        DivergedError: The final training failed.
        OSError: Something cannot be written; the same call, once it can, goes on from there.
    """
    task = dataclasses.replace(task, config=with_engine(task.config))
    with _opened(task, reporter) as ledger:
        # A run that is complete is only read.
        if task.workdir.result.exists():
            result = load_run(task.workdir).result
            assert result is not None
            return result
        # Explore, choose the winner, finish.
        evaluator = make_evaluator(task)
        choice = _explore_and_choose(
            task, ledger, evaluator, reporter, compare=task.config.compare_winner
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
    with _opened(task, reporter) as ledger:
        evaluator = make_evaluator(task)
        return _explore_and_choose(task, ledger, evaluator, reporter, compare=False).winner


def make_evaluator(task: Task) -> Evaluator:
    """Makes the evaluator that trains the candidates of a task in this process."""
    config = task.config
    builder = NetworkBuilder(config.network, task.data.image_shape, task.data.num_classes)
    weights = class_weights(config, task.data.train.labels, task.data.num_classes)
    data = TrainingData.drawn(task.data.train, config.data.train_examples, config.seed, weights)
    stopwatch = Stopwatch()
    stopwatch.add("data", task.data_seconds)
    return Evaluator(config, builder, data, task.data.validation, stopwatch)


@contextlib.contextmanager
def _opened(task: Task, reporter: Reporter) -> Iterator[Ledger]:
    """The ledger of the run, whose folder is made or checked, and locked within the block."""
    about: dict[str, Any] = {"preset": task.preset, "device": device_name(task.config.engine)}
    about |= {"data": task.data.digest()}
    workdir = task.workdir
    with workdir.locked():
        if task.continues and (changed := change_run(workdir, task.config, about, task.time_limit)):
            reporter.message(changed)
        document = workdir.open(task.config, about)
        if changed := changed_versions(document):
            reporter.message(
                f"begun with {'; '.join(changed)}: what follows may differ from an uninterrupted "
                "run"
            )
        ledger = Ledger.open(workdir, task.config)
        settle_changes(workdir, ledger, workdir.changes(document))
        yield ledger


def _explore_and_choose(
    task: Task, ledger: Ledger, evaluator: Evaluator, reporter: Reporter, *, compare: bool
) -> Choice:
    """The first two phases, with what there was before evolution if the winner is compared."""
    if task.data.summary is not None:
        reporter.message(task.data.summary.describe())
    # At the start, say which engine is used and how long the search may take.
    if not ledger.candidates:
        reporter.message(describe_engine(task.config))
        reporter.message(describe_estimate(evaluator))
    # Evaluate the candidates, then train the best again.
    with Dispatcher.open(evaluator, task.workers, task.data) as dispatcher:
        explorer = Explorer(
            config=task.config,
            ledger=ledger,
            checkpoints=Checkpoints(task.workdir.checkpoints),
            complexity=evaluator.builder.complexity,
            evaluate=dispatcher.evaluate,
            labels=task.data.validation.labels,
            reporter=reporter,
            stopwatch=evaluator.stopwatch,
            out_of_time=lambda: _out_of_time(task, ledger, evaluator.stopwatch),
        )
        explorer.run()
        choosing = (task.config, ledger, dispatcher.evaluate, reporter)
        ranked = rank_best(*choosing)
        return Choice(tuple(ranked), best_of_first_generation(*choosing) if compare else None)


def _out_of_time(task: Task, ledger: Ledger, stopwatch: Stopwatch) -> bool:
    """True once what is left of the time limit is needed for what follows the search.

    The time of a step is that of the candidates trained so far; the winner's may be longer, hence a
    reserve.
    """
    if task.time_limit is None:
        return False
    config = task.config
    # Images that a candidate and the final training see, and the seconds of one image.
    num_train = len(task.data.train)
    seen = (config.data.train_examples or num_train) * config.training.epochs
    per_image = ledger.train_seconds / (seen * max(1, ledger.trainings))
    # One more candidate, the best again, and the final trainings.
    final = config.num_final_trainings * config.final_training.epochs
    needed = per_image * (seen * (1 + config.num_retrainings) + num_train * final)
    return stopwatch.total() + _TIME_RESERVE * needed > task.time_limit
