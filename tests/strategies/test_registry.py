"""Strategies by name, and whether they find what is known to be there."""

from __future__ import annotations

import dataclasses
import runpy

import numpy as np
import pytest
from builders_strategies import (
    KINDS,
    VARIANTS,
    make,
    run,
    step,
    table_fitness,
)
from conftest import REPOSITORY, random_genomes
from scipy.stats import wilcoxon

from jaxevo.config import STRATEGY_KINDS, SearchConfig, replace
from jaxevo.errors import InputError
from jaxevo.search_space.genome import Layout
from jaxevo.search_space.genome_files import pack
from jaxevo.strategies.registry import initial_genomes, make_strategy, waits


def test_every_strategy_is_tested():
    assert set(KINDS) == set(STRATEGY_KINDS)


@pytest.mark.parametrize("pool", ["growing", "survivors"])
@pytest.mark.parametrize("name", KINDS)
def test_what_waits_for_fitness_hands_out_one_at_a_time(name: str, pool: str):
    strategy = make(strategy=name, mating_pool=pool)
    for _ in range(len(strategy.ask())):  # the first generation waits for nothing
        step(strategy, table_fitness)
    config = replace(SearchConfig(), {"strategy": name, "mating_pool": pool})
    assert (len(strategy.ask()) == 1) == waits(config)


@pytest.mark.parametrize("name", KINDS)
def test_strategies_by_name(name: str):
    strategy = make(strategy=name, seed=7)
    assert type(strategy) is KINDS[name]
    assert strategy.best is None and not strategy.done
    assert str(run(strategy, table_fitness)) == str(run(make(strategy=name, seed=7), table_fitness))
    assert str(run(make(strategy=name, seed=8), table_fitness)) != str(
        run(make(strategy=name, seed=7), table_fitness)
    )


GIVEN = random_genomes(3, 2, 4)
TEXT = pack(GIVEN)


def pack_with_layout() -> str:
    return pack([dataclasses.replace(GIVEN[0], layout=Layout(7, 3))])


@pytest.mark.parametrize("settings", VARIANTS)
def test_the_first_candidates_are_those_given_and_the_rest_is_drawn(settings):
    history = run(make(**settings, initial_genomes=TEXT), table_fitness)
    given, drawn = history[:3], history[3:]
    # Where the layout is a gene, a genome without one has the largest of the network's kind.
    kind = "separable" if "vary_conv_kind" in settings else None
    factor = 2 if "min_channel_multiplier" in settings else None
    genes = kind or factor or "min_channels" in settings
    layout = Layout(settings.get("channels", 24), 3, kind, factor) if genes else None
    assert [each.genome for each in given] == [
        dataclasses.replace(genome, layout=layout) for genome in GIVEN
    ]
    assert {(each.generation, each.operators, each.parents) for each in given} == {
        (0, ("given",), ())
    }
    assert not any("given" in each.operators for each in drawn)
    plain = run(make(**settings), table_fitness)
    assert history[3].operators == plain[3].operators
    # Each draw has randomness of its own; only ants learn from what was drawn before.
    if settings["strategy"] != "aco":
        assert history[3].genome == plain[3].genome


@pytest.mark.parametrize("settings", VARIANTS)
@pytest.mark.parametrize("number", [0, 1, 3, 9])
def test_a_search_with_given_genomes_resumes_anywhere(settings, number):
    settings = settings | {"initial_genomes": TEXT}
    whole = run(make(**settings), table_fitness)
    first = make(**settings)
    for _ in range(number):
        step(first, table_fitness)
    second = make(**settings)
    second.load_state_dict(first.state_dict())
    assert str(run(second, table_fitness)) == str(whole[number:])


def test_given_genomes_have_the_networks_kind_of_convolutions_where_that_is_a_gene():
    settings = {"initial_genomes": TEXT, "vary_conv_kind": True, "conv_kind": "full"}
    given = initial_genomes(replace(SearchConfig(), settings))
    assert [each.layout for each in given] == [Layout(24, 3, "full")] * len(GIVEN)
    # A layout without a kind gets the kind alone.
    settings |= {"initial_genomes": pack_with_layout(), "min_channels": 7, "min_normal_cells": 1}
    (own,) = initial_genomes(replace(SearchConfig(), settings))
    assert own.layout is not None and own.layout.genes().items() >= {
        ("channels", 7),
        ("conv_kind", "full"),
    }


def test_a_given_genome_that_fails_is_replaced_by_a_drawn_one():
    history = run(make(initial_genomes=TEXT), lambda each: None if each.id == 1 else 0.5)
    first = [each for each in history if each.generation == 0]
    assert [each.operators for each in first] == [("given",)] * 3 + [("random",)] * 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"population_size": 2}, "3 genomes is not possible: the population has 2; give fewer or"),
        ({"max_nodes": 2}, r"genome \d is not possible: it has a cell of [34] nodes, and the se"),
        ({"min_nodes": 4}, r"cell of [23] nodes, and the search space has 4 to 4 \(min_nodes"),
        ({"initial_genomes": pack_with_layout()}, r"genome 1 is not .*: it has 7 channels, "),
        (
            {"initial_genomes": pack_with_layout(), "min_channels": 2, "channels": 12},
            r"genome 1 is not possible: it has 7 channels, ",
        ),
        ({"initial_genomes": "["}, "initial_genomes cannot be read .*not a JSON document"),
        ({"initial_genomes": "[{}]"}, "initial_genomes cannot be read .*missing key"),
    ],
)
def test_genomes_that_cannot_be_given_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        make(**{"initial_genomes": TEXT} | settings)


def test_as_many_as_the_population_has_can_be_given():
    config = replace(SearchConfig(), {"population_size": 3, "initial_genomes": TEXT})
    assert initial_genomes(config) == GIVEN
    assert initial_genomes(SearchConfig()) == []


def test_a_given_genome_beyond_the_bounds_is_refused():
    config = replace(SearchConfig(), {"initial_genomes": TEXT})
    words = "initial_genomes=genome 2 is not possible: its network is beyond the bounds on size"
    with pytest.raises(InputError, match=words):
        make_strategy(config, lambda genome: genome != GIVEN[1])


@pytest.mark.parametrize(
    ("noise", "bound"), [(0.02, 1e-2), pytest.param(0.0, 1e-3, marks=pytest.mark.slow)]
)
def test_all_beat_random_search_where_the_best_is_known(noise: float, bound: float):
    found = runpy.run_path(str(REPOSITORY / "benchmarks" / "strategies.py"))["found"]
    best = {
        name: np.array([found(name, seed, 120, (6, 6), noise) for seed in range(20)])
        for name in ("rea", "aging", "aco", "random")
    }
    for name in ("rea", "aging", "aco"):
        assert wilcoxon(best[name] - best["random"], alternative="greater").pvalue < bound, name
