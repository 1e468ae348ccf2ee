"""Layouts as genes: which there are, how they vary, and that genomes carry them."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest
from conftest import random_genomes

from jaxevo.config import CONV_KINDS, NetworkConfig
from jaxevo.errors import InputError
from jaxevo.search_space.complexity import check_given, measure, network_settings
from jaxevo.search_space.genome import Genome, Layout
from jaxevo.search_space.genome_files import dumps, loads
from jaxevo.search_space.layouts import LayoutSpace, cross_layouts
from jaxevo.search_space.variation import crossover

SPACE = LayoutSpace.between((2, 24), (1, 3))
WITH_KINDS = LayoutSpace.between((4, 8), (1, 2), CONV_KINDS)
WITH_ALL = LayoutSpace.between((4, 8), (1, 2), CONV_KINDS, channel_multiplier=(1, 2, 3))


def test_the_layouts_between_bounds():
    assert SPACE == LayoutSpace((2, 3, 4, 6, 8, 12, 16, 24), (1, 2, 3))
    assert LayoutSpace.between((5, 7), (2, 2)) == LayoutSpace((5, 6, 7), (2,))
    assert LayoutSpace.between((8, 8), (3, 3)) == LayoutSpace((8,), (3,))
    assert Layout(6, 2) in SPACE and Layout(5, 2) not in SPACE and Layout(6, 4) not in SPACE
    assert Layout(6, 2, "full") not in SPACE and Layout(6, 2) not in WITH_KINDS
    assert all(Layout(6, 2, kind) in WITH_KINDS for kind in CONV_KINDS)


def test_random_layouts_are_equally_likely():
    rng = np.random.default_rng(0)
    drawn = collections.Counter(SPACE.random(rng) for _ in range(4800))
    # 24 layouts, 200 of each to be expected; a standard deviation is 13.8.
    assert len(drawn) == 24 and all(130 < number < 270 for number in drawn.values())


def test_a_mutation_is_a_step_of_one_gene():
    rng = np.random.default_rng(0)
    middle = Layout(6, 2)
    seen = {SPACE.mutate(rng, middle, 1.0) for _ in range(200)}
    assert seen == {Layout(4, 2), Layout(8, 2), Layout(6, 1), Layout(6, 3)}
    corner = Layout(24, 3)
    seen = {SPACE.mutate(rng, corner, 1.0) for _ in range(200)}
    assert seen == {corner, Layout(16, 3), Layout(24, 2)}
    assert all(SPACE.mutate(rng, middle, 0.0) == middle for _ in range(20))


def test_the_kind_of_convolutions_varies_where_it_is_a_gene():
    rng = np.random.default_rng(0)
    drawn = collections.Counter(WITH_KINDS.random(rng) for _ in range(2400))
    # 12 layouts, 200 of each to be expected; a standard deviation is 13.5.
    assert len(drawn) == 12 and all(130 < number < 270 for number in drawn.values())
    assert {layout.conv_kind for layout in drawn} == set(CONV_KINDS)
    middle = Layout(6, 1, "full")
    seen = {WITH_KINDS.mutate(rng, middle, 1.0) for _ in range(200)}
    assert seen == {
        *(Layout(4, 1, "full"), Layout(8, 1, "full"), Layout(6, 2, "full")),
        *(middle, Layout(6, 1, "separable")),
    }
    one, other = Layout(4, 1, "full"), Layout(4, 1, "separable")
    crossed = collections.Counter(cross_layouts(rng, one, other, bias=0.6) for _ in range(1000))
    # 600 of a thousand, with a standard deviation of 15.5.
    assert crossed.keys() == {one, other} and 520 < crossed[one] < 680


def test_the_factor_on_the_width_varies_where_it_is_a_gene():
    rng = np.random.default_rng(0)
    drawn = collections.Counter(WITH_ALL.random(rng) for _ in range(7200))
    # 36 layouts, 200 of each to be expected; a standard deviation is 13.9.
    assert len(drawn) == 36 and all(130 < number < 270 for number in drawn.values())
    assert all(layout in WITH_ALL for layout in drawn)
    assert Layout(6, 2, "full") not in WITH_ALL and Layout(6, 2, "full", 4) not in WITH_ALL
    assert Layout(6, 2, "full", 2) not in WITH_KINDS
    middle = Layout(6, 1, "full", 2)
    seen = {WITH_ALL.mutate(rng, middle, 1.0) for _ in range(300)}
    assert seen == {
        *(Layout(4, 1, "full", 2), Layout(8, 1, "full", 2), Layout(6, 2, "full", 2)),
        *(middle, Layout(6, 1, "separable", 2), Layout(6, 1, "full", 1), Layout(6, 1, "full", 3)),
    }
    one, other = Layout(4, 1, "full", 1), Layout(4, 1, "full", 3)
    crossed = collections.Counter(cross_layouts(rng, one, other, bias=0.6) for _ in range(1000))
    assert crossed.keys() == {one, other} and 520 < crossed[one] < 680


def test_without_the_kind_the_draws_are_those_of_before():
    rng, known = np.random.default_rng(7), np.random.default_rng(7)
    for _ in range(50):
        drawn = SPACE.random(rng)
        assert drawn == Layout(int(known.choice(SPACE.channels)), int(known.choice((1, 2, 3))))
        mutated = SPACE.mutate(rng, drawn, 1.0)
        known.random(), known.integers(2), known.choice((-1, 1))
        assert mutated.conv_kind is None
        cross_layouts(rng, drawn, mutated, bias=0.5)
        known.random(2)
    assert rng.random() == known.random()


def test_crossover_takes_each_gene_of_one_parent():
    rng = np.random.default_rng(0)
    one, other = Layout(4, 1), Layout(16, 3)
    drawn = collections.Counter(cross_layouts(rng, one, other, bias=0.6) for _ in range(1000))
    assert drawn.keys() == {one, other, Layout(4, 3), Layout(16, 1)}
    # 360, 160, 240 and 240 of a thousand; five standard deviations are 76 at most.
    for layout, expected in ((one, 360), (other, 160), (Layout(4, 3), 240), (Layout(16, 1), 240)):
        assert abs(drawn[layout] - expected) < 80
    first, second = random_genomes(2)
    with_layouts = [dataclasses.replace(first, layout=one), dataclasses.replace(second, layout=one)]
    assert crossover(rng, *with_layouts, bias=0.5).layout == one
    assert crossover(rng, first, second, bias=0.5).layout is None


def test_files_and_keys_tell_layouts_apart():
    (genome,) = random_genomes(1)
    wide = dataclasses.replace(genome, layout=Layout(12, 2))
    narrow = dataclasses.replace(genome, layout=Layout(2, 12 // 2))
    assert len({each.canonical_key() for each in (genome, wide, narrow)}) == 3
    assert loads(dumps(wide, {"seed": 1})) == (wide, {"seed": 1})
    assert Layout(12, 2).describe() == "12 channels, 2 normal cells"
    assert Layout(12, 2, "full").describe() == "12 channels, 2 normal cells, full convolutions"
    assert "layout" not in dumps(genome) and '"layout": {"channels": 12, ' in dumps(wide)
    assert "conv_kind" not in dumps(wide) and wide.canonical_key().endswith(" / 12x2")
    kinds = [dataclasses.replace(genome, layout=Layout(12, 2, kind)) for kind in CONV_KINDS]
    assert len({each.canonical_key() for each in (wide, *kinds)}) == 3
    assert [loads(dumps(each))[0] for each in kinds] == kinds
    # A factor on the width is told apart from none, and from another kind or number.
    steady = Layout(12, 2, channel_multiplier=1)
    words = "12 channels, 2 normal cells, width x1 after a reduction cell"
    assert steady.describe() == words
    factors = [
        dataclasses.replace(genome, layout=Layout(12, 2, kind, factor))
        for kind in (None, *CONV_KINDS)
        for factor in (None, 1, 2)
    ]
    assert len({each.canonical_key() for each in factors}) == 9
    assert [loads(dumps(each))[0] for each in factors] == factors


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"channels": 4}, "layout: missing key 'num_normal_cells'"),
        ({"channels": 0, "num_normal_cells": 2}, "layout: channels is a whole number from 1 to"),
        (
            {"channels": 4, "num_normal_cells": 11},
            "layout: num_normal_cells is a whole number from",
        ),
        ({"channels": True, "num_normal_cells": 2}, "layout: channels is a whole number from 1 to"),
        (
            {"channels": 4, "num_normal_cells": 2, "conv_kind": "dense"},
            "layout: conv_kind is one of separable, full, not 'dense'",
        ),
        ({"channels": 4, "num_normal_cells": 2, "kind": "full"}, "layout: unknown key 'kind'"),
        *(
            (
                {"channels": 4, "num_normal_cells": 2, "channel_multiplier": factor},
                "layout: channel_multiplier is a whole number from 1 to 4, not",
            )
            for factor in (0, 5, 1.5)
        ),
        ([4, 2], "layout: expected an object, found list"),
    ],
)
def test_layouts_that_cannot_be_are_refused(layout: object, message: str):
    (genome,) = random_genomes(1)
    with pytest.raises(ValueError, match=f"^{message}"):
        Genome.from_dict(genome.to_dict() | {"layout": layout})


def test_sizes_are_those_of_settings_with_the_same_values():
    config, shape = NetworkConfig(channels=24, num_normal_cells=3), (28, 20, 3)
    for seed, genome in enumerate(random_genomes(100)):
        layout = SPACE.random(np.random.default_rng(seed))
        if seed % 2:
            layout = dataclasses.replace(layout, conv_kind="full", channel_multiplier=seed % 3 + 1)
        own = dataclasses.replace(genome, layout=layout)
        settings = dataclasses.replace(config, **layout.genes())
        assert network_settings(own, config) == settings
        assert network_settings(genome, config) == config
        expected = measure(genome, settings, shape, num_classes=7)
        assert measure(own, config, shape, num_classes=7) == expected


def test_settings_beside_an_own_layout_are_refused():
    (genome,) = random_genomes(1)
    own = dataclasses.replace(genome, layout=Layout(12, 2))
    check_given(genome, ("channels",))
    check_given(own, ("dropout_rate",))
    check_given(own, ("conv_kind",))
    with pytest.raises(InputError, match="the genome has channels=12 of its own; leave channels"):
        check_given(own, ("dropout_rate", "channels"))
    full = dataclasses.replace(genome, layout=Layout(12, 2, "full"))
    with pytest.raises(InputError, match="the genome has conv_kind=full of its own; leave conv_k"):
        check_given(full, ("conv_kind",))
