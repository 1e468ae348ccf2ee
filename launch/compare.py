"""Compares strategies: a search of each for each seed, all with the same number of trainings; the same command resumes.

python launch/compare.py --strategies=rea,aging,random,aco --seeds=3 --evaluations=60          # on digits
python launch/compare.py --strategies=rea,rea_no_crossover,rea_b3 --dataset=mnist --data_dir=DIR
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Mapping

import common
from absl import flags
from rich.console import Console
from rich.markdown import Markdown

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import STRATEGIES
from jaxevo.errors import InputError
from jaxevo.reports import comparison
from jaxevo.reports.comparison import Failure, Outcome
from jaxevo.run import records
from jaxevo.run.workdir import Workdir, write_csv, write_json, write_text

FLAGS = flags.FLAGS
# What the comparison itself decides; generations go on until the trainings are spent.
OWN = {"strategy", "seed", "max_trainings", "num_generations"}
SETTINGS = {name: field for name, (_, field) in configs.leaf_fields(SearchConfig).items() if name not in OWN}
CANDIDATES = 20  # at most so many for each training, should nearly all be isomorphic to earlier ones

flags.DEFINE_list(
    "strategies",
    ["rea", "aging", "random", "aco"],
    f"which to compare, of: {', '.join(STRATEGIES)}. Over the preset's settings, {common.strategies_listed()}",
)
flags.DEFINE_integer("seeds", 3, "searches of each, with seeds from 0", lower_bound=1)
flags.DEFINE_integer("evaluations", 60, "trainings of candidates a search, isomorphic ones not counted", lower_bound=1)
flags.DEFINE_string("workdir", None, "folder of the comparison (default: runs/compare-<dataset>-<preset>)")
common.define_preset_flag()
common.define_recipe_flag("the final training")
common.define_config_flags(SETTINGS, configs.flatten(SearchConfig()), "preset paper")
common.define_machine_flags()


def configurations(resolved: Mapping[str, SearchConfig]) -> list[tuple[str, SearchConfig]]:
    """Every search, those of a seed together."""
    common_settings = {"max_trainings": FLAGS.evaluations, "num_generations": CANDIDATES * FLAGS.evaluations}
    return [
        (name, configs.replace(config, common_settings | {"seed": seed}))
        for seed in range(FLAGS.seeds)
        for name, config in resolved.items()
    ]


def write(
    outcomes: list[Outcome],
    failures: list[Failure],
    path: pathlib.Path,
    searches: list[tuple[str, SearchConfig]],
    preset: str,
) -> str:
    """Tables and plots; returns the Markdown."""
    from jaxevo.reports import cell_pictures as plots
    from jaxevo.reports import charts

    dataset, seeds = searches[0][1].data.dataset, FLAGS.seeds
    caption = (
        f"Strategies on {dataset}: {FLAGS.evaluations} trainings a search, preset {preset}. Mean ± standard deviation "
        "over seeds; test accuracy is that of the winner after the final training."
    )
    settings = {name: configs.flatten(config) for name, config in searches if config.seed == 0}
    text = comparison.markdown(outcomes, caption, failures)
    write_text(path / "comparison.md", text)
    write_csv(path / "comparison.csv", comparison.table_rows(outcomes))
    write_json(path / "comparison.json", comparison.document(outcomes, settings, failures))
    title = f"{dataset}, mean of {seeds} seeds and from the worst to the best" if seeds > 1 else f"{dataset}, one seed"
    plots.save(charts.best_so_far(comparison.curves(outcomes), title), path / "best_so_far")
    winners = [charts.Point(each.strategy, each.parameters, each.test) for each in outcomes]
    plots.save(charts.parameters_against_error([*winners, *charts.PAPER.get(dataset, ())]), path / "parameters")
    return text


def run(
    searches: list[tuple[str, SearchConfig]], preset: str, path: pathlib.Path, console: Console
) -> tuple[list[Outcome], list[Failure]]:
    """Carries one search after the other to its end; one that fails does not keep the others from it."""
    outcomes, failures = [], []
    for number, (name, config) in enumerate(searches, 1):
        workdir = Workdir(path / f"{name}-seed{config.seed}")
        console.print(f"search {number} of {len(searches)}: {workdir.path}", highlight=False, soft_wrap=True)
        try:
            with common.open_search(config, preset, workdir, console) as search:
                if not workdir.result.exists():
                    search.run()
            outcomes.append(comparison.outcome(name, records.load(workdir)))
        except common.NoResultError as error:
            console.print(f"failed: {error}", highlight=False, markup=False, soft_wrap=True)
            failures.append(Failure(name, config.seed, str(error)))
    if not outcomes:
        raise InputError(f"every search failed; the last, {failures[-1].reason}")
    order = {name: k for k, name in enumerate(FLAGS.strategies)}
    return sorted(outcomes, key=lambda each: (order[each.strategy], each.seed)), failures


def main() -> None:
    """Flags in, one search after the other, a table out."""
    common.check_names("strategies", FLAGS.strategies, STRATEGIES)
    common.use_compilation_cache()
    console = Console()
    resolved, preset = common.resolve_configs(FLAGS.strategies, SETTINGS, console)
    searches = configurations(resolved)
    config = searches[0][1]
    path = pathlib.Path(FLAGS.workdir or f"runs/compare-{common.default_name(config)}-{preset}")
    outcomes, failures = run(searches, preset, path, console)
    console.print(Markdown(write(outcomes, failures, path, searches, preset)))
    console.print(f"tables and plots: {path}", highlight=False, soft_wrap=True)


if __name__ == "__main__":
    common.run(main, __doc__ or "", "nothing is lost: give the same command to go on")
    sys.exit(0)
