"""Bounds on size: genomes beyond them are drawn again before training, and are no failures."""

from __future__ import annotations

import dataclasses

import pytest

from jaxevo.config import NetworkConfig, SearchConfig, replace
from jaxevo.errors import InputError
from jaxevo.search_space.complexity import measure
from jaxevo.search_space.genome import Genome
from jaxevo.strategies import generational
from jaxevo.strategies.registry import make_strategy

NETWORK = NetworkConfig(channels=8)


def size(genome: Genome) -> int:
    return measure(genome, NETWORK, (8, 8, 1), num_classes=10).parameters


def told(strategy) -> list[dict]:
    """Every candidate of a search, with a fitness made of its id."""
    candidates = []
    while asked := strategy.ask():
        for candidate in asked:
            evaluated = dataclasses.replace(candidate, fitness=candidate.id * 37 % 101 / 101)
            candidates.append(evaluated.to_dict())
            strategy.tell(evaluated)
    return candidates


@pytest.mark.parametrize("kind", ["rea", "aging", "random", "aco"])
def test_all_candidates_are_within_the_bound(kind):
    settings = {"strategy": kind, "num_generations": 4, "max_nodes": 4, "num_ants": 10}
    config = replace(SearchConfig(), settings)
    free = told(make_strategy(config))
    sizes = sorted(size(Genome.from_dict(each["genome"])) for each in free)
    bound = sizes[len(sizes) // 2]
    bounded = told(make_strategy(config, lambda genome: size(genome) <= bound))
    assert [each["id"] for each in bounded] == list(range(config.num_candidates))
    assert max(size(Genome.from_dict(each["genome"])) for each in bounded) <= bound
    # As often asked, as often the same; and a bound that all are within changes nothing.
    assert told(make_strategy(config, lambda genome: size(genome) <= bound)) == bounded
    assert told(make_strategy(config, lambda genome: True)) == free


def test_a_bound_that_nothing_is_within_is_refused(monkeypatch):
    monkeypatch.setattr(generational, "MAX_DRAWS", 20)
    strategy = make_strategy(SearchConfig(), lambda genome: False)
    with pytest.raises(InputError, match="none of 20 genomes drawn for individual 0 is within"):
        strategy.ask()


def test_a_configuration_knows_what_fits():
    config = replace(SearchConfig(), {"max_parameters": 100})
    assert config.fits(100, 10**9)
    assert not config.fits(101, 0)
    assert SearchConfig().fits(10**9, 10**9)
