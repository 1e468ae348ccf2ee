"""The tables of a run's report, of what `summary` computes. JAX is not imported."""

from __future__ import annotations

import math
from typing import NamedTuple

from jaxevo.config import flatten
from jaxevo.reports import descent, summary
from jaxevo.reports.table import Table
from jaxevo.run.front import front_document
from jaxevo.run.reader import Run
from jaxevo.run.records import Candidate
from jaxevo.run.words import format_duration, percent

MAX_ROWS = 2500  # of candidates: a page with so many is smaller than a megabyte
_MAX_CHARACTERS = 120  # of what others wrote, such as the reason of a failure
# Parts of a run's header that stand elsewhere on its page.
_ELSEWHERE = {"state", "images", "result", "search"}


class Row(NamedTuple):
    """A candidate."""

    id: int
    generation: int
    fitness: float | None
    parameters: int
    multiply_adds: int
    nodes: str  # of the normal and the reduction cell
    parents: tuple[int, ...]
    operators: str
    remark: str


class TimeShare(NamedTuple):
    """Seconds of a part, and their share of the whole."""

    part: str
    seconds: float
    share: float


def candidates(run: Run) -> list[Row]:
    """The candidates, the best first; of very many the best."""
    line = {each.id for each in descent.ancestors(run, run.best.id)} if run.best else set()
    order = sorted(
        run.candidates.values(),
        key=lambda each: (math.inf if each.fitness is None else -each.fitness, each.id),
    )
    rows = []
    for candidate in order[:MAX_ROWS]:
        individual = candidate.individual
        normal, reduction = individual.genome.cells
        row = Row(
            candidate.id,
            individual.generation,
            candidate.fitness,
            candidate.parameters,
            candidate.multiply_adds,
            f"{normal.num_nodes} + {reduction.num_nodes}",
            individual.parents,
            shortened(", ".join(individual.operators)),
            shortened(_remark(run, candidate, line)),
        )
        rows.append(row)
    return rows


def _remark(run: Run, candidate: Candidate, line: set[int]) -> str:
    """What else there is to know; `line` are the ids of the best one and of its ancestors."""
    remarks = []
    if run.best and candidate.id == run.best.id:
        remarks.append("the winner" if run.result else "the best so far")
    elif candidate.id in line:
        remarks.append("ancestor")
    if candidate.reused is not None:
        remarks.append(f"same as {candidate.reused}")
    if candidate.failure:
        remarks.append(f"failed: {candidate.failure}")
    return ", ".join(remarks)


def generations(run: Run) -> Table:
    """The course of the search."""
    rows = [
        (
            *(str(row.generation), percent(row.best), percent(row.median)),
            *(f"{row.nodes_normal:.1f}", f"{row.nodes_reduction:.1f}"),
            *(str(row.trainings), str(row.reused), str(row.failed)),
        )
        for row in summary.generations(run)
    ]
    columns = ("generation", "best so far", "median of those born", "nodes, normal cell")
    columns += ("nodes, reduction cell", "trained", "reused", "failed")
    return Table("Generations; nodes are means of those born", columns, rows)


def operators(run: Run) -> Table:
    """How often each operator helped."""
    rows = [
        (
            *(shortened(row.operator), str(row.applied)),
            *(str(row.beat_better_parent or ""), str(row.survived or "")),
        )
        for row in descent.operator_success(run)
    ]
    columns = ("operator", "applied", "beat the better parent", "survived its generation")
    caption = "Operators, with 95 % intervals; a child counts for each of its operators"
    return Table(caption, columns, rows)


def front(run: Run) -> Table | None:
    """The trained networks of the front; None without two objectives, or before the end."""
    if run.result is None or not run.config.seeks_front:
        return None
    found = front_document(run.result, run.config, run.candidates)
    rows = [
        (
            f"{member['id']}{' (knee)' if member['id'] == found['knee'] else ''}",
            *(f"{member['parameters']:,}", f"{member['multiply_adds']:,}"),
            *(percent(member["retrained_fitness"]), percent(member["validation_accuracy"])),
            member["weights"],
        )
        for member in found["members"]
    ]
    columns = ("individual", "parameters", "multiply-adds", "retrained fitness")
    columns += ("validation accuracy", "weights")
    return Table("The front's networks, trained to the end, the smallest first", columns, rows)


def classes(run: Run) -> Table:
    """How well each class is known; without rows where that is not known."""
    rows = []
    for row in summary.class_scores(run):
        listed = row.frequent_mistakes()
        words = (shortened(row.name), f"{row.images:,}", percent(row.accuracy), shortened(listed))
        rows.append(words)
    columns = ("class", "images", "accuracy", "most often taken for")
    return Table("Accuracy of each class", columns, rows, "remarks")


def shares(run: Run) -> list[tuple[str, list[TimeShare]]]:
    """Where the time went: captions, each with the parts of a whole."""
    steps = {step: of["total"] for step, of in summary.seconds(run).items()}
    found = [("Trainings of all sessions", steps)]
    if run.result:
        session = dict(run.result.session_seconds)
        whole = format_duration(sum(session.values()))
        found.append((f"The session that ended the run, {whole}", session))
    tables = []
    for caption, seconds in found:
        if whole := sum(seconds.values()):
            parts = sorted(seconds.items(), key=lambda part: -part[1])
            rows = [TimeShare(shortened(part), spent, spent / whole) for part, spent in parts]
            tables.append((caption, rows))
    return tables


def about(run: Run) -> Table:
    """Where and with what the run was made."""
    header = summary.header(run).items()
    rows = [(name, value) for name, value in header if name not in _ELSEWHERE]
    return Table("The run", ("what", "value"), rows, "words")


def settings(run: Run) -> Table:
    """All settings."""
    rows = [(name, shortened(str(value))) for name, value in flatten(run.config).items()]
    return Table("Settings, by flag", ("flag", "value"), rows, "words")


def shortened(text: str) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
