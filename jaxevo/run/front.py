"""The front of a search with two objectives: networks of which none is better and smaller.

JAX is not imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jaxevo.config import SearchConfig
from jaxevo.run.records import Candidate
from jaxevo.run.result import Result
from jaxevo.strategies.dominance import Point, fronts, hypervolume, knee


def candidate_points(candidates: Iterable[Candidate]) -> list[Point]:
    """Fitness and cost of each candidate that has both."""
    individuals = (candidate.individual for candidate in candidates)
    return [
        (each.fitness, float(each.cost))
        for each in individuals
        if each.fitness is not None and each.cost is not None
    ]


def trained_networks(result: Result) -> list[tuple[int, float, float]]:
    """Id, retrained fitness and final validation accuracy of the winner and of those kept."""
    winner = (result.id, result.retrained_fitness, result.validation_accuracy)
    return [winner, *((k.id, k.retrained_fitness, k.validation_accuracy) for k in result.kept)]


def front_document(
    result: Result, config: SearchConfig, candidates: Mapping[int, Candidate]
) -> dict[str, Any]:
    """The content of `front.json`, the smallest network first.

    Members are the winner and the kept networks that none of these dominates by the accuracy on the
    validation images after the final training and by the cost. The hypervolume is that of all
    candidates by the fitness of the search, see `dominance.hypervolume`.
    """
    trained = trained_networks(result)
    # Keep the networks that none dominates.
    points = [
        (accuracy, float(candidates[known].individual.cost or 0)) for known, _, accuracy in trained
    ]
    chosen = fronts(points)[0]
    # Describe each with its files.
    members = []
    for known, fitness, accuracy in (trained[place] for place in chosen):
        files = (
            ("best.json", "best") if known == result.id else (f"kept/{known}.json", f"kept/{known}")
        )
        candidate = candidates[known]
        members.append(
            {
                "id": known,
                "parameters": candidate.parameters,
                "multiply_adds": candidate.multiply_adds,
                "retrained_fitness": fitness,
                "validation_accuracy": accuracy,
                **dict(zip(("genome", "weights"), files, strict=True)),
            }
        )
    found = candidate_points(candidates.values())
    return {
        "minimize": config.minimize,
        "members": members,
        "knee": members[knee([points[place] for place in chosen])]["id"],
        "hypervolume": hypervolume(found, max(cost for _, cost in found)),
    }
