"""No two trainings of a run share a seed, and each seed says what its training is for."""

from __future__ import annotations

import itertools
import json

from jaxevo.seeds import (
    Purpose,
    Stream,
    baseline_seed,
    final_seed,
    generator,
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


def test_no_two_uses_share_a_generator():
    """Also where one seed is another one with zeros behind it, which NumPy takes for the same."""
    seeds = [5, (5, 0), (5, 0, 0), (5, 0, 0, 0), 0, (0, 0), (0, 5), (5, 1), (1, 5)]
    draws = [generator(stream, seed).random() for stream in Stream for seed in seeds]
    assert len(set(draws)) == len(draws) == len(Stream) * 9


def test_a_number_is_a_seed_of_one():
    assert generator(Stream.WEIGHTS, 5).random() == generator(Stream.WEIGHTS, (5,)).random()


def test_seeds_are_kept_as_json():
    assert json.loads(json.dumps(search_seed(1, 2))) == [1, 0, 2]
