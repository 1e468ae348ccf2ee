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
        assert drawn(history) == drawn(expected)
        assert other.state_dict() == strategy.state_dict()


def drawn(history: list[Individual]) -> str:
    """All that was drawn, in the order of ids; failures have no equal fitness."""
    by_id = sorted(history, key=lambda individual: individual.id)
    return str([dataclasses.replace(individual, generation=0) for individual in by_id])


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("lag", [1, 2, 5, 9])
def test_a_candidate_depends_on_those_before_the_lag_alone(name: str, lag: int):
    """The newest parents are exactly L before their child, and what is known later is no matter."""
    expected = run(make(strategy=name, lag=lag, seed=4), table_fitness)
    gaps = {individual.id - parent for individual in expected for parent in individual.parents}
    assert not gaps or min(gaps) >= lag
    for changed in range(0, len(expected) - lag, 5):
        # Another fitness of one candidate changes nothing that was drawn before it counted.
        history = run(
            make(strategy=name, lag=lag, seed=4),
            lambda each, changed=changed: 0.99 if each.id == changed else table_fitness(each),
        )
        before = changed + lag
        assert [each.genome for each in history[:before]] == [
            each.genome for each in expected[:before]
        ]


@pytest.mark.parametrize("name", KINDS)
def test_as_many_are_under_way_as_the_lag_says(name: str):
    strategy = make(strategy=name, lag=9, num_generations=6)
    while (waiting := strategy.ask()) and waiting[0].id < 4 + 3 * 6 - 9:
        assert len(waiting) == 9
        step(strategy, lambda individual: individual.id / 100)
    # At the end only those are asked for that the last generation lacks.
    while waiting := strategy.ask():
        assert waiting[-1].id == 4 + 3 * 6 - 1
        step(strategy, lambda individual: individual.id / 100)


@pytest.mark.parametrize("lag", [1, 9])
@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"aco"}))  # cuts its last iteration short
def test_a_run_that_goes_beyond_its_end_is_the_longer_run(name: str, lag: int):
    settings = {"strategy": name, "lag": lag, "seed": 5}
    longer = make(**settings)
    expected = run(longer, table_fitness)
    ended = make(**settings, num_generations=4)
    history = run(ended, table_fitness)
    continued = make(**settings)
    continued.load_state_dict(ended.state_dict())
    assert str(history + run(continued, table_fitness)) == str(expected)
    assert continued.state_dict() == longer.state_dict()


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
    genome = Genome(*(random_cell(np.random.default_rng(0), 5),) * 2)
    large = Individual(99, genome, 0, fitness=0.5, cost=1)
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
