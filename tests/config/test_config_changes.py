"""Settings with which a run can go on, and the reason why it cannot with others."""

from __future__ import annotations

from typing import Any

import pytest

from jaxevo.config import SearchConfig, flatten, leaf_fields, replace
from jaxevo.config.changes import ENDS, can_change, changed
from jaxevo.errors import InputError


def test_without_a_difference_nothing_changes():
    assert changed(SearchConfig(), SearchConfig()) == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"num_generations": 201}),
        ({"max_trainings": 60}, {"max_trainings": 61}),
        ({"max_trainings": 60}, {"max_trainings": 0}),
        ({"target_accuracy": 0.9}, {"target_accuracy": 0.95}),
        ({"target_accuracy": 0.9}, {"target_accuracy": 0.0}),
        ({}, {"max_consecutive_failures": 3}),
        ({}, {"keep": 3, "compare_winner": True}),
        ({}, {"final_epochs": 3, "final_schedule": "cosine", "final_batch_size": 8}),
    ],
)
def test_ends_are_put_off_and_the_final_training_is_another(before, after):
    now = replace(SearchConfig(), before)
    assert changed(now, replace(now, after)) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"num_generations": 199}),
        ({}, {"max_trainings": 60}),
        ({"max_trainings": 60}, {"max_trainings": 59}),
        ({}, {"target_accuracy": 0.9}),
        ({"target_accuracy": 0.9}, {"target_accuracy": 0.8}),
    ],
)
def test_ends_are_not_put_before_what_has_happened(before, after):
    now = replace(SearchConfig(), before)
    ((name, value),) = after.items()
    words = f"{name} is .* and cannot become {value}, since a search can only be continued beyond"
    with pytest.raises(InputError, match=words):
        changed(now, replace(now, after))


# A setting of each reason, with another value.
REFUSED: list[tuple[str, Any, str]] = [
    ("dataset", "mnist", "trained and measured on other images"),
    ("validation_fraction", 0.2, "trained and measured on other images"),
    ("seed", 1, "would have been others"),
    ("strategy", "random", "would have been others"),
    ("population_size", 9, "would have been others"),
    ("num_ants", 9, "would have been others"),
    ("max_parameters", 9, "would have been others"),
    ("fitness", "likelihood", "would have been others"),
    ("initial_genomes", "[]", "would have been others"),
    ("channels", 8, "were other networks"),
    ("learning_rate", 0.1, "were trained in another way"),
    ("class_weights", "balanced", "were trained in another way"),
    ("engine", "compiled", "were trained in another way"),
    ("retrain_seeds", 5, "compared by as many trainings"),
]


@pytest.mark.parametrize(("name", "value", "reason"), REFUSED)
def test_what_the_candidates_so_far_depend_on_stays(name, value, reason):
    before = flatten(SearchConfig())[name]
    with pytest.raises(InputError) as caught:
        changed(SearchConfig(), replace(SearchConfig(), {name: value}))
    said = str(caught.value)
    assert f"{name} is {before!r} and cannot become {value!r}, since " in said and reason in said
    assert said.endswith("leave that as it is, or search in another workdir")


def test_every_refused_setting_is_named():
    asked = replace(SearchConfig(), {"seed": 1, "channels": 8, "final_epochs": 3})
    with pytest.raises(InputError) as caught:
        changed(SearchConfig(), asked)
    assert "seed is 0" in str(caught.value) and "channels is 24" in str(caught.value)
    assert "final_epochs" not in str(caught.value)


def test_all_that_can_change_is_an_end_or_of_the_final_training():
    names = {name for name in leaf_fields(SearchConfig) if can_change(name)}
    final = {name for name in names if name.startswith("final_")}
    others = {"max_consecutive_failures", "keep", "compare_winner"}
    assert names - final == {*ENDS, *others} and "final_epochs" in final
