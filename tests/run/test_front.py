"""The front of a search with two objectives: its members, knee and hypervolume, by hand."""

from __future__ import annotations

import pytest
from builders_runs import GENOME, make_result

from jaxevo.config import SearchConfig, replace
from jaxevo.run.front import candidate_points, front_document
from jaxevo.run.records import Candidate
from jaxevo.run.result import Kept
from jaxevo.strategies.dominance import hypervolume
from jaxevo.strategies.individual import Individual

CONFIG = replace(SearchConfig(), {"strategy": "nsga2"})


def candidate(known: int, fitness: float | None, parameters: int) -> Candidate:
    cost = CONFIG.cost(parameters, 7 * parameters)
    individual = Individual(known, GENOME, 0, fitness=fitness, cost=cost)
    failure = None if fitness is not None else "diverged"
    return Candidate(individual, parameters, 7 * parameters, failure=failure)


def test_members_are_the_trained_networks_that_none_dominates(tmp_path):
    sizes = ((0, 0.9, 1000), (1, 0.7, 100), (2, 0.8, 500), (3, 0.6, 90), (4, None, 80))
    candidates = {known: candidate(known, *rest) for known, *rest in sizes}
    kept = (
        Kept(1, 0.71, 0.95, 100),
        Kept(2, 0.79, 0.94, 500),  # dominated: 1 is smaller and better after the final training
        Kept(3, 0.61, 0.66, 90),
    )
    result = make_result(
        tmp_path, id=0, validation_accuracy=0.97, retrained_fitness=0.88, kept=kept
    )
    document = front_document(result, CONFIG, candidates)
    assert [member["id"] for member in document["members"]] == [3, 1, 0]
    assert document["members"][0] == {
        **{"id": 3, "parameters": 90, "multiply_adds": 630, "retrained_fitness": 0.61},
        **{"validation_accuracy": 0.66, "genome": "kept/3.json", "weights": "kept/3"},
    }
    assert document["members"][2]["genome"] == "best.json"
    assert (document["knee"], document["minimize"]) == (1, "parameters")
    points = [(0.9, 1000.0), (0.7, 100.0), (0.8, 500.0), (0.6, 90.0)]
    assert candidate_points(candidates.values()) == points
    assert document["hypervolume"] == pytest.approx(hypervolume(points, 1000.0))


def test_a_front_of_one(tmp_path):
    result = make_result(tmp_path, id=0, validation_accuracy=0.9)
    document = front_document(result, CONFIG, {0: candidate(0, 0.9, 50)})
    assert document["knee"] == 0 and len(document["members"]) == 1


def test_cost_is_what_is_minimised():
    assert CONFIG.cost(3, 40) == 3
    assert replace(CONFIG, {"minimize": "multiply_adds"}).cost(3, 40) == 40
    assert SearchConfig().cost(3, 40) is None
