"""Shows what is in the folder of a run, finished or not, or a genome file; builds no network and needs no GPU.

python launch/inspect_checkpoint.py --workdir=runs/digits-quick-seed0
python launch/inspect_checkpoint.py --workdir=runs/digits-quick-seed0 --id=12    # that one's lineage and genome
python launch/inspect_checkpoint.py --workdir=runs/digits-quick-seed0 --json
python launch/inspect_checkpoint.py --workdir=runs/digits-quick-seed0 --plot=pictures
python launch/inspect_checkpoint.py --genome=evoA.json --plot=pictures
"""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Iterable

import common
from absl import flags
from rich import box
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from jaxevo.errors import InputError, printable
from jaxevo.reports import summary as report
from jaxevo.run import records
from jaxevo.run.records import Run
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome as genomes
from jaxevo.search_space.genome import Genome
from jaxevo.strategies.base import Individual

FLAGS = flags.FLAGS
BAR = 18  # characters of the longest bar
LINEAGE_DEPTH = 6  # generations of ancestors in a tree: more do not fit side by side

flags.DEFINE_string("workdir", None, "folder of the run, such as runs/digits-quick-seed0")
flags.DEFINE_string("genome", None, "instead of a run: a genome file, or a shipped genome such as evoA.json")
flags.DEFINE_integer("id", None, "individual whose lineage and genome are shown (default: the best)", lower_bound=0)
flags.DEFINE_string("export_best", None, "new file to write the best individual's genome to")
flags.DEFINE_string("plot", None, "folder for pictures, as SVG and PNG: the cells shown, and the run's progress")
flags.DEFINE_bool("json", False, "print everything as one JSON document instead")


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def show(console: Console, title: str, headings: str, rows: Iterable[tuple]) -> None:
    """A table, if there are rows; columns are flush right but for headings that begin with `<`; long text is folded."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for heading in headings.split("|"):
        justify = "left" if heading.startswith("<") else "right"
        table.add_column(heading.lstrip("<"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    if table.row_count:
        console.print("", title, table, sep="\n")


def print_header(run: Run, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    for row in report.header(run).items():
        grid.add_row(*row)
    console.print(grid)


def print_generations(run: Run, console: Console) -> None:
    rows = report.generations(run)
    values = [value for row in rows for value in (row.best, row.median) if value is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    table = []
    for row in rows:
        median, best = (round(BAR * ((value or low) - low) / ((high - low) or 1)) for value in (row.median, row.best))
        nodes = f"{row.nodes_normal:.1f} {row.nodes_reduction:.1f}"
        counts = (row.trainings, row.reused, row.failed, "━" * median + "─" * (best - median))
        table.append((row.generation, percent(row.best), percent(row.median), nodes, *counts))
    title = "GENERATIONS  best so far ─; of those born in it: median fitness ━, mean B of both cells"
    show(console, title, f"gen.|best|median|B|trained|reused|failed|<{low:.2%} to {high:.2%}", table)


def print_population(run: Run, console: Console) -> None:
    rows = []
    for member in run.replay.population:
        nodes = f"{member.genome.normal.num_nodes} {member.genome.reduction.num_nodes}"
        origin = (" ".join(map(str, member.parents)), ", ".join(member.operators))
        parameters = f"{run.candidates[member.id].parameters:,}"
        rows.append((member.id, member.generation, percent(member.fitness), nodes, parameters, *origin))
    headings = "id|born|fitness|B|parameters|<parents|<operators"
    show(console, "POPULATION  with B of the normal and the reduction cell", headings, rows)


def print_events(run: Run, console: Console) -> None:
    success = report.operator_success(run)
    rates = [(row.operator, row.applied, row.beat_better_parent or "", row.survived or "") for row in success]
    title = "OPERATORS  95 % intervals in brackets; a child counts for each of its operators"
    show(console, title, "<|applied|<beat the better parent|<survived its generation", rates)
    events = [(e.generation, e.kind, e.best_id, percent(e.best_fitness)) for e in run.replay.events]
    show(console, "STAGNATION AVOIDANCE", "generation|<kind|best|fitness", events)
    before = {r.id: percent(run.candidates[r.id].individual.fitness) for r in run.retrainings}
    again = [(r.id, r.seed, before[r.id], percent(r.fitness), r.failure or "") for r in run.retrainings]
    show(console, "THE BEST TRAINED AGAIN", "id|seed|in the search|now|<failure", again)
    show(console, "FAILURES", "number|<reason", [(count, reason) for reason, count in report.failures(run).items()])
    columns = (*report.PARTS, "total")
    spent = [(step, *(f"{of[c]:.1f}" if c in of else "" for c in columns)) for step, of in report.seconds(run).items()]
    show(console, "SECONDS", "<|" + "|".join(columns), spent)


def lineage(run: Run, known: int, depth: int, expanded: set[int]) -> Tree:
    """An individual with its ancestors below it; the parents of each are shown once."""
    individual = run.candidates[known].individual
    fitness = "failed" if individual.fitness is None else percent(individual.fitness)
    tree = Tree(f"{known}: {fitness}, generation {individual.generation}, {', '.join(individual.operators)}")
    if individual.parents and (known in expanded or not depth):
        tree.label = f"{tree.label} (parents: see {'above' if known in expanded else f'--id={known}'})"
    else:
        expanded.add(known)
        parents = dict.fromkeys(individual.parents)
        tree.children.extend(lineage(run, parent, depth - 1, expanded) for parent in parents)
    return tree


def print_individual(run: Run, known: int, console: Console) -> None:
    candidate = run.candidates[known]
    genome, sizes = candidate.individual.genome, f"{candidate.parameters:,} parameters"
    sizes += f", {candidate.multiply_adds:,} multiply-adds an image"
    notes = "" if candidate.reused is None else f", isomorphic to {candidate.reused}, whose fitness it got"
    notes += f", failed: {candidate.failure}" if candidate.failure else ""
    console.print(f"\nINDIVIDUAL {known}  {sizes}{notes}", lineage(run, known, LINEAGE_DEPTH, set()), sep="\n")
    print_cells(genome, str(known), console)


def print_cells(genome: Genome, of: str, console: Console) -> None:
    for name, cell in (("NORMAL", genome.normal), ("REDUCTION", genome.reduction)):
        console.print(f"\n{name} CELL OF {of}", *report.draw(cell), sep="\n")


def draw(run: Run, folder: pathlib.Path) -> None:
    from jaxevo.reports import charts  # takes a second to import

    folder.mkdir(parents=True, exist_ok=True)
    if not charts.draw_run(run, folder, FLAGS.id):
        raise InputError(f"{run.path} has no individual with a fitness yet, so there is nothing to draw")


def show_genome(name: str, console: Console) -> None:
    """The cells of a genome without a run, in words and, with --plot, in a picture named after its file."""
    for flag in ("id", "export_best", "json"):
        if FLAGS[flag].value != FLAGS[flag].default:
            raise InputError(f"--{flag} is of a run: give it with --workdir=..., not with --genome={name}")
    genome, _ = genomes.find(name)
    if FLAGS.plot:
        from jaxevo.reports import cell_pictures as plots

        folder = pathlib.Path(FLAGS.plot)
        folder.mkdir(parents=True, exist_ok=True)
        plots.save(plots.draw_cells(genome), folder / pathlib.Path(name).stem)
    print_cells(genome, printable(name), console)


def show_run(run: Run, shown: Individual | None, console: Console) -> None:
    """Everything in words; `shown` with its lineage and cells."""
    for part in (print_header, print_generations, print_population, print_events):
        part(run, console)
    if shown is not None:
        print_individual(run, shown.id, console)


def main() -> None:
    """Flags in, one library call, words out."""
    if bool(FLAGS.workdir) == bool(FLAGS.genome):
        raise InputError(
            "give either --workdir=..., the folder of a run, or --genome=..., a genome file, such as evoA.json"
        )
    console = Console(markup=False, highlight=False, emoji=False)
    if FLAGS.genome:
        show_genome(FLAGS.genome, console)
        return
    run = records.load(Workdir(pathlib.Path(FLAGS.workdir)))
    shown = run.find(FLAGS.id)
    if FLAGS.export_best:
        report.export_best(run, pathlib.Path(FLAGS.export_best))
    if FLAGS.plot:
        draw(run, pathlib.Path(FLAGS.plot))
    if FLAGS.json:
        print(json.dumps(report.document(run, shown), indent=2, allow_nan=False))
        return
    show_run(run, shown, console)


if __name__ == "__main__":
    common.run(main, __doc__ or "", "nothing was changed")
    sys.exit(0)
