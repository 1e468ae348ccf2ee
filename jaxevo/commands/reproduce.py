"""Makes one of the paper's tables again, beside the published figures.

The trainings that are missing are carried out.

    # Minutes; every row, none of them good:
    python -m jaxevo reproduce --table=digits --budget=smoke --data_dir=DIR
    # A night or two; the same command resumes:
    python -m jaxevo reproduce --table=transfer --budget=cpu --data_dir=DIR
    # Two trainings or searches at a time, each in a process of its own:
    python -m jaxevo reproduce --table=digits --budget=cpu --data_dir=DIR --workers=2
    # As in the paper, on a GPU:
    python -m jaxevo reproduce --table=ablation --budget=paper
"""

from __future__ import annotations

import pathlib

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.errors import InputError
from jaxevo.reports.paper_tables import BUDGETS, LABELS, TABLES

FLAGS = flags.FLAGS
WHEN_INTERRUPTED = "what is finished is kept: the same command goes on"

flags.DEFINE_enum("table", None, list(TABLES), "which of the paper's tables")
flags.DEFINE_enum("budget", "smoke", list(BUDGETS), "how long everything is trained")
flags.DEFINE_list(
    "models", None, f"rows to make (default: all of the table), of: {', '.join(LABELS)}"
)
flags.DEFINE_integer(
    "epochs", None, "epochs of each training (default: the budget's)", lower_bound=1
)
flags.DEFINE_integer(
    "seeds", None, "trainings of each model (default: the budget's)", lower_bound=1
)
flags.DEFINE(
    shared.PATH,
    "workdir",
    None,
    "folder for trainings and tables (default: runs/reproduce-<budget>-<recipe>[-<epochs>epochs])",
)
shared.define_recipe_flag("every training")
shared.define_engine_flag()
shared.define_pool_flags("search or a training")
shared.define_machine_flags()


def main(console: Console) -> None:
    """Flags in, searches and trainings, a table out."""
    if FLAGS.table is None:
        raise InputError(f"give --table={'|'.join(TABLES)}")
    if FLAGS.models is not None:
        shared.check_names("models", FLAGS.models, LABELS)
    limits = shared.pool_settings()
    command.start_jax()
    from jaxevo.experiments.paper_table import reproduce
    from jaxevo.experiments.reproduction import TablePlan

    epochs = f"-{FLAGS.epochs}epochs" if FLAGS.epochs else ""
    default = f"runs/reproduce-{FLAGS.budget}-{FLAGS.recipe}{epochs}"
    plan = TablePlan(
        table=FLAGS.table,
        path=pathlib.Path(FLAGS.workdir or default),
        budget=FLAGS.budget,
        recipe=FLAGS.recipe,
        models=tuple(FLAGS.models or ()),
        epochs=FLAGS.epochs or 0,
        seeds=FLAGS.seeds or 0,
        data_dir=FLAGS.data_dir,
        engine=FLAGS.engine or "auto",
    )
    reproduce(plan, console, limits)


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, WHEN_INTERRUPTED, arguments=arguments)
