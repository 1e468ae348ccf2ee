"""Searches for a network on a data set, trains the winner and tests it once; the same command resumes.

python launch/search.py                                     # the embedded data set digits
python launch/search.py --dataset=mnist --data_dir=DIR      # DIR/mnist/train-images-idx3-ubyte.gz ...
python launch/search.py --dataset=mnist --preset=paper      # as in the paper
"""

from __future__ import annotations

import contextlib
import pathlib
import shlex
import sys
from typing import TYPE_CHECKING

import common
from absl import flags
from rich.console import Console

from jaxevo import config as configs
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.config.presets import STRATEGIES
from jaxevo.errors import InputError
from jaxevo.run import records
from jaxevo.run.progress import RunReporter, format_duration
from jaxevo.run.workdir import Workdir

if TYPE_CHECKING:  # imported late, as it brings jax
    from jaxevo.run.evaluator import Evaluator

FLAGS = flags.FLAGS
FIELDS = {name: field for name, (_, field) in configs.leaf_fields(SearchConfig).items()}
SETTINGS = {name: field for name, field in FIELDS.items() if name != "strategy"}
WORKER_SETTINGS = {name: field for name, (_, field) in configs.leaf_fields(WorkerConfig).items()}

common.define_preset_flag()
common.define_recipe_flag("the final training")
flags.DEFINE_enum(
    "strategy",
    "rea",
    list(STRATEGIES),
    f"{FIELDS['strategy'].metadata['help']}. Over the preset's settings, {common.strategies_listed()}",
)
flags.DEFINE_string("workdir", None, "folder of the run (default: runs/<dataset>-<preset>-seed<seed>)")
flags.DEFINE_bool("dry_run", False, "time two random candidates, print how long the search would take, and stop")
flags.DEFINE_string("profile", None, "folder for a trace of JAX's profiler, of what this session does")
common.define_config_flags(SETTINGS, configs.flatten(SearchConfig()), "preset paper")
common.define_config_flags(WORKER_SETTINGS, configs.flatten(WorkerConfig()), "default")
common.define_machine_flags()


def print_estimate(config: SearchConfig, evaluator: Evaluator, console: Console) -> None:
    """One line before a search begins."""
    from jaxevo.run.estimate import estimate

    try:
        known = estimate(config, evaluator)
    except (ArithmeticError, MemoryError, RuntimeError) as error:
        console.print(f"no estimate: {error}", highlight=False, markup=False, soft_wrap=True)
        return
    console.print(
        f"estimate: {format_duration(known.total)} at most: {known.candidates} candidates of about "
        f"{format_duration(known.per_candidate)} (isomorphic ones cost nothing), "
        f"{format_duration(known.retrain)} for training the best again, "
        f"{format_duration(known.final)} for the final training",
        highlight=False,
        soft_wrap=True,
    )


def print_result(result: dict, workdir: Workdir, console: Console) -> None:
    """What came out, and the lines that use it."""
    (low, high), hits = result["test_interval"], result["memo_hits"]
    lines = [
        f"test accuracy {result['test_accuracy']:.2%} (95 % interval {low:.2%} to {high:.2%}, "
        f"{result['test_images']:,} images), validation accuracy {result['validation_accuracy']:.2%}",
        f"{result['parameters']:,} parameters, {result['multiply_adds']:,} multiply-adds an image",
        f"{result['candidates']} candidates, {hits} ({hits / result['candidates']:.0%}) isomorphic to an earlier one, "
        f"{result['failures']} failed; {result['trainings']} trainings",
        _where_time_went(result["session_seconds"]),
        f"genome {workdir.best_genome}, weights {workdir.best_weights}; to use them:",
        f"  python launch/eval.py --weights={workdir.best_weights} --dataset={shlex.quote(result['dataset'])}"
        + (f" --data_dir={shlex.quote(FLAGS.data_dir)}" if FLAGS.data_dir else ""),
        f"  python launch/inspect_checkpoint.py --workdir={workdir.path}",
    ]
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def draw(workdir: Workdir, console: Console, missing_only: bool) -> None:
    """The run's pictures, into its folder."""
    from jaxevo.reports import charts  # takes a second to import

    if written := charts.draw_run(records.load(workdir), workdir.path, missing_only=missing_only):
        console.print(f"pictures {', '.join(map(str, written))}", highlight=False, markup=False, soft_wrap=True)


def _where_time_went(seconds: dict[str, float]) -> str:
    total = sum(seconds.values()) or 1.0
    parts = ", ".join(f"{part} {value / total:.0%}" for part, value in seconds.items())
    return f"{format_duration(total)} in the session that ended it: {parts}"


def main() -> None:
    """Flags in, one library call, words out."""
    common.use_compilation_cache()
    console = Console()
    workers = configs.replace(WorkerConfig(), common.given(WORKER_SETTINGS))
    resolved, preset = common.resolve_configs([FLAGS.strategy], SETTINGS, console)
    config = resolved[FLAGS.strategy]
    workers.check(config)
    images, load_test, data_seconds = common.load_images(config)
    from jaxevo.run.evaluator import DivergedError, Evaluator
    from jaxevo.run.search import Search, SearchFailedError, Task
    from jaxevo.training.engines import Problem

    if FLAGS.dry_run:
        problem = Problem(config.network, images.image_shape, images.num_classes)
        print_estimate(config, Evaluator(config, problem, images.train, images.validation), console)
        return
    path = FLAGS.workdir or f"runs/{common.default_name(config)}-{preset}-seed{config.seed}"
    workdir = Workdir(pathlib.Path(path))
    common.enter(workdir, config, preset, images)  # until the process ends
    console.print(f"workdir {workdir.path}", highlight=False, markup=False, soft_wrap=True)
    if workdir.result.exists():
        console.print("this run is complete; another --seed or --workdir begins a new one", highlight=False)
        print_result(records.load(workdir).result or {}, workdir, console)
        draw(workdir, console, missing_only=True)  # it may have been stopped before
        return
    reporter = RunReporter(config, console, workers.workers)
    search = Search(Task(config, workdir, images, load_test, data_seconds, workers), reporter)
    if not search.recorded:
        print_estimate(config, search.evaluator, console)
    profile = contextlib.nullcontext()
    if FLAGS.profile:
        import jax

        profile = jax.profiler.trace(FLAGS.profile)
    try:
        with reporter.live(), profile:
            result = search.run()
    except SearchFailedError as error:
        raise InputError(str(error)) from error
    except OSError as error:
        raise InputError(
            f"{error}: the run in {workdir.path} cannot go on, but nothing recorded is lost; when there is room and it "
            "can be written, give the same command"
        ) from error
    except DivergedError as error:
        raise InputError(
            f"the final training of {workdir.best_genome} failed ({error}): train that genome by launch/eval.py "
            "--genome=..., or search in another --workdir"
        ) from error
    print_result(result, workdir, console)
    draw(workdir, console, missing_only=False)


if __name__ == "__main__":
    common.run(main, __doc__ or "", "nothing is lost: give the same command to go on")
    sys.exit(0)
