"""The report of a run, finished or not: one page for a browser. JAX is not imported."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxevo.errors import printable
from jaxevo.files import write_text
from jaxevo.reports import page, run_tables, summary
from jaxevo.reports.cell_text import cell_lines
from jaxevo.reports.fitness_curve import fitness_curve
from jaxevo.reports.run_tables import shortened
from jaxevo.run.reader import Run
from jaxevo.run.result import Result
from jaxevo.run.words import class_line, commands_of, percent, worth_lines
from jaxevo.search_space.genome import CELL_KINDS

# Captions of the pictures of `charts.pictures`, by name.
_CAPTIONS = {
    "cells": "The normal cell and the reduction cell.",
    "progress": "Fitness, nodes, parameters and success of operators by generation.",
    "front": "Fitness and size of each candidate, and the front: of its networks none is fitter "
    "and smaller than another.",
    "sizes": "Validation accuracy and size of each candidate, and of what was trained to the end.",
    "training": "Loss and validation accuracy of the winner by epochs of the final training.",
    "confusion": "Classes in rows; in columns, the classes that they are taken for.",
    "parameters": "Test error and size of this run's network, beside the paper's.",
}
# Headings of the candidates' columns, and whether words stand in them.
_COLUMNS = {
    **dict.fromkeys(("id", "generation", "fitness", "parameters", "multiply-adds"), False),
    **dict.fromkeys(("nodes", "parents", "operators", "remark"), True),
}
_MAX_SENTENCE = 1000  # characters of a line with names that others gave


class Fact(NamedTuple):
    """A figure that stands at the head of the page."""

    name: str
    value: str
    more: str


def write_report(run: Run, path: pathlib.Path) -> None:
    """Writes the page of a run with all its pictures. Raises `OSError` and `InputError`."""
    from jaxevo.reports import charts  # takes a second to import

    described = _descriptions(run)
    images = {
        name: page.Picture.of(draw(), _CAPTIONS[name], described.get(name, _CAPTIONS[name]))
        for name, draw in charts.pictures(run).items()
    }
    write_text(path, render_run(run, images))


def render_run(
    run: Run, images: Mapping[str, page.Picture] | None = None, *, reload: int = 0
) -> str:
    """The page of a run.

    Args:
        run: The run.
        images: Pictures by name; None: the curve of fitness stands in their place.
        reload: Seconds after which the page loads itself anew; 0: never.
    """
    dataset = pathlib.Path(run.config.data.dataset).name
    rows = run_tables.candidates(run)
    result = run.result
    return page.render(
        "run.html",
        title=shortened(printable(f"{dataset}, {run.about['preset']}, seed {run.config.seed}")),
        state=summary.state(run),
        reload=reload,
        images=images or {},
        best=run.best,
        facts=_facts(run),
        data=_sentence(f"Data: {run.about['summary'] or run.config.data.dataset}"),
        cells=_cells(run),
        curve=fitness_curve(run) if images is None else None,
        course=[run_tables.generations(run), run_tables.operators(run)],
        front=run_tables.front(run),
        columns=_COLUMNS,
        candidates=rows,
        left_out=len(run.candidates) - len(rows),
        shares=run_tables.shares(run),
        about=run_tables.about(run),
        settings=run_tables.settings(run),
        result=result,
        **({} if result is None else _of_result(run, result)),
    )


def _of_result(run: Run, result: Result) -> dict[str, Any]:
    """What the page of a finished run has beside."""
    confusion = result.confusion()
    weights = str(result.weights)
    return {
        "worth": [_sentence(line) for line in worth_lines(result)],
        "class_line": None if confusion is None else _sentence(class_line(confusion)),
        "classes": run_tables.classes(run),
        "mistakes": result.mistakes(),
        "commands": [printable(line) for line in commands_of(result)],
        "weights": repr(weights),
    }


def _facts(run: Run) -> list[Fact]:
    """The accuracy, the size and the number of candidates, as far as they are known."""
    result = run.result
    best = run.best
    # What is known of the winner, or of the best so far.
    facts = []
    if result is not None and result.test_accuracy is not None and result.test_interval:
        low, high = map(percent, result.test_interval)
        more = f"95 % interval {low} to {high}, {result.test_images:,} images"
        facts.append(Fact("test accuracy", percent(result.test_accuracy), more))
    if result is not None:
        more = f"individual {result.id}, after the final training"
        facts.append(Fact("validation accuracy", percent(result.validation_accuracy), more))
    elif best is not None:
        facts.append(Fact("best fitness so far", percent(best.fitness), f"individual {best.id}"))
    if best is not None:
        size = run.candidates[best.id]
        more = f"{size.multiply_adds:,} multiply-adds an image"
        facts.append(Fact("parameters", f"{size.parameters:,}", more))
    # What was tried.
    if run.candidates:
        reused = sum(each.reused is not None for each in run.candidates.values())
        failed = sum(each.failure is not None for each in run.candidates.values())
        more = f"{reused} isomorphic to an earlier one, {failed} failed"
        facts.append(Fact("candidates", f"{len(run.candidates):,}", more))
    return facts


def _cells(run: Run) -> dict[str, str]:
    """The cells of the best one in words, by kind."""
    if run.best is None:
        return {}
    kinds = zip(CELL_KINDS, run.best.genome.cells, strict=True)
    return {kind: "\n".join(cell_lines(cell)) for kind, cell in kinds}


def _descriptions(run: Run) -> dict[str, str]:
    """What pictures show, for those who do not see them."""
    cells = [f"{kind} cell: {' '.join(words.split())}" for kind, words in _cells(run).items()]
    found = {"cells": "; ".join(cells)}
    rows = [row for row in summary.generations(run) if row.best is not None]
    if rows:
        found["progress"] = (
            f"The best fitness so far is {percent(rows[0].best)} in generation "
            f"{rows[0].generation} and {percent(rows[-1].best)} in generation "
            f"{rows[-1].generation}."
        )
    if run.result is not None and run.result.final_losses:
        losses, accuracies = run.result.final_losses, run.result.final_accuracies
        found["training"] = (
            f"From the first of {len(losses)} epochs to the last the loss goes from "
            f"{losses[0]:.3g} to {losses[-1]:.3g}, the validation accuracy from "
            f"{percent(accuracies[0])} to {percent(accuracies[-1])}."
        )
    if run.result is not None and (confusion := run.result.confusion()) is not None:
        found["confusion"] = f"{_CAPTIONS['confusion']} {class_line(confusion)}."
    return found


def _sentence(text: str) -> str:
    """A printable line that is not too long."""
    line = printable(text[:1].upper() + text[1:])
    return line if len(line) <= _MAX_SENTENCE else f"{line[:_MAX_SENTENCE]}…"
