"""Shows the folder of a run, finished or not, or a genome file.

No network is built, and no GPU is needed.

    python -m jaxevo inspect --workdir=runs/digits-quick-seed0
    # One individual's lineage and genome:
    python -m jaxevo inspect --workdir=runs/digits-quick-seed0 --id=12
    # A network that was kept beside the winner, to predict with:
    python -m jaxevo inspect --workdir=runs/digits-quick-seed0 --id=12 --export_weights=W
    python -m jaxevo inspect --workdir=runs/digits-quick-seed0 --json
    python -m jaxevo inspect --workdir=runs/digits-quick-seed0 --plot=pictures
    # One page for a browser, of any run:
    python -m jaxevo inspect --workdir=runs/digits-quick-seed0 --report=report.html
    python -m jaxevo inspect --genome=evoA.json --plot=pictures
"""

from __future__ import annotations

import json
import pathlib

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.errors import InputError, printable
from jaxevo.files import check_file_place, check_place
from jaxevo.reports import copies, summary, terminal
from jaxevo.run.reader import Run, load_run
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files

FLAGS = flags.FLAGS

flags.DEFINE(shared.PATH, "workdir", None, "folder of the run, such as runs/digits-quick-seed0")
flags.DEFINE(
    shared.PATH,
    "genome",
    None,
    "instead of a run: a genome file, or a shipped genome such as evoA.json",
)
flags.DEFINE_integer(
    "id",
    None,
    "individual whose lineage and genome are shown and exported (default: the best)",
    lower_bound=0,
)
flags.DEFINE(
    shared.PATH,
    "export_best",
    None,
    "new file to write a genome to: the best individual's, or that of --id",
)
flags.DEFINE(
    shared.PATH,
    "export_weights",
    None,
    "new folder to copy the trained network of --id, or the winner's, to; see --keep of search",
)
flags.DEFINE(
    shared.PATH,
    "plot",
    None,
    "folder for pictures, as SVG and PNG: the cells shown, and the run's progress",
)
flags.DEFINE(
    shared.PATH,
    "report",
    None,
    "file to write the run to as one page for a browser, which is replaced if it is there",
)
flags.DEFINE_bool("json", False, "print everything as one JSON document instead")


def draw(run: Run, folder: pathlib.Path) -> None:
    from jaxevo.reports import charts  # takes a second to import

    folder.mkdir(parents=True, exist_ok=True)
    if not charts.draw_run(run, folder, FLAGS.id):
        raise InputError(
            f"{run.path} has no individual with a fitness yet, so there is nothing to draw"
        )


def show_genome(name: str, console: Console) -> None:
    """Shows the cells of a genome without a run.

    They are shown in words and, with --plot, in a picture named after the genome's file.
    """
    for flag in ("id", "export_best", "export_weights", "report", "json"):
        if FLAGS[flag].value != FLAGS[flag].default:
            raise InputError(
                f"--{flag} is of a run: give it with --workdir=..., not with --genome={name}"
            )
    genome, _ = genome_files.find(name)
    if FLAGS.plot:
        from jaxevo.reports import cell_pictures as plots

        folder = pathlib.Path(FLAGS.plot)
        folder.mkdir(parents=True, exist_ok=True)
        stem = pathlib.Path(name).stem
        plots.save(plots.draw_cells(genome, f"Cells of {printable(stem)}"), folder / stem)
    terminal.print_cells(genome, printable(name), console)


def main(_: Console) -> None:
    """Flags in, one library call, words out."""
    if bool(FLAGS.workdir) == bool(FLAGS.genome):
        raise InputError(
            "give either --workdir=..., the folder of a run, or --genome=..., a genome file, such "
            "as evoA.json"
        )
    console = Console(markup=False, highlight=False, emoji=False)
    if FLAGS.genome:
        show_genome(FLAGS.genome, console)
        return
    run = load_run(Workdir(pathlib.Path(FLAGS.workdir)))
    shown = run.find(FLAGS.id)
    if FLAGS.export_best:
        check_file_place("--export_best", FLAGS.export_best)
    if FLAGS.export_weights:
        check_place("--export_weights", FLAGS.export_weights)
    if FLAGS.export_best:
        copies.write_genome(run, shown, pathlib.Path(FLAGS.export_best))
    if FLAGS.export_weights:
        copies.copy_weights(run, FLAGS.id, pathlib.Path(FLAGS.export_weights))
    if FLAGS.plot:
        draw(run, pathlib.Path(FLAGS.plot))
    if FLAGS.report:
        from jaxevo.reports.run_page import write_report

        write_report(run, pathlib.Path(FLAGS.report))
    if FLAGS.json:
        print(json.dumps(summary.document(run, shown), indent=2, allow_nan=False))
        return
    terminal.show_run(run, shown, console)


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, "nothing was changed", arguments=arguments)
