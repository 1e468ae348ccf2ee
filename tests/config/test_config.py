"""All settings: the paper's values, what is refused and in which words, and flag names."""

from __future__ import annotations

from typing import Any

import pytest

from jaxevo.config import (
    ColonyConfig,
    DataConfig,
    EvolutionConfig,
    NetworkConfig,
    SearchConfig,
    TrainingConfig,
    flatten,
    leaf_fields,
    replace,
)
from jaxevo.errors import InputError

# Section 4.2 of the paper, and below the line what the paper leaves open.
DEFAULTS = {
    "population_size": 10,  # P
    "num_offspring": 10,  # F
    "sample_size": 2,  # S
    "num_generations": 200,  # G
    "min_nodes": 2,  # B_min
    "max_nodes": 6,  # B_max
    "crossover_bias": 0.6,  # tau_cross
    "op_mutation_prob": 0.4,  # tau_m-op
    "edge_mutation_prob": 0.4,  # tau_m-edge
    "add_node_prob": 0.2,  # tau_b
    "stagnant_op_mutation_prob": 0.6,  # tau_m-op-avoid
    "stagnant_edge_mutation_prob": 0.6,  # tau_m-edge-avoid
    "stagnation_start": 50,
    "stagnation_patience": 40,  # A_stag
    "mating_pool": "growing",  # Algorithm 1
    "lag": 1,  # Algorithm 1
    "crossover": True,
    "stagnation_avoidance": True,
    "racing": 0.0,
    "channels": 24,  # D
    "channel_multiplier": 2,  # K
    "num_normal_cells": 3,
    "normal_repeats": 1,
    "dropout_rate": 0.2,
    "epochs": 15,
    "batch_size": 64,
    "learning_rate": 1e-4,
    "final_epochs": 100,
    "final_batch_size": 64,
    "final_learning_rate": 1e-3,
    "validation_fraction": 0.1,
    "train_examples": 0,
    # ---
    "rate_decay": 0.01,
    "final_rate_decay": 0.01,
    "schedule": "exponential",
    "final_schedule": "exponential",
    "warmup": 0.0,
    "final_warmup": 0.0,
    "label_smoothing": 0.0,
    "final_label_smoothing": 0.0,
    "max_shift": 0.0,
    "final_max_shift": 0.0,
    "max_rotation": 0.0,
    "final_max_rotation": 0.0,
    "max_scale": 0.0,
    "final_max_scale": 0.0,
    "weight_average": 0.0,
    "final_weight_average": 0.0,
    "precision": "float32",
    "conv_kind": "separable",
    "dataset": "digits",
    "image_size": 0,
    "resize": "stretch",
    "pixel_range": "",
    "background": "auto",
    "skip_unreadable": False,
    "seed": 0,
    "reuse_fitness": True,
    "retrain_best": 3,
    "retrain_seeds": 2,
    "fitness": "accuracy",
    "minimize": "parameters",
    "min_channels": 0,
    "min_normal_cells": 0,
    "output_relu": False,
    "vary_conv_kind": False,
    "min_channel_multiplier": 0,
    "layout_mutation_prob": 0.4,
    "class_weights": "none",
    "initial_genomes": "",
    "keep": 1,
    "compare_winner": False,
    "candidates_per_step": 1,
    "max_consecutive_failures": 20,
    "engine": "auto",
    "strategy": "rea",
    "max_trainings": 0,
    "max_parameters": 0,
    "max_multiply_adds": 0,
    "target_accuracy": 0.0,
    # DeepSwarm's
    "num_ants": 16,
    "greediness": 0.5,
    "pheromone_start": 0.1,
    "pheromone_decay": 0.1,
    "pheromone_evaporation": 0.1,
}
# Config, field, value, and the rule that the message gives.
RANGE_RULE = "write the value of black, then the larger one of white, such as 0,255"
REFUSED: list[tuple[type, str, Any, str]] = [
    (EvolutionConfig, "population_size", 0, "the smallest value is 1"),
    (EvolutionConfig, "num_offspring", 0, "the smallest value is 1"),
    (EvolutionConfig, "sample_size", 0, "the smallest value is 1"),
    (EvolutionConfig, "sample_size", 11, "only 10 individuals can be drawn (population_size)"),
    (EvolutionConfig, "num_generations", -1, "the smallest value is 0"),
    (EvolutionConfig, "min_nodes", 0, "the smallest value is 1"),
    (EvolutionConfig, "max_nodes", 1, "min_nodes is 2"),
    (EvolutionConfig, "max_nodes", 13, "a cell has at most 12 nodes"),
    (EvolutionConfig, "min_channels", -1, "the smallest value is 0"),
    (EvolutionConfig, "min_normal_cells", -1, "the smallest value is 0"),
    (EvolutionConfig, "min_channel_multiplier", -1, "the smallest value is 0"),
    (EvolutionConfig, "layout_mutation_prob", 1.01, "a probability lies between 0 and 1"),
    (EvolutionConfig, "lag", 0, "the smallest value is 1"),
    (EvolutionConfig, "lag", 10_001, "the largest value is 10000"),
    (EvolutionConfig, "population_size", 10**9, "the largest value is 10000"),
    (EvolutionConfig, "num_offspring", 10**9, "the largest value is 10000"),
    (EvolutionConfig, "crossover_bias", 1.01, "a probability lies between 0 and 1"),
    (EvolutionConfig, "op_mutation_prob", -0.1, "a probability lies between 0 and 1"),
    (EvolutionConfig, "edge_mutation_prob", float("nan"), "a probability lies between 0 and 1"),
    (EvolutionConfig, "add_node_prob", 2, "a probability lies between 0 and 1"),
    (EvolutionConfig, "stagnant_op_mutation_prob", 1.5, "a probability lies between 0 and 1"),
    (EvolutionConfig, "stagnant_edge_mutation_prob", -1, "a probability lies between 0 and 1"),
    (EvolutionConfig, "stagnation_start", -1, "the smallest value is 0"),
    (EvolutionConfig, "stagnation_patience", 0, "the smallest value is 1"),
    (EvolutionConfig, "racing", -0.1, "it lies in [0, 1)"),
    (EvolutionConfig, "racing", float("nan"), "it lies in [0, 1)"),
    (EvolutionConfig, "mating_pool", "all", "choose one of growing, survivors"),
    (NetworkConfig, "channels", 0, "the smallest value is 1"),
    (NetworkConfig, "channel_multiplier", 0, "the smallest value is 1"),
    (NetworkConfig, "num_normal_cells", 0, "the smallest value is 1"),
    (NetworkConfig, "num_normal_cells", 101, "the largest value is 100"),
    (NetworkConfig, "normal_repeats", 0, "the smallest value is 1"),
    (NetworkConfig, "normal_repeats", 10**12, "the largest value is 100"),
    (NetworkConfig, "dropout_rate", 1.0, "it lies in [0, 1)"),
    (NetworkConfig, "dropout_rate", -0.1, "it lies in [0, 1)"),
    (NetworkConfig, "conv_kind", "dense", "choose one of separable, full"),
    (NetworkConfig, "precision", "float16", "choose one of float32, bfloat16"),
    (TrainingConfig, "epochs", 0, "the smallest value is 1"),
    (TrainingConfig, "batch_size", 0, "the smallest value is 1"),
    (TrainingConfig, "learning_rate", 0.0, "it is positive"),
    (TrainingConfig, "learning_rate", float("nan"), "it is positive"),
    (TrainingConfig, "rate_decay", 0.0, "it lies in (0, 1]"),
    (TrainingConfig, "rate_decay", 1.5, "it lies in (0, 1]"),
    (TrainingConfig, "schedule", "linear", "choose one of exponential, cosine"),
    (TrainingConfig, "warmup", 1.0, "it lies in [0, 1)"),
    (TrainingConfig, "warmup", -0.1, "it lies in [0, 1)"),
    (TrainingConfig, "label_smoothing", 1.0, "it lies in [0, 1)"),
    (TrainingConfig, "label_smoothing", float("nan"), "it lies in [0, 1)"),
    (TrainingConfig, "max_shift", 1.1, "a fraction lies between 0 and 1"),
    (TrainingConfig, "max_rotation", 181.0, "degrees lie between 0 and 180"),
    (TrainingConfig, "max_rotation", float("inf"), "degrees lie between 0 and 180"),
    (TrainingConfig, "max_scale", 1.0, "it lies in [0, 1)"),
    (TrainingConfig, "weight_average", 1.0, "it lies in [0, 1)"),
    (DataConfig, "train_examples", -1, "the smallest value is 0"),
    (DataConfig, "image_size", -1, "the smallest value is 0"),
    (DataConfig, "validation_fraction", 0.0, "it lies in (0, 1)"),
    (DataConfig, "validation_fraction", 1.0, "it lies in (0, 1)"),
    (DataConfig, "resize", "crop", "choose one of stretch, mnist_box"),
    (DataConfig, "background", "red", "choose one of auto, white, black"),
    *((DataConfig, "pixel_range", text, RANGE_RULE) for text in ("255", "1,0", "0,x", "0,1,2")),
    *((DataConfig, "pixel_range", text, RANGE_RULE) for text in ("0,nan", "0,inf", "1,1")),
    (SearchConfig, "candidates_per_step", 0, "the smallest value is 1"),
    (
        SearchConfig,
        "candidates_per_step",
        2,
        "several at once need engine=universal and mating_pool=survivors, where parents do not "
        "wait for offspring",
    ),
    (SearchConfig, "seed", -1, "the smallest value is 0"),
    (SearchConfig, "class_weights", "equal", "choose one of none, balanced"),
    (SearchConfig, "retrain_best", -1, "the smallest value is 0"),
    (SearchConfig, "retrain_seeds", -1, "the smallest value is 0"),
    (SearchConfig, "keep", 0, "the smallest value is 1"),
    (SearchConfig, "keep", 4, "only 3 of the best are trained again; raise retrain_best"),
    (SearchConfig, "max_consecutive_failures", 0, "the smallest value is 1"),
    (SearchConfig, "engine", "both", "choose one of auto, native, universal, compiled"),
    (
        SearchConfig,
        "strategy",
        "annealing",
        "choose one of rea, aging, random, aco, guided, nsga2, guided_front",
    ),
    (SearchConfig, "fitness", "loss", "choose one of accuracy, likelihood, speed"),
    (SearchConfig, "minimize", "latency", "choose one of parameters, multiply_adds"),
    (SearchConfig, "max_trainings", -1, "the smallest value is 0"),
    (SearchConfig, "max_parameters", -1, "the smallest value is 0"),
    (SearchConfig, "max_multiply_adds", -1, "the smallest value is 0"),
    (SearchConfig, "target_accuracy", 1.5, "a probability lies between 0 and 1"),
    (ColonyConfig, "num_ants", 0, "the smallest value is 1"),
    (ColonyConfig, "num_ants", 10**9, "the largest value is 10000"),
    (ColonyConfig, "greediness", 1.1, "a probability lies between 0 and 1"),
    (ColonyConfig, "pheromone_start", 0.0, "it is positive"),
    (ColonyConfig, "pheromone_decay", -0.1, "a probability lies between 0 and 1"),
    (ColonyConfig, "pheromone_evaporation", 1.0, "it lies in [0, 1)"),
]
# What needs no refusal: any yes or no, and a data set's name, which is looked up later.
UNCHECKED = {"skip_unreadable", "reuse_fitness", "dataset", "crossover", "stagnation_avoidance"}
UNCHECKED |= {"compare_winner", "vary_conv_kind", "output_relu"}
UNCHECKED |= {"initial_genomes"}  # `strategies.registry` reads them
# At the edge of what is possible.
ACCEPTED: list[tuple[type, dict[str, Any]]] = [
    (
        EvolutionConfig,
        {"population_size": 1, "sample_size": 1, "num_offspring": 1, "num_generations": 0},
    ),
    (EvolutionConfig, {"min_nodes": 12, "max_nodes": 12, "crossover_bias": 0, "add_node_prob": 1}),
    (
        NetworkConfig,
        {"channels": 1, "channel_multiplier": 1, "num_normal_cells": 1, "dropout_rate": 0},
    ),
    (TrainingConfig, {"epochs": 1, "batch_size": 1, "rate_decay": 1}),
    (
        TrainingConfig,
        {"warmup": 0.99, "label_smoothing": 0.99, "max_shift": 1, "max_rotation": 180},
    ),
    (
        ColonyConfig,
        {"num_ants": 1, "greediness": 1, "pheromone_decay": 1, "pheromone_evaporation": 0},
    ),
    (SearchConfig, {"retrain_best": 0, "retrain_seeds": 0, "max_consecutive_failures": 1}),
]


def test_defaults_are_the_papers():
    assert flatten(SearchConfig()) == DEFAULTS


@pytest.mark.parametrize(("kind", "name", "value", "rule"), REFUSED)
def test_wrong_values_are_refused_by_name(kind: type, name: str, value: Any, rule: str):
    with pytest.raises(InputError) as caught:
        kind(**{name: value})
    assert str(caught.value) == f"{name}={value} is not possible: {rule}"


def test_every_field_has_a_wrong_value_above():
    assert {name for _, name, _, _ in REFUSED} | UNCHECKED == {
        name.removeprefix("final_") for name in DEFAULTS
    }


@pytest.mark.parametrize(("kind", "values"), ACCEPTED)
def test_values_at_the_edge_are_accepted(kind: type, values: dict[str, Any]):
    assert flatten(kind(**values)) == flatten(kind()) | values


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_channels": 25}, "min_channels=25 is not possible: channels is 24, which is the"),
        ({"min_normal_cells": 4}, "min_normal_cells=4 is not possible: num_normal_cells is 3, "),
        ({"min_channels": 2, "strategy": "aco"}, "strategy=aco is not possible: ants choose no"),
        (
            {
                **{"min_normal_cells": 1, "mating_pool": "survivors"},
                **{"candidates_per_step": 2},
            },
            "candidates_per_step=2 is not possible: networks of several layouts cannot be trained",
        ),
        (
            {"vary_conv_kind": True, "strategy": "aco"},
            "strategy=aco is not possible: ants choose no layout; leave min_channels, "
            "min_normal_cells, min_channel_multiplier at 0, and vary_conv_kind out",
        ),
        ({"min_channel_multiplier": 3}, "min_channel_multiplier=3 is not possible: channel_mul"),
        (
            {"min_channel_multiplier": 1, "channel_multiplier": 5},
            "channel_multiplier=5 is not possible: where a layout is made of genes, it is at most",
        ),
        (
            {"vary_conv_kind": True, "channels": 1025},
            "channels=1025 is not possible: where a layout is made of genes, it is at most 1024",
        ),
        (
            {"min_channels": 2, "num_normal_cells": 11},
            "num_normal_cells=11 is not possible: where a layout is made of genes, it is at most",
        ),
    ],
)
def test_genes_of_the_layout_that_cannot_be(settings: dict[str, Any], message: str):
    with pytest.raises(InputError, match=f"^{message}"):
        replace(SearchConfig(), settings)


def test_flag_names_are_unique_and_documented():
    parts = (
        EvolutionConfig,
        ColonyConfig,
        NetworkConfig,
        TrainingConfig,
        TrainingConfig,
        DataConfig,
    )
    own = len(leaf_fields(SearchConfig)) - sum(len(leaf_fields(part)) for part in parts)
    # leaf_fields is a dict: of two fields with one name, one would be missing here.
    assert own == 18
    assert all(field.metadata["help"] for _, field in leaf_fields(SearchConfig).values())


OTHER_CHOICE = {
    "accuracy": "speed",
    "parameters": "multiply_adds",
    "growing": "survivors",
    "exponential": "cosine",
    "rea": "aging",
    "separable": "full",
    "digits": "mnist",
    "auto": "compiled",
    "none": "balanced",
    "float32": "bfloat16",
    "stretch": "mnist_box",
}


OTHER_VALUE = {"pixel_range": "0,1", "background": "white", "initial_genomes": "[]"}


def test_replace_is_the_reverse_of_flatten():
    config = SearchConfig()
    others = {
        name: OTHER_VALUE[name]
        if name in OTHER_VALUE
        else (not value)
        if isinstance(value, bool)
        else OTHER_CHOICE[value]
        if isinstance(value, str)
        else (value / 2 or 0.5)
        if isinstance(value, float)
        # Several at once exclude the compiled engine, and a lag another mating pool.
        else value + (name not in ("candidates_per_step", "lag"))
        for name, value in DEFAULTS.items()
    }
    changed = replace(config, others)
    assert flatten(changed) == others
    assert replace(changed, DEFAULTS) == config
    assert replace(config, {}) == config == SearchConfig()
