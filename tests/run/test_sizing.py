"""Settings for about twenty minutes, over data of all sizes and slow and fast machines."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import preset
from jaxevo.run.sizing import (
    CHOSEN,
    DataSize,
    Fitted,
    choose_settings,
    mean_multiply_adds,
    search_seconds,
)

SHAPES = [(8, 8, 1), (28, 28, 1), (32, 32, 3), (40, 100, 3), (64, 64, 3), (128, 128, 3)]
SHAPES += [(224, 224, 3)]
NUMBERS = [100, 500, 1100, 2000, 5000, 20_000, 70_000]
RATES = [3e8, 1e9, 3e9, 3e10]  # a loaded core; two shared cores; two free ones; a GPU's beginning


def size_of(shape: tuple[int, int, int], number: int, classes: int = 10) -> DataSize:
    return DataSize(*shape, number, classes)


def config_of(number: int, settings: dict[str, Any]) -> SearchConfig:
    return replace(SearchConfig(), preset("quick", number) | settings)


def choose(size: DataSize, rate: float, **given: int) -> Fitted:
    return choose_settings(config_of(size.num_images, given), size, rate, given=given)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_search_takes_ten_to_thirty_minutes_unless_the_preset_itself_takes_less(shape, rate):
    for number in NUMBERS:
        size = size_of(shape, number)
        usual = search_seconds(config_of(number, {}), size, rate)
        choice = choose(size, rate)
        chosen = dict(choice.settings)
        assert chosen.keys() <= set(CHOSEN)
        assert bool(chosen) == (usual > 30 * 60) == bool(choice.description)
        assert choice.seconds == search_seconds(config_of(number, chosen), size, rate)
        # One step alone, that of the image's size, can lead to a little less than ten minutes.
        assert choice.seconds <= 30 * 60 and (not chosen or choice.seconds > 9 * 60)
        # Enough images are left to train on.
        assert chosen.get("train_examples", 0) < 0.7 * number


@pytest.mark.parametrize("rate", [1e8, *RATES])
def test_small_data_keep_the_preset(rate):
    if rate > 1e8:
        assert choose(size_of((8, 8, 1), 1437), rate).settings == {}
    assert choose(size_of((8, 8, 1), 100), rate).settings == {}


def test_photos_are_made_smaller_before_anything_else():
    size = size_of((64, 64, 3), 2000)
    assert choose(size, 9e9).settings == {"image_size": 48}
    choice = choose(size, 1e9)
    assert dict(choice.settings) == {
        "image_size": 32,
        "num_generations": 7,
        "final_epochs": 20,
        "train_examples": 1000,
        "channels": 6,
    }
    assert choice.description == (
        "preset quick is fitted to about 20 min on this machine: image_size=32 instead of 64, "
        "num_generations=7 instead of 11, final_epochs=20 instead of 40, train_examples=1000 "
        "instead of all, channels=6 instead of 8; with more time --image_size=64 "
        "--num_generations=11 --final_epochs=40 --train_examples=0 --channels=8 would be better, "
        "which takes about 4.6 h; another machine may choose otherwise"
    )


def test_a_size_that_was_given_stays_and_small_images_are_never_made_smaller():
    for shape in SHAPES:
        settings = choose(size_of(shape, 2000), 1e9, image_size=0).settings
        assert "image_size" not in settings
    for shape in ((8, 8, 1), (28, 28, 1), (32, 32, 3)):
        assert "image_size" not in choose(size_of(shape, 70_000), 3e8).settings


def test_a_faster_machine_never_gets_less():
    for shape, number in itertools.product(SHAPES, NUMBERS):
        size = size_of(shape, number)
        costs = []
        for rate in RATES:
            settings = dict(choose(size, rate).settings)
            costs.append(search_seconds(config_of(number, settings), size, 1.0))
        assert costs == sorted(costs)


def test_layouts_that_are_genes_and_bounds_on_size_count():
    size = size_of((28, 28, 1), 1000)
    config = replace(SearchConfig(), {"channels": 12})
    whole = mean_multiply_adds(config, size)
    narrow = mean_multiply_adds(replace(config, {"min_channels": 1}), size)
    assert 0 < narrow < 0.6 * whole
    # Full convolutions have several times as many, and half of the genomes have them.
    full = mean_multiply_adds(replace(config, {"conv_kind": "full"}), size)
    both = mean_multiply_adds(replace(config, {"vary_conv_kind": True}), size)
    assert 1.5 * whole < both < 0.9 * full
    bound = round(whole / 2)
    bounded = replace(config, {"max_multiply_adds": bound})
    assert 0 < mean_multiply_adds(bounded, size) < 0.8 * whole
    # Where nothing drawn is within the bounds, the smallest of it counts.
    assert 0 < mean_multiply_adds(replace(config, {"max_parameters": 1}), size) < whole
