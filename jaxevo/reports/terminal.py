"""A run in the terminal, as tables and a lineage.

The tables show its generations, population, operators, events and times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from jaxevo.reports import descent, summary
from jaxevo.reports.cell_text import cell_lines
from jaxevo.run.reader import Run
from jaxevo.run.words import percent
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome import CELL_KINDS, Genome
from jaxevo.strategies.individual import Individual

BAR = 18  # characters of the longest bar
MAX_CLASSES = 30  # in a table: of more, the weakest are shown
LINEAGE_DEPTH = 6  # generations of ancestors in a tree: more do not fit side by side


def show_run(run: Run, shown: Individual | None, console: Console) -> None:
    """Everything in words; `shown` with its lineage and cells."""
    for part in (print_header, print_classes, print_kept, print_generations):
        part(run, console)
    for part in (print_population, print_events):
        part(run, console)
    if shown is not None:
        print_individual(run, shown.id, console)


def show(
    console: Console, title: str, headings: str | Sequence[str], *, rows: Iterable[tuple]
) -> None:
    """Shows a table, if there are rows; headings are listed, or divided by `|`.

    Columns are flush right but for headings that begin with `<`; long text is folded.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 1))
    for heading in headings.split("|") if isinstance(headings, str) else headings:
        justify = "left" if heading.startswith("<") else "right"
        table.add_column(heading.lstrip("<"), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    if table.row_count:
        console.print("", title, table, sep="\n")


def print_header(run: Run, console: Console) -> None:
    grid = Table.grid(padding=(0, 2))
    for row in summary.header(run).items():
        grid.add_row(*row)
    console.print(grid)


def print_classes(run: Run, console: Console) -> None:
    """Accuracies by class, and what classes are taken for: as a matrix where it fits."""
    scores = summary.class_scores(run)
    names = [row.name for row in scores]
    about = [(row.name, row.images, percent(row.accuracy)) for row in scores]
    if (matrix := _matrix(scores, console.width)) is not None:
        rows = [(*first, *cells) for first, cells in zip(about, matrix, strict=True)]
        title = "CLASSES  in rows; in columns, the classes that they are taken for"
        show(console, title, ["<", "images", "accuracy", *names], rows=rows)
        return
    # Else the weakest classes, and the most frequent mistakes of each.
    order = sorted(range(len(scores)), key=lambda k: scores[k].accuracy or 0.0)[:MAX_CLASSES]
    rows = [(*about[k], scores[k].frequent_mistakes()) for k in order]
    title = "CLASSES  the weakest first, with the classes that they are taken for (images)"
    show(console, title, "<|images|accuracy|<taken for", rows=rows)


def _matrix(scores: Sequence[summary.ClassScore], width: int) -> list[list[str]] | None:
    """Counts in words, a row a class; None where the table is wider than so many characters."""
    names = [row.name for row in scores]
    if 2 * len(names) > width:
        return None
    matrix = [[str(row.taken_for.get(name, "·")) for name in names] for row in scores]
    columns = [("", *names), *zip(names, *matrix, strict=True)]
    # Two characters lie between two columns.
    needed = sum(2 + max(map(len, column)) for column in columns) + len("images  accuracy  ")
    return matrix if needed <= width else None


def print_kept(run: Run, console: Console) -> None:
    kept = run.result.kept if run.result else ()
    rows = [
        (each.id, percent(each.retrained_fitness), percent(each.validation_accuracy))
        + (f"{each.parameters:,}", Workdir(run.path).weights(each.id))
        for each in kept
    ]
    headings = "id|retrained|validation|parameters|<weights"
    show(console, "KEPT BESIDE THE WINNER  after the same final training", headings, rows=rows)


def print_generations(run: Run, console: Console) -> None:
    rows = summary.generations(run)
    values = [value for row in rows for value in (row.best, row.median) if value is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    heavy, light = "=-" if console.options.ascii_only else "━─"
    table = []
    for row in rows:
        median, best = (
            round(BAR * ((value or low) - low) / ((high - low) or 1))
            for value in (row.median, row.best)
        )
        nodes = f"{row.nodes_normal:.1f} {row.nodes_reduction:.1f}"
        counts = (row.trainings, row.reused, row.failed, heavy * median + light * (best - median))
        table.append((row.generation, percent(row.best), percent(row.median), nodes, *counts))
    title = (
        f"GENERATIONS  best so far {light}; of those born in it: median fitness {heavy}, mean B of "
        "both cells"
    )
    show(
        console,
        title,
        f"gen.|best|median|B|trained|reused|failed|<{low:.2%} to {high:.2%}",
        rows=table,
    )


def print_population(run: Run, console: Console) -> None:
    rows = []
    for member in run.replay.population:
        nodes = f"{member.genome.normal.num_nodes} {member.genome.reduction.num_nodes}"
        origin = (" ".join(map(str, member.parents)), ", ".join(member.operators))
        parameters = f"{run.candidates[member.id].parameters:,}"
        rows.append(
            (member.id, member.generation, percent(member.fitness), nodes, parameters, *origin)
        )
    headings = "id|born|fitness|B|parameters|<parents|<operators"
    show(console, "POPULATION  with B of the normal and the reduction cell", headings, rows=rows)


def print_events(run: Run, console: Console) -> None:
    success = descent.operator_success(run)
    rates = [
        (row.operator, row.applied, row.beat_better_parent or "", row.survived or "")
        for row in success
    ]
    title = "OPERATORS  95 % intervals in brackets; a child counts for each of its operators"
    show(console, title, "<|applied|<beat the better parent|<survived its generation", rows=rates)
    events = [(e.generation, e.kind, e.best_id, percent(e.best_fitness)) for e in run.replay.events]
    show(console, "STAGNATION AVOIDANCE", "generation|<kind|best|fitness", rows=events)
    before = {
        r.id: percent(run.candidates[r.id].individual.fitness) for r in run.records.retrainings
    }
    again = [
        (r.id, r.repeat, before[r.id], percent(r.fitness), r.failure or "")
        for r in run.records.retrainings
    ]
    show(console, "THE BEST TRAINED AGAIN", "id|seed|in the search|now|<failure", rows=again)
    show(
        console,
        "FAILURES",
        "number|<reason",
        rows=[(count, reason) for reason, count in summary.failures(run).items()],
    )
    rows = [
        (row.name, row.processes, row.candidates, row.again or "", row.lost or "")
        + (f"{row.seconds:.1f}",)
        for row in summary.nodes(run)
    ]
    headings = "<|processes|candidates|tried again|lost before|seconds"
    show(console, "NODES  of candidates that other processes trained", headings, rows=rows)
    columns = (*summary.PARTS, "total")
    spent = [
        (step, *(f"{of[c]:.1f}" if c in of else "" for c in columns))
        for step, of in summary.seconds(run).items()
    ]
    show(console, "SECONDS", "<|" + "|".join(columns), rows=spent)


def lineage(run: Run, known: int, depth: int, *, expanded: set[int]) -> Tree:
    """An individual with its ancestors below it; the parents of each are shown once."""
    individual = run.candidates[known].individual
    fitness = "failed" if individual.fitness is None else percent(individual.fitness)
    tree = Tree(
        f"{known}: {fitness}, generation {individual.generation}, {', '.join(individual.operators)}"
    )
    if individual.parents and (known in expanded or not depth):
        tree.label = (
            f"{tree.label} (parents: see {'above' if known in expanded else f'--id={known}'})"
        )
    else:
        expanded.add(known)
        parents = dict.fromkeys(individual.parents)
        tree.children.extend(
            lineage(run, parent, depth - 1, expanded=expanded) for parent in parents
        )
    return tree


def print_individual(run: Run, known: int, console: Console) -> None:
    candidate = run.candidates[known]
    genome = candidate.individual.genome
    sizes = f"{candidate.parameters:,} parameters"
    sizes += f", {candidate.multiply_adds:,} multiply-adds an image"
    notes = (
        ""
        if candidate.reused is None
        else f", isomorphic to {candidate.reused}, whose fitness it got"
    )
    notes += f", failed: {candidate.failure}" if candidate.failure else ""
    console.print(
        f"\nINDIVIDUAL {known}  {sizes}{notes}",
        lineage(run, known, LINEAGE_DEPTH, expanded=set()),
        sep="\n",
    )
    print_cells(genome, str(known), console)


def print_cells(genome: Genome, of: str, console: Console) -> None:
    if genome.layout is not None:
        console.print(f"\nLAYOUT OF {of}  {genome.layout.describe()}")
    for kind, cell in zip(CELL_KINDS, genome.cells, strict=True):
        console.print(f"\n{kind.upper()} CELL OF {of}", *cell_lines(cell), sep="\n")
