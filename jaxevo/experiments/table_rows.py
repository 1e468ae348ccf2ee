"""The paper's tables made again, beside the published figures: rows, captions and files."""

from __future__ import annotations

import dataclasses
import pathlib
import statistics
from typing import Any

from jaxevo.config.presets import MODELS
from jaxevo.experiments.parts import PartFailedError
from jaxevo.experiments.reproduction import Reproduction, shipped_genome
from jaxevo.files import write_csv, write_json, write_text
from jaxevo.intervals import summarize
from jaxevo.networks.baselines import Architecture
from jaxevo.reports import paper_tables
from jaxevo.reports.page import render_tables
from jaxevo.reports.paper_tables import SEARCHED, DataPair
from jaxevo.run.explore import SearchFailedError
from jaxevo.training.fit import DivergedError
from jaxevo.versions import changed_versions


def table_rows(made: Reproduction, model: str, task: DataPair) -> list[dict[str, Any]]:
    """The rows of a model, one for each way of resizing the test images."""
    row = paper_tables.published_row(model, task)
    if model == "deepswarm":
        return [row]
    # Search the genome, and train the seeds, where that is missing.
    folder = made.folder(model, task)
    try:
        architecture = made.architecture(model)
        trained = made.fit(folder, architecture, task)
    except (SearchFailedError, DivergedError, PartFailedError) as error:
        return [row | {"seeds": len(made.seeds), "note": f"failed: {error}"}]
    # Describe the model and its training, and score the seeds unless one failed.
    notes = (_provenance(made, model), row["note"], *_other_versions(trained))
    row |= _described(made, architecture, task, trained=trained) | {
        "note": "; ".join(filter(None, notes))
    }
    if failures := [each["failure"] for each in trained if each["failure"]]:
        return [row | {"note": f"failed: {failures[0]}"}]
    return [row | scores for scores in _scores(made, folder, task)]


def _described(
    made: Reproduction, model: Architecture, task: DataPair, *, trained: list[dict[str, Any]]
) -> dict[str, Any]:
    """Sizes, and how it was trained."""
    size = made.builder(task).complexity(model)
    images = len(made.train[task.trained_on].images)
    number = made.budget.train_examples or images
    epochs = made.training.epochs
    return {
        "parameters": size.parameters,
        "multiply_adds": size.multiply_adds,
        "seeds": len(made.seeds),
        "training": f"{epochs} epoch{'s' * (epochs > 1)} of {number:,} of {images:,} images",
        "seconds": statistics.fmean(each["seconds"] for each in trained),
        "device": ", ".join(sorted({each["device"] for each in trained})),
    }


def _scores(made: Reproduction, folder: pathlib.Path, task: DataPair) -> list[dict[str, Any]]:
    """Accuracies of all seeds' weights, for each way of resizing the test images."""
    scores = [made.score(folder, seed, task) for seed in made.seeds]
    rows = []
    for method, test in made.tests[task].items():
        found = summarize([score[method] for score in scores], len(test))
        low, high = found["interval"]
        resize = method if len(made.tests[task]) > 1 else None
        rows.append(
            {
                "resize": resize,
                "mean": found["mean"],
                "std": found["std"],
                "low": low,
                "high": high,
            }
        )
    return rows


def _provenance(made: Reproduction, model: str) -> str:
    """Origin of a genome; nothing for hand-designed networks."""
    if model in MODELS:
        return ""
    if model in SEARCHED:
        number = made.search_config(model).num_candidates
        return f"genome: the best of {number} candidates on mnist, preset {made.budget.preset}"
    number = shipped_genome(model)[1]["provenance"]["candidates"]
    return f"genome: shipped, one of the best of {number} candidates on mnist"


def write_table(made: Reproduction, rows: list[dict[str, Any]]) -> None:
    """The table as far as it is made."""
    caption = _caption(made, rows)
    path = made.path / made.plan.table
    write_text(path.with_suffix(".md"), paper_tables.markdown(rows, caption))
    title = f"The paper's table {made.plan.table}"
    page = render_tables(title, caption, [paper_tables.table_of(rows)])
    write_text(path.with_suffix(".html"), page)
    write_csv(path.with_suffix(".csv"), rows)
    write_json(path.with_suffix(".json"), {"caption": caption, "rows": rows})


def _caption(made: Reproduction, rows: list[dict[str, Any]]) -> str:
    """Budget, split and protocol."""
    training = made.training
    number = len(made.seeds)
    devices = "; ".join(sorted({row["device"] for row in rows if row["device"]}))
    lines = [
        f"Table {made.plan.table} of the paper, budget {made.plan.budget}, "
        f"recipe {made.plan.recipe}, on {devices}: {number} training{'s' * (number > 1)} of each "
        f"model, batch {training.batch_size}, Adam at {training.learning_rate:g}. All models are "
        "trained alike, on the training split (a stratified part of it where the remark says so) "
        "for a number of epochs that was fixed before; each trained network is scored once on the "
        "test split, and nothing is chosen by that. A genome is as good as the search it comes "
        "from, whose size the remark names. Intervals are 95 %: Wilson's over the test images for "
        "one training; for several, of both trainings and test images, which all trainings share."
    ]
    # The networks of each data set, and whether its split is the official one.
    tasks = {task.trained_on: task for task in made.table.tasks}
    for name, task in tasks.items():
        network = made.budget.networks[name]
        lines.append(
            f"Genomes' networks on {name}: D={network.channels}, N={network.num_normal_cells}."
        )
        if name == "svhn_cropped":
            builder = dataclasses.replace(made.builder(task), network=paper_tables.SVHN_AS_WRITTEN)
            size = builder.complexity(made.architecture("evoA")).parameters
            lines.append(
                "As the paper writes it (D=32, N=4, each normal cell thrice) EvoA would have "
                f"{size:,} parameters there; of its sizes only those of D=32 and N=3 come near."
            )
    tested = {task.tested_on: len(next(iter(tests.values()))) for task, tests in made.tests.items()}
    for name, data in sorted(made.train.items()):
        lines.append(paper_tables.unofficial(name, len(data.images), tested.get(name)))
    return " ".join(filter(None, lines))


def _other_versions(parts: list[dict[str, Any]]) -> list[str]:
    """Versions with which finished parts were made, where other ones are here now."""
    return sorted({f"trained with {change}" for part in parts for change in changed_versions(part)})
