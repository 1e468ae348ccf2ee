"""The candidates that a search draws: within its bounds, and those of a record once more."""

from __future__ import annotations

import dataclasses

import pytest
from builders import STRATEGIES, Table, chain, config_of, explore_and_choose, no_complexity

from jaxevo.config import SearchConfig, replace
from jaxevo.files import FileError
from jaxevo.run.drawn import bounded_strategy, check_drawn, within_bounds
from jaxevo.run.reader import load_run
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Genome
from jaxevo.strategies import guided_front
from jaxevo.strategies.dominance import gains


def by_nodes(genome: Genome) -> Complexity:
    """100 parameters and 10 multiply-adds a node."""
    nodes = sum(cell.num_nodes for cell in genome.cells)
    return Complexity(parameters=100 * nodes, multiply_adds=10 * nodes)


def test_bounds_on_either_size():
    for name, unit in (("max_parameters", 100), ("max_multiply_adds", 10)):
        fits = within_bounds(replace(SearchConfig(), {name: 6 * unit}), by_nodes)
        assert fits is not None and [fits(chain(number)) for number in (2, 3, 4)] == [
            True,
            True,
            False,
        ]
    assert within_bounds(SearchConfig(), by_nodes) is None


@pytest.mark.parametrize("strategy", ["rea", "random", "guided"])
def test_what_is_drawn_lies_within_the_bounds(strategy: str):
    bounded = config_of(strategy, max_parameters=600)
    drawn = bounded_strategy(bounded, by_nodes).ask()
    assert drawn and all(by_nodes(each.genome).parameters <= 600 for each in drawn)


@pytest.mark.parametrize("minimize", ["parameters", "multiply_adds"])
def test_a_model_of_a_front_is_told_what_is_minimised(monkeypatch, minimize: str):
    config = config_of("guided_front", minimize=minimize, max_parameters=3000)
    strategy = bounded_strategy(config, by_nodes)
    asked: list[tuple[list[float], list[float]]] = []

    def noted(points, others):
        asked.append(([cost for _, cost in points], [cost for _, cost in others]))
        return gains(points, others)

    monkeypatch.setattr(guided_front, "gains", noted)
    told: list[float] = []
    while not strategy.done:
        each = strategy.ask()[0]
        size = by_nodes(each.genome)
        cost = size.parameters if minimize == "parameters" else size.multiply_adds
        if each.generation > 0:  # a model chose it among proposals of several sizes
            costs, known = asked[-1]
            assert cost in costs and max(costs) <= (3000 if minimize == "parameters" else 300)
            assert sorted(known) == sorted(told)
        told.append(float(cost))
        strategy.tell(dataclasses.replace(each, fitness=cost / 9999, cost=cost))
    assert any(len(set(costs)) > 1 for costs, _ in asked)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_a_run_has_is_drawn_again_without_training(tmp_path, strategy):
    explore_and_choose(tmp_path, config_of(strategy), evaluate=Table())
    run = load_run(Workdir(tmp_path))
    check_drawn(run.config, no_complexity, run.candidates)
    last = max(run.candidates)
    other = dataclasses.replace(run.candidates[last].individual, genome=chain(2))
    changed = run.candidates | {last: dataclasses.replace(run.candidates[last], individual=other)}
    with pytest.raises(FileError, match=f"another genome for individual {last}"):
        check_drawn(run.config, no_complexity, changed)
