"""Searches for a network on a data set, trains the winner and tests it once.

The same command resumes an interrupted run.

    python -m jaxevo search                                   # the embedded data set digits
    python -m jaxevo search --dataset=mnist --data_dir=DIR    # DIR/mnist/train-images-...
    python -m jaxevo search --dataset=mnist --preset=paper    # as in the paper
    python -m jaxevo search --continue --num_generations=16   # a finished run goes on
"""

from __future__ import annotations

import contextlib
import pathlib
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.config import SearchConfig, WorkerConfig, flatten, leaf_fields, replace
from jaxevo.config.presets import DEFAULT_STRATEGIES, STRATEGIES
from jaxevo.console import say
from jaxevo.errors import InputError, explained, reason

if TYPE_CHECKING:  # imported late, as they bring JAX
    from jaxevo.run.reporter import Reporter
    from jaxevo.run.result import Result
    from jaxevo.run.search import Task

FLAGS = flags.FLAGS
WHEN_INTERRUPTED = "nothing is lost: give the same command to go on"
FIELDS = {name: field for name, (_, field) in leaf_fields(SearchConfig).items()}
SETTINGS = {name: field for name, field in FIELDS.items() if name not in ("strategy", "dataset")}
WORKER_SETTINGS = {name: field for name, (_, field) in leaf_fields(WorkerConfig).items()}

shared.define_preset_flag()
shared.define_final_recipe_flag()
flags.DEFINE_enum(
    "strategy",
    None,
    list(STRATEGIES),
    f"{FIELDS['strategy'].metadata['help']} ({shared.by_preset(DEFAULT_STRATEGIES)}). Over the "
    f"preset's settings, {shared.strategies_listed()}",
)
flags.DEFINE(shared.PATH, "dataset", "digits", FIELDS["dataset"].metadata["help"])
flags.DEFINE(
    shared.PATH, "workdir", None, "folder of the run (default: runs/<dataset>-<preset>-seed<seed>)"
)
flags.DEFINE_float(
    "time_limit",
    None,
    "seconds that the run may take: no candidate is begun once the rest is needed for training the "
    "best again and for the final training",
    lower_bound=0.0,
)
flags.DEFINE_bool(
    "continue",
    False,
    "go on with the run in --workdir beyond its end, with the flags that are given: more "
    "generations or trainings, another time limit or target, or another final training",
)
flags.DEFINE_bool(
    "dry_run", False, "time two random candidates, print how long the search would take, and stop"
)
flags.DEFINE(
    shared.PATH, "profile", None, "folder for a trace of JAX's profiler, of what this session does"
)
shared.define_config_flags(SETTINGS, shared.preset_values())
shared.define_config_flags(WORKER_SETTINGS, {"default": flatten(WorkerConfig())})
shared.define_machine_flags()


def make_task(console: Console) -> Task:
    """The search that the flags describe, with its images."""
    from jaxevo.run import prepare
    from jaxevo.run.progress import reading

    continues = bool(FLAGS["continue"].value)
    preset = FLAGS.preset if continues else command.resolve_preset(FLAGS.preset, console)
    # None where a flag is not given: a run that is continued keeps what it began with.
    named = {
        name: FLAGS[name].value if FLAGS[name].present else None
        for name in ("dataset", "strategy", "recipe")
    }
    with reading(console) as on_image:
        return prepare.make_task(
            named["dataset"],
            preset=preset,
            strategy=named["strategy"],
            recipe=named["recipe"],
            workdir=FLAGS.workdir,
            data_dir=FLAGS.data_dir,
            workers=replace(WorkerConfig(), shared.given(WORKER_SETTINGS)),
            time_limit=FLAGS.time_limit,
            continues=continues,
            settings=shared.given(SETTINGS),
            on_image=on_image,
        )


def profile() -> AbstractContextManager[None]:
    """JAX's profiler, if it is asked for."""
    if not FLAGS.profile:
        return contextlib.nullcontext()
    import jax

    try:
        pathlib.Path(FLAGS.profile).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"profile={explained(error)}") from error
    return jax.profiler.trace(FLAGS.profile)


def carry_out(task: Task, reporter: Reporter) -> Result:
    """Runs the search; what can go wrong on the way is said with what to do about it."""
    from jaxevo.run.explore import SearchFailedError
    from jaxevo.run.search import run_search
    from jaxevo.training.fit import DivergedError

    path = task.workdir.path
    try:
        return run_search(task, reporter)
    except SearchFailedError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(
            f"{reason(error)}: the run in {path} cannot go on, but nothing recorded is lost; when "
            "there is room and it can be written, give the same command"
        ) from error
    except DivergedError as error:
        raise InputError(
            f"the final training of {task.workdir.best_genome} failed ({error}): train that genome "
            "by jaxevo eval --genome=..., or search in another --workdir"
        ) from error


def print_result(task: Task, result: Result, console: Console) -> None:
    """Prints the result, and the commands that use it."""
    from jaxevo.run.words import class_lines, commands_of, result_lines

    workdir = task.workdir
    lines = [
        *result_lines(result),
        *class_lines(result),
        f"genome {workdir.best_genome}, weights {workdir.best_weights}; to use them:",
        *(f"  {line}" for line in commands_of(result, FLAGS.data_dir)),
    ]
    say(console, "\n".join(lines))


def draw(task: Task, console: Console, missing_only: bool) -> None:
    """The run's pictures, into its folder."""
    from jaxevo.reports import charts
    from jaxevo.run.reader import load_run

    run = load_run(task.workdir)
    if written := charts.draw_run(run, task.workdir.path, missing_only=missing_only):
        say(console, f"pictures {', '.join(map(str, written))}")


def main(console: Console) -> None:
    """Flags in, one library call, words out."""
    for name in ("continue", "profile"):
        if FLAGS.dry_run and FLAGS[name].value:
            raise InputError(f"--{name} is not for --dry_run, which estimates a search as a whole")
    with command.status(console, "starting JAX"):
        command.start_jax()
    task = make_task(console)
    from jaxevo.reports.live import LiveReport
    from jaxevo.run.estimate import describe_estimate
    from jaxevo.run.progress import RunReporter
    from jaxevo.run.search import make_evaluator, make_remaining
    from jaxevo.training.engine_choice import describe_search_engine

    if FLAGS.dry_run:
        say(console, describe_search_engine(task.config))
        if task.fitted and task.fitted.description:
            say(console, task.fitted.description)
        evaluator = make_evaluator(task)
        remaining = make_remaining(task, evaluator.stopwatch)
        say(console, describe_estimate(evaluator, remaining))
        return
    before = _written(task.workdir.result)
    say(console, f"workdir {task.workdir.path}")
    display = RunReporter(task.config, console)
    reporter = LiveReport(display, task.workdir)
    with display.live(), profile():
        result = carry_out(task, reporter)
    # A complete run may have been stopped before its pictures were drawn.
    complete = _written(task.workdir.result) == before
    if complete:
        say(
            console,
            "this run is complete; --continue --num_generations=... goes on with it, another "
            "--seed or --workdir begins a new one",
        )
    print_result(task, result, console)
    draw(task, console, missing_only=complete)
    if reporter.finish():
        say(console, f"report {task.workdir.report}")


def _written(path: pathlib.Path) -> int | None:
    """When a file was written, in nanoseconds; None if it is not there."""
    return path.stat().st_mtime_ns if path.exists() else None


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, WHEN_INTERRUPTED, arguments=arguments, grouped=shared.grouped)
