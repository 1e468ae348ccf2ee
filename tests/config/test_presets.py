"""Recipes, strategies and presets are valid, distinct, and what they are called."""

from __future__ import annotations

import json

import pytest
from conftest import REPOSITORY

from jaxevo.config import SearchConfig, TrainingConfig, flatten, replace
from jaxevo.config.presets import (
    ADDED_LATER,
    PRESETS,
    RECIPES,
    STRATEGIES,
    complete,
    final_settings,
    preset,
    search_settings,
)

DOCS = REPOSITORY / "docs"


def test_named_strategies():
    made = {name: replace(SearchConfig(), settings) for name, settings in STRATEGIES.items()}
    assert len(set(made.values())) == len(made)
    assert made["rea"] == SearchConfig()
    assert {name for name, config in made.items() if name == config.strategy} == {
        "rea",
        "aging",
        "random",
        "aco",
        "guided",
        "nsga2",
        "guided_front",
    }
    sizes = {
        name: (config.evolution.population_size, config.evolution.sample_size)
        for name, config in made.items()
        if config.strategy == "aging"
    }
    assert sizes == {"aging": (10, 3), "aging100": (100, 25)}


def test_named_strategies_over_a_preset():
    config = replace(
        SearchConfig(), preset("quick", 1437) | STRATEGIES["aging"] | {"sample_size": 5}
    )
    assert (config.strategy, config.evolution.population_size, config.evolution.sample_size) == (
        "aging",
        10,
        5,
    )
    assert config.evolution.num_offspring == preset("quick", 1437)["num_offspring"]


@pytest.mark.parametrize("num_images", [20, 100, 1437, 2000, 2001, 60_000, 73_257, 10**7])
def test_presets_are_valid(num_images: int):
    assert preset("paper", num_images) == {}
    quick = preset("quick", num_images)
    config = replace(SearchConfig(), quick)
    assert {name: flatten(config)[name] for name in quick} == quick
    assert 0.05 <= config.data.validation_fraction <= 0.2
    assert config.data.train_examples < num_images
    assert 3 <= config.final_training.epochs <= 40


def test_quick_preset_by_hand():
    # digits: 1,437 training images. 300 / 1437 > 0.2; 160,000 // 1437 = 111 epochs are cut to 40.
    digits = preset("quick", 1437)
    assert (digits["validation_fraction"], digits["train_examples"], digits["final_epochs"]) == (
        0.2,
        0,
        40,
    )
    # 4,000 images: 300 / 4000 = 0.075, and 160,000 // 4000 = 40.
    medium = preset("quick", 4000)
    assert (medium["validation_fraction"], medium["train_examples"], medium["final_epochs"]) == (
        0.075,
        1300,
        40,
    )
    # MNIST: 60,000. 300 / 60,000 < 0.05; 160,000 // 60,000 = 2 is raised to 3.
    mnist = preset("quick", 60_000)
    assert (mnist["validation_fraction"], mnist["train_examples"], mnist["final_epochs"]) == (
        0.05,
        1300,
        3,
    )


@pytest.mark.parametrize("side", [2, 8, 15])
def test_quick_halves_small_images_once_and_has_full_convolutions_for_them(side: int):
    names = ("num_normal_cells", "conv_kind", "max_parameters")
    small = preset("quick", 1437, side)
    assert [small[name] for name in names] == [2, "full", 32_000]
    for larger in (16, 28):
        settings = preset("quick", 1437, larger)
        assert [settings[name] for name in names] == [3, "separable", 0]


def test_the_recipe_is_the_presets_where_none_is_named():
    for name, recipe in (("quick", "modern"), ("paper", "paper")):
        expected = final_settings(recipe)
        made = search_settings(name, "rea", None, num_images=1437)
        assert {key: made[key] for key in expected} == expected
        other = search_settings(name, "rea", "paper", num_images=1437)
        assert {key: other[key] for key in expected} == final_settings("paper")


def test_the_strategy_is_the_presets_where_none_is_named():
    for name, strategy in (("quick", "guided"), ("paper", "rea")):
        unnamed, named = (
            search_settings(name, given, None, num_images=1437) for given in (None, strategy)
        )
        assert unnamed == named and unnamed["strategy"] == strategy
    config = replace(SearchConfig(), search_settings("quick", None, None, num_images=9))
    assert (config.fitness, config.evolution.racing) == ("speed", 0.07)


def test_only_the_quick_preset_compares_its_winner():
    configs = [replace(SearchConfig(), preset(name, 1437)) for name in PRESETS]
    assert [config.compare_winner for config in configs] == [True, False]


def test_recipes_say_the_same_settings_and_are_valid():
    paper, modern = RECIPES["paper"], RECIPES["modern"]
    assert all(recipe.keys() == paper.keys() for recipe in RECIPES.values())
    # Less is asked of light's networks than of modern's, and nothing else differs.
    light = RECIPES["light"]
    less = ("label_smoothing", "max_shift", "max_rotation", "max_scale")
    assert all(light[name] < modern[name] for name in less)
    assert all(light[name] == modern[name] for name in light if name not in less)
    assert TrainingConfig(**paper) == TrainingConfig()
    changed = TrainingConfig(**modern)
    assert all(getattr(changed, name) == value != paper[name] for name, value in modern.items())
    for name in (
        "epochs",
        "batch_size",
        "learning_rate",
        "rate_decay",
    ):  # how long and how fast is no recipe's
        assert name not in paper


@pytest.mark.parametrize(
    "path", sorted(DOCS.rglob("config.json")), ids=lambda path: path.parent.name
)
def test_the_configurations_of_recorded_runs_are_completed(path):
    """A setting that is new and not named in `ADDED_LATER` would be missing in them."""
    stored = json.loads(path.read_text())["config"]
    assert complete(stored).keys() == flatten(SearchConfig()).keys()


def test_recipes_settings_are_new_to_runs_of_earlier_versions():
    assert {*RECIPES["paper"], *(f"final_{name}" for name in RECIPES["paper"])} < set(ADDED_LATER)
