"""A run summed up, by pure functions of the `Run` that `run.reader` reads.

JAX is not imported.
"""

from __future__ import annotations

import dataclasses
import math
import pathlib
import statistics
from collections import Counter
from typing import Any

from jaxevo import config as configs
from jaxevo.errors import printable
from jaxevo.reports import descent
from jaxevo.run.changes import describe
from jaxevo.run.reader import Run
from jaxevo.run.records import PARTS, Candidate
from jaxevo.run.words import accuracy_line, worth_lines
from jaxevo.strategies.individual import Individual

_MISTAKES = 5  # of a class that are named


@dataclasses.dataclass(frozen=True)
class Generation:
    """The trials of one generation; `trainings` counts those that failed too."""

    generation: int
    best: float | None  # of all up to its end
    median: float | None  # of those born in it
    nodes_normal: float  # mean B of those born in it
    nodes_reduction: float
    trainings: int
    reused: int
    failed: int


@dataclasses.dataclass(frozen=True)
class ClassScore:
    """How well the winner knows a class."""

    name: str
    images: int
    accuracy: float | None  # None for a class without images
    taken_for: dict[str, int]  # images by class, the most frequent first

    def frequent_mistakes(self) -> str:
        """The most frequent other classes, with their counts."""
        wrong = [f"{name} ({n:,})" for name, n in self.taken_for.items() if name != self.name]
        return ", ".join(wrong[:_MISTAKES]) + (", ..." if len(wrong) > _MISTAKES else "")


@dataclasses.dataclass(frozen=True)
class ClusterNode:
    """A machine on which candidates were trained."""

    name: str
    processes: int
    candidates: int
    again: int  # of them, those that took a second attempt
    lost: int  # how often one of them was lost with a node before
    seconds: float  # of their trainings


def state(run: Run) -> str:
    """State of a run: complete, or how far it has come."""
    # A run searches, trains the best again, and trains the winner to the end.
    config = run.config
    replay = run.replay
    if run.result:
        return "complete"
    if not run.searched:
        where = f"in generation {replay.generation} of {replay.num_generations}"
        return f"incomplete: {where}, {len(run.candidates)} candidates known"
    if run.changes:
        return "incomplete: after the change the winner is chosen and trained anew"
    asked = config.num_retrainings
    if len(run.records.retrainings) < asked and not run.checkpoints["final"]:
        return (
            f"incomplete: training the best again, {len(run.records.retrainings)} of at most "
            f"{asked} trainings known"
        )
    epoch = max(run.checkpoints["final"], default=0)
    return (
        f"incomplete: in the final training, after epoch {epoch} of {config.final_training.epochs}"
    )


def header(run: Run) -> dict[str, str]:
    """A run's identity and result, in words."""
    data = run.config.data
    about = run.about
    result = run.result
    lines = {
        "run": printable(str(run.path)),
        "state": state(run),
        "data set": f"{data.dataset}, preset {about['preset']}, seed {run.config.seed}",
        **({"images": about["summary"]} if about["summary"] else {}),
        "device": about["device"],
        "versions": ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        "checkpoints": "; ".join(
            f"{k} {', '.join(map(str, v)) or 'none'}" for k, v in run.checkpoints.items()
        ),
    }
    for number, change in enumerate(run.changes, 1):
        lines[f"change {number}"] = printable(f"{change.time}: {describe(change)}")
    if result:
        lines["result"] = f"individual {result.id}: {accuracy_line(result)}"
        lines["search"] = "\n".join(map(printable, worth_lines(result)))
    return lines


def data_name(run: Run) -> str:
    """The data set's name for a title: of a path the last part, of a long one its end."""
    return pathlib.Path(run.config.data.dataset).name[-40:]


def name_of(run: Run, individual: Individual) -> str:
    """Whose cells are drawn, in words."""
    winner = run.result is not None and run.result.id == individual.id
    kind = "winner, individual" if winner else "individual"
    found = f"search by {run.config.strategy} on {data_name(run)}, seed {run.config.seed}"
    return printable(f"Cells of the {kind} {individual.id}: {found}")


def generations(run: Run) -> list[Generation]:
    """The course of the search, generation by generation.

    Individuals drawn after hard stagnation avoidance belong to the generation it ended.
    """
    rows: list[Generation] = []
    best: float | None = None
    for number in sorted(
        {candidate.individual.generation for candidate in run.candidates.values()}
    ):
        born = [
            candidate
            for candidate in run.candidates.values()
            if candidate.individual.generation == number
        ]
        fitness = [c.individual.fitness for c in born if c.individual.fitness is not None]
        best = max((value for value in (best, *fitness) if value is not None), default=None)
        nodes = [
            (c.individual.genome.normal.num_nodes, c.individual.genome.reduction.num_nodes)
            for c in born
        ]
        normal, reduction = (statistics.fmean(column) for column in zip(*nodes, strict=True))
        reused = sum(candidate.reused is not None for candidate in born)
        median = statistics.median(fitness) if fitness else None
        failed = len(born) - len(fitness)
        rows.append(
            Generation(number, best, median, normal, reduction, len(born) - reused, reused, failed)
        )
    return rows


def class_scores(run: Run) -> list[ClassScore]:
    """How well the winner knows each class, by the images that its result was measured on.

    There are none in an incomplete run, or one of an earlier version.
    """
    confusion = run.result.confusion() if run.result else None
    if confusion is None:
        return []
    names, images = confusion.class_names, confusion.images.tolist()
    rows = []
    for k, counts in enumerate(confusion.counts.tolist()):
        found = [(names[j], number) for j, number in enumerate(counts) if number]
        taken_for = dict(sorted(found, key=lambda each: -each[1]))
        rows.append(ClassScore(names[k], images[k], confusion.accuracies[k], taken_for))
    return rows


def failures(run: Run) -> dict[str, int]:
    """Number of candidates that failed for each reason, the most frequent first."""
    return dict(
        Counter(c.failure for c in run.candidates.values() if c.failure is not None).most_common()
    )


def nodes(run: Run) -> list[ClusterNode]:
    """What each node did of the candidates that other processes trained, the busiest first."""
    trained: dict[str, list[Candidate]] = {}
    for candidate in run.candidates.values():
        if candidate.place is not None:
            trained.setdefault(candidate.place.node, []).append(candidate)
    rows = []
    for name, candidates in sorted(trained.items(), key=lambda item: (-len(item[1]), item[0])):
        places = [candidate.place for candidate in candidates if candidate.place is not None]
        rows.append(
            ClusterNode(
                name,
                processes=len({place.where for place in places}),
                candidates=len(candidates),
                again=sum(place.attempt > 1 for place in places),
                lost=sum(place.lost for place in places),
                seconds=math.fsum(math.fsum(each.seconds.values()) for each in candidates),
            )
        )
    return rows


def seconds(run: Run) -> dict[str, dict[str, float]]:
    """Seconds by step of the run and, within it, by part.

    The final training's are known once it is complete.
    """
    spent = {}
    for step, records in (
        ("search", list(run.candidates.values())),
        ("retraining", run.records.retrainings),
    ):
        spent[step] = {
            part: math.fsum(record.seconds.get(part, 0.0) for record in records) for part in PARTS
        }
        spent[step]["total"] = math.fsum(spent[step].values())
    return spent | (
        {"final training": {"total": run.result.seconds["final"]}} if run.result else {}
    )


def document(run: Run, shown: Individual | None) -> dict[str, Any]:
    """The run as plain values for JSON, with the genome and the lineage of `shown`."""
    best = run.best
    lists = (run.replay.population, [] if shown is None else descent.ancestors(run, shown.id))
    population, lineage = (
        [individual.to_dict() | _sizes(run, individual) for individual in those] for those in lists
    )
    return {
        "workdir": str(run.path),
        "dataset": run.config.data.dataset,
        "seed": run.config.seed,
        **run.about,
        "config": configs.flatten(run.config),
        "complete": run.result is not None,
        "state": state(run),
        "changes": [change.to_dict() for change in run.changes],
        "checkpoints": run.checkpoints,
        "best": None if best is None else best.id,
        "generations": [dataclasses.asdict(row) for row in generations(run)],
        "population": population,
        "individual": None if shown is None else shown.to_dict() | _sizes(run, shown),
        "lineage": lineage,
        "operators": [dataclasses.asdict(row) for row in descent.operator_success(run)],
        "stagnation": [dataclasses.asdict(event) for event in run.replay.events],
        "retrainings": [retraining.to_dict() for retraining in run.records.retrainings],
        "failures": failures(run),
        "nodes": [dataclasses.asdict(row) for row in nodes(run)],
        "seconds": seconds(run),
        "result": run.result.to_dict() if run.result else None,
        "classes": [dataclasses.asdict(row) for row in class_scores(run)],
    }


def _sizes(run: Run, individual: Individual) -> dict[str, Any]:
    candidate = run.candidates[individual.id]
    return {
        name: getattr(candidate, name)
        for name in ("parameters", "multiply_adds", "reused", "failure")
    }
