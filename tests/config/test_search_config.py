"""A search's configuration: candidates to expect, its budget, and what excludes what."""

from __future__ import annotations

import pytest

from jaxevo.config import (
    SearchConfig,
    WorkerConfig,
    flatten,
    replace,
)
from jaxevo.errors import InputError


def test_aging_needs_a_mutation():
    still = {"op_mutation_prob": 0.0, "edge_mutation_prob": 0.0, "add_node_prob": 0.0}
    assert replace(SearchConfig(), still).strategy == "rea"
    with pytest.raises(
        InputError, match="^strategy=aging is not possible: it needs op_mutation_prob"
    ):
        replace(SearchConfig(), still | {"strategy": "aging"})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"fitness": "accuracy"}, "fitness=accuracy is not possible: racing goes by losses; use"),
        ({"strategy": "nsga2"}, "strategy=nsga2 is not possible: racing would end all small"),
        (
            {"candidates_per_step": 2, "mating_pool": "survivors"},
            "candidates_per_step=2 is not possible: racing ends trainings one by one; use cand",
        ),
    ],
)
def test_a_race_needs_losses_one_goal_and_trainings_one_by_one(changes, words):
    race = {"fitness": "speed", "racing": 0.1}
    assert replace(SearchConfig(), race).evolution.racing == 0.1
    with pytest.raises(InputError, match=words):
        replace(SearchConfig(), race | changes)
    replace(SearchConfig(), race | changes | {"racing": 0.0})


def test_the_number_of_candidates_to_expect():
    assert SearchConfig().num_candidates == 10 + 10 * 200
    assert replace(SearchConfig(), {"max_trainings": 60}).num_candidates == 60
    assert replace(SearchConfig(), {"max_trainings": 60, "num_generations": 2}).num_candidates == 30


def test_the_trainings_that_follow_the_search():
    config = replace(SearchConfig(), {"retrain_best": 3, "retrain_seeds": 2, "keep": 3})
    assert (config.num_retrainings, config.num_final_trainings) == (6, 3)
    compared = replace(config, {"compare_winner": True})
    assert (compared.num_retrainings, compared.num_final_trainings) == (8, 4)
    # Nothing is trained again: the fitness of the search ranks the networks that are kept.
    assert replace(compared, {"retrain_best": 0, "keep": 9}).num_retrainings == 0


def test_trainings_end_a_search_only_where_their_number_is_set():
    assert not SearchConfig().budget_spent(10**6)
    limited = replace(SearchConfig(), {"max_trainings": 60})
    assert [limited.budget_spent(number) for number in (59, 60, 61)] == [False, True, True]


def test_networks_fit_that_are_within_both_bounds():
    assert SearchConfig().fits(10**12, 10**12)
    config = replace(SearchConfig(), {"max_parameters": 100, "max_multiply_adds": 1000})
    sizes = [(100, 1000), (101, 1000), (100, 1001)]
    assert [config.fits(*size) for size in sizes] == [True, False, False]
    assert replace(SearchConfig(), {"max_parameters": 100}).fits(100, 10**12)


def test_limits_of_a_candidate_need_a_worker():
    for name in ("candidate_timeout", "worker_memory_limit"):
        with pytest.raises(InputError, match=f"{name}=5.* is not possible: only a worker can be"):
            replace(WorkerConfig(), {name: 5})
        assert flatten(replace(WorkerConfig(), {name: 5, "workers": 1}))[name] == 5


def test_a_cluster_takes_the_place_of_workers_and_divides_gpus():
    assert not WorkerConfig().apart
    assert WorkerConfig(workers=1).apart and WorkerConfig(cluster="auto").apart
    assert WorkerConfig(cluster="auto", candidate_timeout=5.0).candidate_timeout == 5
    for gpus in (0.5, 0.333333, 0.25, 1.0, 2.0):
        WorkerConfig(cluster="auto", gpus_per_candidate=gpus)
    for wrong, words in (
        ({"workers": 2, "cluster": "auto"}, "workers=2 .*--cluster=auto evaluate.* give either"),
        ({"gpus_per_candidate": 1.0}, "gpus_per_candidate=1.0 .*give --cluster"),
        ({"cluster": "auto", "gpus_per_candidate": 0.4}, "gpus_per_candidate=0.4 .*1/n of one"),
        ({"cluster": "auto", "gpus_per_candidate": 1.5}, "gpus_per_candidate=1.5 .*1/n of one"),
    ):
        with pytest.raises(InputError, match=words):
            WorkerConfig(**wrong)
    several = {"candidates_per_step": 2, "engine": "universal", "mating_pool": "survivors"}
    with pytest.raises(InputError, match="cluster=auto is not possible: candidates_per_step=2"):
        WorkerConfig(cluster="auto").check(replace(SearchConfig(), several))


def test_workers_train_candidates_one_by_one():
    several = {"candidates_per_step": 2, "engine": "universal", "mating_pool": "survivors"}
    config = replace(SearchConfig(), several)
    WorkerConfig().check(config)
    WorkerConfig(workers=2).check(SearchConfig())
    with pytest.raises(InputError, match="workers=2 is not possible: candidates_per_step=2 trains"):
        WorkerConfig(workers=2).check(config)
