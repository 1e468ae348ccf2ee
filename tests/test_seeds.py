"""No two trainings of a run share a seed, and each seed says what its training is for."""

from __future__ import annotations

import itertools
import json

import numpy as np

from jaxevo.seeds import (
    Purpose,
    baseline_seed,
    final_seed,
    kept_seed,
    retraining_seed,
    search_seed,
)


def test_seeds_begin_with_the_runs_seed_and_the_purpose():
    assert search_seed(7, 3) == (7, 0, 3)
    assert retraining_seed(7, 3, 2) == (7, 1, 3, 2)
    assert final_seed(7) == (7, 2)
    assert kept_seed(7, 3) == (7, 3, 3)
    assert baseline_seed(7) == (7, 4)
    assert [purpose.value for purpose in Purpose] == [0, 1, 2, 3, 4]


def test_no_two_trainings_share_a_seed():
    runs, ids, repeats = range(3), range(20), range(4)
    seeds = [seed(run) for run in runs for seed in (final_seed, baseline_seed)]
    seeds += [kept_seed(run, id_) for run, id_ in itertools.product(runs, ids)]
    seeds += [search_seed(run, id_) for run, id_ in itertools.product(runs, ids)]
    seeds += [retraining_seed(*names) for names in itertools.product(runs, ids, repeats)]
    assert len(set(seeds)) == len(seeds) == 3 * (2 + 20 + 20 + 20 * 4)
    assert len({len(seed) for seed in seeds}) == 3  # so none is another one's beginning by purpose


def test_seeds_are_plain_integers_to_numpy_and_json():
    seed = search_seed(1, 2)
    assert json.loads(json.dumps(seed)) == [1, 0, 2]
    same = np.random.default_rng(seed).random(), np.random.default_rng((1, 0, 2)).random()
    assert same[0] == same[1]
