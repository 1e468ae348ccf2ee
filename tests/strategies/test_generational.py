"""What every strategy keeps: its budget, independence of the order of telling, resume, replay."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from builders_strategies import (
    KINDS,
    VARIANTS,
    ids,
    make,
    run,
    sizes,
    step,
    table_fitness,
)

from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.strategies.individual import Individual, rank


@pytest.mark.parametrize("settings", VARIANTS)
def test_all_have_the_same_budget_and_replace_what_fails(settings: dict[str, Any]):
    strategy = make(**settings, num_generations=6, stagnation_start=99)
    history = run(
        strategy, lambda individual: None if individual.id in (0, 2, 7, 11, 12, 21) else 0.5
    )
    valid = [individual for individual in history if individual.fitness is not None]
    assert len(valid) == 4 + 3 * 6 and ids(history) == [*range(len(valid) + 6)]
    assert (
        strategy.done
        and strategy.ask() == []
        and strategy.generation == strategy.num_generations + 1
    )
    assert not {parent for individual in history for parent in individual.parents} & {
        0,
        2,
        7,
        11,
        12,
        21,
    }
    with pytest.raises(ValueError, match="individual 3 is not waiting"):
        strategy.tell(history[3])


@pytest.mark.parametrize("settings", VARIANTS)
def test_the_order_of_telling_makes_no_difference(settings: dict[str, Any]):
    expected = run(strategy := make(**settings, seed=2), table_fitness)
    for k in range(6):
        history = run(other := make(**settings, seed=2), table_fitness, np.random.default_rng(k))
        assert str(sorted(history, key=lambda i: i.id)) == str(sorted(expected, key=lambda i: i.id))
        assert other.state_dict() == strategy.state_dict()


@pytest.mark.parametrize("settings", VARIANTS)
def test_resume_at_every_step_gives_the_same_run(settings: dict[str, Any]):
    expected = run(whole := make(**settings, seed=3), table_fitness)
    strategy, history = make(**settings, seed=3), []
    # The model of `guided` takes long: every fourth step is still every place of a generation.
    stride = 4 if settings["strategy"] == "guided" else 1
    for number in range(len(expected) + 1):
        # Before and after candidates are drawn.
        for save_pending in (False, True) if number % stride == 0 else ():
            if save_pending:
                assert strategy.ask() == strategy.ask()
            resumed = make(**settings, seed=3)
            resumed.load_state_dict(json.loads(json.dumps(strategy.state_dict(), allow_nan=False)))
            assert str(history + run(resumed, table_fitness)) == str(expected)
            assert resumed.state_dict() == whole.state_dict()
        if number < len(expected):
            history.append(step(strategy, table_fitness))
    with pytest.raises(ValueError, match="seed 3.*seed 4"):
        make(**settings, seed=4).load_state_dict(whole.state_dict())


@pytest.mark.parametrize("settings", VARIANTS)
def test_a_recorded_run_is_replayed_without_drawing(settings: dict[str, Any]):
    strategy, replayed = make(**settings, seed=3), make(**settings, seed=99)
    while strategy.ask():
        replayed.replay(step(strategy, table_fitness))
        for name in ("population", "best", "events", "generation", "done"):
            assert getattr(replayed, name) == getattr(strategy, name)
    other = {"min_channels": 0} if "min_channels" in settings else {"min_channels": 1}
    recorded = make(strategy=settings["strategy"], **other if settings["strategy"] != "aco" else {})
    (foreign,) = recorded.ask()[:1]
    if settings["strategy"] != "aco":
        with pytest.raises(ValueError, match="a genome with .*, which this search has not"):
            make(**settings).replay(dataclasses.replace(foreign, fitness=0.5, cost=1))
    large = Individual(99, Genome(*(random_cell(np.random.default_rng(0), 5),) * 2), 0, fitness=0.5)
    with pytest.raises(ValueError, match="a cell of 5 nodes, while max_nodes is 4"):
        make(**settings).replay(large)


@pytest.mark.parametrize("name", KINDS)
def test_a_fixed_number_of_nodes_is_kept(name: str):
    history = run(make(strategy=name, min_nodes=3, max_nodes=3), table_fitness)
    assert {sizes(individual.genome) for individual in history} == {(3, 3)}


def test_the_best_of_all_is_kept():
    for name in KINDS.keys() - {
        "guided"
    }:  # which holds the one for the best that is expected to be
        history = run(strategy := make(strategy=name), table_fitness)
        valid = [i for i in history if i.fitness is not None and math.isfinite(i.fitness)]
        assert strategy.best == min(valid, key=rank)
