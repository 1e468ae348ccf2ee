"""Settings by flag name: replaced as a whole, of their own type, the two trainings apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jaxevo.config import (
    SearchConfig,
    replace,
)
from jaxevo.errors import InputError


def test_replace_tells_the_two_trainings_apart():
    config = replace(SearchConfig(), {"epochs": 3, "final_learning_rate": 0.5})
    assert (config.training.epochs, config.final_training.epochs) == (3, 100)
    assert (config.training.learning_rate, config.final_training.learning_rate) == (1e-4, 0.5)


def test_replace_checks_the_whole():
    # Either alone is impossible.
    assert replace(SearchConfig(), {"min_nodes": 8, "max_nodes": 9}).evolution.min_nodes == 8
    with pytest.raises(InputError, match="^max_nodes=6 is not possible: min_nodes is 8$"):
        replace(SearchConfig(), {"min_nodes": 8})
    with pytest.raises(InputError, match="^unknown setting 'chanels': is channels meant\\?$"):
        replace(SearchConfig(), {"chanels": 8})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("epochs", "3", "it is a whole number"),
        ("epochs", 2.5, "it is a whole number"),
        ("epochs", 3.0, "it is a whole number"),
        ("epochs", True, "it is a whole number"),
        ("epochs", None, "it is a whole number"),
        ("learning_rate", "fast", "it is a number"),
        ("learning_rate", False, "it is a number"),
        ("final_learning_rate", [1e-3], "it is a number"),
        ("crossover", 1, "it is true or false"),
        ("mating_pool", 3, "it is a text"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(name: str, value: Any, rule: str):
    with pytest.raises(InputError) as caught:
        replace(SearchConfig(), {name: value})
    assert str(caught.value) == f"{name}={value!r} is not possible: {rule}"


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1.0])
@pytest.mark.parametrize("name", ["learning_rate", "final_learning_rate"])
def test_the_flag_that_is_wrong_is_named(name: str, value: float):
    with pytest.raises(InputError, match=f"^{name}={value} is not possible: it is "):
        replace(SearchConfig(), {name: value})


def test_numbers_of_numpy_become_pythons():
    given = {"epochs": np.int32(3), "learning_rate": np.float32(0.5), "final_learning_rate": 1}
    config = replace(SearchConfig(), given)
    assert config == replace(SearchConfig(), {**given, "epochs": 3, "learning_rate": 0.5})
    assert type(config.training.epochs) is int
    assert type(config.training.learning_rate) is type(config.final_training.learning_rate) is float
    assert config.final_training.learning_rate == 1.0
