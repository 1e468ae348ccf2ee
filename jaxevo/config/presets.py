"""Named settings: training recipes, strategies, presets of a search, hand-designed models.

All but the models are settings by flag name; flags that are given go over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxevo.config import SearchConfig, check_known, flatten

# Training beyond the paper's, by name. How long, and at which rate, is no part of a recipe.
RECIPES: dict[str, dict[str, Any]] = {
    "paper": {
        "schedule": "exponential",
        "warmup": 0.0,
        "label_smoothing": 0.0,
        "max_shift": 0.0,
        "max_rotation": 0.0,
        "max_scale": 0.0,
        "weight_average": 0.0,
    },
    "modern": {
        "schedule": "cosine",
        "warmup": 0.05,
        "label_smoothing": 0.1,
        "max_shift": 0.07,
        "max_rotation": 10.0,
        "max_scale": 0.1,
        "weight_average": 0.998,
    },
}
# Networks of a few thousand parameters have too little room for all that `modern` asks of them.
RECIPES["light"] = RECIPES["modern"] | {
    "label_smoothing": 0.0,
    "max_shift": 0.035,
    "max_rotation": 5.0,
    "max_scale": 0.05,
}

# Strategies by name, with the settings that make them: Real et al. 2018 had P=100 and S=25; the
# rest are ablations.
STRATEGIES: dict[str, dict[str, Any]] = {
    "rea": {"strategy": "rea"},
    "aging": {"strategy": "aging", "population_size": 10, "sample_size": 3},
    "aging100": {"strategy": "aging", "population_size": 100, "sample_size": 25},
    "random": {"strategy": "random"},
    "aco": {"strategy": "aco"},
    # On digits, MNIST and USPS the sum of losses tells at least as much of a genome as accuracy
    # (docs/fitness.md), and it allows a race. Seeds spread it by 5 to 7 % of itself.
    "guided": {"strategy": "guided", "fitness": "speed", "racing": 0.07},
    # The front is what is kept.
    "nsga2": {"strategy": "nsga2", "keep": 6, "retrain_best": 6},
    "guided_front": {
        "strategy": "guided_front",
        "fitness": "likelihood",
        "keep": 6,
        "retrain_best": 6,
    },
    "rea_no_crossover": {"strategy": "rea", "crossover": False},
    "rea_no_avoidance": {"strategy": "rea", "stagnation_avoidance": False},
    "rea_b3": {"strategy": "rea", "min_nodes": 3, "max_nodes": 3},
    "rea_b4": {"strategy": "rea", "min_nodes": 4, "max_nodes": 4},
}

PRESETS = ("quick", "paper")
# Of each preset, where none is named. At equal cost `guided` found better networks than the others
# on a model of 500 genomes' trainings (docs/results.md).
FINAL_RECIPES = {"quick": "modern", "paper": "paper"}
DEFAULT_STRATEGIES = {"quick": "guided", "paper": "rea"}

SMALL_CNN = "small_cnn"
MODELS: tuple[str, ...] = ("resnet18", SMALL_CNN)  # hand-designed, see `baselines`


def preset(name: str, num_images: int, side: int = 28) -> dict[str, Any]:
    """Settings by flag name that a preset changes.

    `paper` changes nothing. `quick` is a search for two CPU cores: small networks, few candidates
    of 50 to 60 steps at a higher learning rate. Half as many, trained twice as long, found less
    (docs/results.md). The final training sees each image less often the more there are. Images
    smaller than 16 pixels are halved once, not twice, and their networks have full convolutions, of
    which larger ones would take longer: on digits these were the better networks (docs/results.md).

    Args:
        name: One of `PRESETS`.
        num_images: Images of the training split.
        side: The smaller side of the images in pixels.
    """
    if name == "paper":
        return {}
    validation = min(0.2, max(0.05, 300 / num_images))
    tiny = side < 16
    return {
        "population_size": 6,
        "num_offspring": 6,
        "num_generations": 11,
        "channels": 8,
        "num_normal_cells": 2 if tiny else 3,
        "conv_kind": "full" if tiny else "separable",
        "max_parameters": 32_000 if tiny else 0,
        "validation_fraction": round(validation, 3),
        "train_examples": 1300 if num_images > 2000 else 0,
        "epochs": 3,
        "learning_rate": 1e-2,
        "final_epochs": min(40, max(3, 160_000 // num_images)),
        "final_learning_rate": 1e-2,
        "retrain_best": 3,
        "retrain_seeds": 2,
        "compare_winner": True,
    }


def search_settings(
    preset_name: str,
    strategy: str | None,
    recipe: str | None,
    *,
    num_images: int,
    side: int = 28,
) -> dict[str, Any]:
    """Settings by flag name of a preset, a strategy and the final training's recipe.

    None for strategy or recipe takes the preset's. The preset is for data of `num_images` images
    whose smaller side is `side`. Raises `InputError` for an unknown name.
    """
    check_known("preset", preset_name, PRESETS)
    named = strategy_settings(strategy or DEFAULT_STRATEGIES[preset_name])
    final = final_settings(recipe or FINAL_RECIPES[preset_name])
    return preset(preset_name, num_images, side) | final | named


def strategy_settings(name: str) -> dict[str, Any]:
    """Settings by flag name of a strategy. Raises `InputError` for an unknown name."""
    check_known("strategy", name, STRATEGIES)
    return dict(STRATEGIES[name])


def final_settings(recipe: str) -> dict[str, Any]:
    """Settings by flag name of a final training by a recipe. Raises `InputError`."""
    check_known("recipe", recipe, RECIPES)
    return {f"final_{name}": value for name, value in RECIPES[recipe].items()}


# Settings that runs of earlier versions do not have; the defaults are what those did.
ADDED_LATER = (
    *("pixel_range", "background", "skip_unreadable"),
    *("strategy", "max_trainings", "crossover", "stagnation_avoidance"),
    *("max_parameters", "max_multiply_adds", "target_accuracy", "fitness", "minimize"),
    *("keep", "compare_winner", "class_weights", "initial_genomes"),
    *("min_channels", "min_normal_cells", "vary_conv_kind", "min_channel_multiplier"),
    *("output_relu", "layout_mutation_prob", "lag", "racing"),
    *("num_ants", "greediness", "pheromone_start", "pheromone_decay", "pheromone_evaporation"),
    *(prefix + name for prefix in ("", "final_") for name in RECIPES["paper"]),
)


def complete(stored: Mapping[str, Any]) -> dict[str, Any]:
    """A run's settings by flag name, where one of an earlier version lacks newer settings.

    The defaults of these change nothing.
    """
    defaults = flatten(SearchConfig())
    return {name: defaults[name] for name in ADDED_LATER} | dict(stored)
