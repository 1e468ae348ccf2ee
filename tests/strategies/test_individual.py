"""Individuals: their rank, who survives, and their way through JSON."""

from __future__ import annotations

import json

from builders_strategies import (
    ids,
    make,
    run,
)

from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.strategies.individual import Individual, select_survivors

CELL = Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),))
GENOME = Genome(CELL, CELL)


def pool_of(*fitness: float) -> list[Individual]:
    return [Individual(index, GENOME, 0, fitness=value) for index, value in enumerate(fitness)]


def test_survivors_are_the_best_and_the_older_of_equals():
    pool = pool_of(0.5, 0.9, 0.5, 0.1, 0.9, 0.5)
    assert ids(select_survivors(pool, 4)) == [1, 4, 0, 2]
    assert ids(select_survivors(reversed(pool), 4)) == [1, 4, 0, 2]


def test_individuals_round_trip_through_json():
    for individual in run(make(strategy="rea", seed=5), lambda i: 0.1 + i.id / 3):
        assert Individual.from_dict(json.loads(json.dumps(individual.to_dict()))) == individual
