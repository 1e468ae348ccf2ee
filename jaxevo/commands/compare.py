"""Compares strategies: a search of each for each seed, all with the same number of trainings.

The same command resumes an interrupted comparison.

    # On digits:
    python -m jaxevo compare --strategies=guided,rea,aging,random --seeds=3 --evaluations=60
    python -m jaxevo compare --strategies=rea,rea_b3 --dataset=mnist --data_dir=DIR
    # Four searches at a time, each in a process of its own:
    python -m jaxevo compare --strategies=rea,random --workers=4
"""

from __future__ import annotations

import pathlib

from absl import flags
from rich.console import Console
from rich.markdown import Markdown

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.config import SearchConfig, WorkerConfig, leaf_fields
from jaxevo.config.presets import STRATEGIES
from jaxevo.console import say

FLAGS = flags.FLAGS
WHEN_INTERRUPTED = "nothing is lost: give the same command to go on"
# What the comparison itself decides; generations go on until the trainings are spent.
OWN = {"strategy", "seed", "max_trainings", "num_generations", "dataset"}
OWN |= {"keep", "compare_winner", "initial_genomes"}
FIELDS = {name: field for name, (_, field) in leaf_fields(SearchConfig).items()}
SETTINGS = {name: field for name, field in FIELDS.items() if name not in OWN}

flags.DEFINE_list(
    "strategies",
    ["guided", "rea", "aging", "random"],
    f"which to compare, of: {', '.join(STRATEGIES)}. Over the preset's settings, "
    f"{shared.strategies_listed()}",
)
flags.DEFINE_integer("seeds", 3, "searches of each, with seeds from 0", lower_bound=1)
flags.DEFINE_integer(
    "evaluations",
    60,
    "trainings of candidates a search, isomorphic ones not counted",
    lower_bound=1,
)
flags.DEFINE(shared.PATH, "dataset", "digits", FIELDS["dataset"].metadata["help"])
flags.DEFINE(
    shared.PATH,
    "workdir",
    None,
    "folder of the comparison (default: runs/compare-<dataset>-<preset>)",
)
shared.define_preset_flag()
shared.define_final_recipe_flag()
shared.define_config_flags(SETTINGS, shared.preset_values())
shared.define_pool_flags("search")
shared.define_machine_flags()


def main(console: Console) -> None:
    """Flags in, the searches, a table out."""
    shared.check_names("strategies", FLAGS.strategies, STRATEGIES)
    limits = shared.pool_settings()
    command.start_jax()
    from jaxevo.datasets import open_dataset
    from jaxevo.experiments.comparison import (
        Comparison,
        check_alike,
        run_comparison,
        search_folder,
        write_comparison,
    )
    from jaxevo.run.configuration import make_config
    from jaxevo.run.lag import settle_lag
    from jaxevo.run.prepare import run_name
    from jaxevo.run.workdir import Workdir

    preset = command.resolve_preset(FLAGS.preset, console)
    path = pathlib.Path(FLAGS.workdir or f"runs/compare-{run_name(FLAGS.dataset)}-{preset}")
    # Each search is one process's.
    settings = settle_lag(shared.given(SETTINGS), Workdir(path), WorkerConfig())
    data = open_dataset(FLAGS.dataset, FLAGS.data_dir).divided()
    # A comparison that was begun goes on as it was.
    asked = {"preset": preset, "recipe": FLAGS.recipe, "settings": settings}
    configs, fresh = {}, {}
    for name in FLAGS.strategies:
        begun = Workdir(search_folder(path, name, 0))
        configs[name] = make_config(FLAGS.dataset, data, strategy=name, workdir=begun, **asked)
        fresh[name] = make_config(FLAGS.dataset, data, strategy=name, **asked)
    check_alike(configs, fresh)
    comparison = Comparison(
        configs=configs,
        preset=preset,
        seeds=FLAGS.seeds,
        trainings=FLAGS.evaluations,
        path=path,
        data_dir=FLAGS.data_dir,
    )
    comparison.check_begun()
    outcomes, failures = run_comparison(comparison, console, limits)
    console.print(Markdown(write_comparison(comparison, outcomes, failures)))
    say(console, f"tables and plots: {comparison.path}")


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, WHEN_INTERRUPTED, arguments=arguments, grouped=shared.grouped)
