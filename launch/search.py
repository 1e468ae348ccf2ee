"""Searches for a network on a data set, trains the winner and tests it once; the same command resumes.

python launch/search.py                                     # the embedded data set digits
python launch/search.py --dataset=mnist --data_dir=DIR      # DIR/mnist/train-images-idx3-ubyte.gz ...
python launch/search.py --dataset=mnist --preset=paper      # as in the paper
"""

from __future__ import annotations

import contextlib
import functools
import pathlib
import re
import shlex
import sys
import time
from typing import TYPE_CHECKING

import common
from absl import flags
from rich.console import Console

from jaxevo import config as configs
from jaxevo import records
from jaxevo.config import SearchConfig
from jaxevo.datasets import load_search_data, load_test_data, load_train_data
from jaxevo.errors import InputError
from jaxevo.progress import RunReporter, format_duration
from jaxevo.workdir import Workdir

if TYPE_CHECKING:  # imported late, as it brings jax
    from jaxevo.evaluation import Evaluator

FLAGS = flags.FLAGS
SETTINGS = {name: field for name, (_, field) in configs.leaf_fields(SearchConfig).items()}

flags.DEFINE_enum(
    "preset", "auto", ["auto", "quick", "paper"], "settings to begin with; auto: quick on a CPU, else paper"
)
flags.DEFINE_string("workdir", None, "folder of the run (default: runs/<dataset>-<preset>-seed<seed>)")
flags.DEFINE_bool("dry_run", False, "time two random candidates, print how long the search would take, and stop")
flags.DEFINE_string("profile", None, "folder for a trace of JAX's profiler, of what this session does")
common.define_config_flags(SETTINGS, configs.flatten(SearchConfig()), "preset paper")
common.define_machine_flags()


def resolve_config(console: Console) -> tuple[SearchConfig, str]:
    """The configuration that preset and flags give, and the preset's name."""
    import jax

    from jaxevo.evaluation import choose_engine

    given = common.given(SETTINGS)
    backend = jax.default_backend()
    name = str(FLAGS.preset)
    if name == "auto":
        name = "quick" if backend == "cpu" else "paper"
        console.print(f"preset {name}, as this is a {backend.upper()}; --preset=... chooses another", highlight=False)
    default = SearchConfig()
    dataset = given.get("dataset", default.data.dataset)
    images, _ = load_train_data(dataset, FLAGS.data_dir)
    config = configs.replace(default, configs.preset(name, len(images)) | given)
    return configs.replace(config, {"engine": choose_engine(config.engine, config.network.conv_kind)}), name


def make_workdir(config: SearchConfig, preset: str) -> Workdir:
    """The run's folder, created if need be."""
    dataset = re.sub(r"[^A-Za-z0-9_.]+", "_", pathlib.Path(config.data.dataset).name)
    path = pathlib.Path(FLAGS.workdir or f"runs/{dataset}-{preset}-seed{config.seed}")
    path.mkdir(parents=True, exist_ok=True)
    return Workdir(path)


def print_estimate(config: SearchConfig, evaluator: Evaluator, console: Console) -> None:
    """One line before a search begins."""
    from jaxevo.estimate import estimate

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
    low, high = result["test_interval"]
    lines = [
        f"test accuracy {result['test_accuracy']:.2%} (95 % interval {low:.2%} to {high:.2%}, "
        f"{result['test_images']:,} images), validation accuracy {result['validation_accuracy']:.2%}",
        f"{result['parameters']:,} parameters, {result['multiply_adds']:,} multiply-adds an image",
        f"{result['candidates']} candidates, {result['memo_hits']} of them isomorphic to an earlier one, "
        f"{result['failures']} failed; {result['trainings']} trainings",
        _where_time_went(result["session_seconds"]),
        f"genome {workdir.best_genome}, weights {workdir.best_weights}; to use them:",
        f"  python launch/eval.py --weights={workdir.best_weights} --dataset={shlex.quote(result['dataset'])}"
        + (f" --data_dir={shlex.quote(FLAGS.data_dir)}" if FLAGS.data_dir else ""),
        f"  python launch/inspect_checkpoint.py --workdir={workdir.path}",
    ]
    console.print("\n".join(lines), highlight=False, markup=False, soft_wrap=True)


def _where_time_went(seconds: dict[str, float]) -> str:
    total = sum(seconds.values()) or 1.0
    parts = ", ".join(f"{part} {value / total:.0%}" for part, value in seconds.items())
    return f"{format_duration(total)} in the session that ended it: {parts}"


def main() -> None:
    """Flags in, one library call, words out."""
    common.use_compilation_cache()
    console = Console()
    config, preset = resolve_config(console)
    seed, data = config.seed, config.data
    load = functools.partial(load_search_data, data.dataset, FLAGS.data_dir, resize=data.resize, seed=seed)
    begin = time.perf_counter()
    images = load(validation_fraction=data.validation_fraction, image_size=data.image_size)
    data_seconds = time.perf_counter() - begin
    load_test = functools.partial(
        load_test_data, data.dataset, FLAGS.data_dir, image_shape=images.image_shape, resize=data.resize
    )
    config.network.check_image(*images.image_shape[:2])
    from jaxevo.evaluation import DivergedError, Evaluator, Problem, device_name
    from jaxevo.search import Search, SearchFailedError, Task

    if FLAGS.dry_run:
        problem = Problem(config.network, images.image_shape, images.num_classes)
        print_estimate(config, Evaluator(config, problem, images.train, images.validation), console)
        return
    workdir = make_workdir(config, preset)
    _lock = workdir.lock()  # held until the process ends
    workdir.open(config, {"preset": preset, "device": device_name(), "data": images.digest()})
    console.print(f"workdir {workdir.path}", highlight=False, markup=False, soft_wrap=True)
    if workdir.result.exists():
        console.print("this run is complete; another --seed or --workdir begins a new one", highlight=False)
        print_result(records.load(workdir).result or {}, workdir, console)
        return
    reporter = RunReporter(config.evolution, console)
    search = Search(Task(config, workdir, images, load_test, data_seconds), reporter)
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
    except DivergedError as error:
        raise InputError(
            f"the final training of {workdir.best_genome} failed ({error}): train that genome by launch/eval.py "
            "--genome=..., or search in another --workdir"
        ) from error
    print_result(result, workdir, console)


if __name__ == "__main__":
    common.run(main, __doc__ or "", "nothing is lost: give the same command to go on")
    sys.exit(0)
