"""L: a number for `auto`, the mating pool that it needs, and what a person is told of it."""

from __future__ import annotations

import os

import pytest

from jaxevo.config import SearchConfig, WorkerConfig, flatten, replace
from jaxevo.errors import InputError
from jaxevo.run.lag import describe_lag, settle_lag
from jaxevo.run.workdir import Workdir


@pytest.mark.parametrize(
    ("settings", "workers", "expected"),
    [
        ({}, 4, {}),
        ({"lag": 1}, 4, {"lag": 1}),
        ({"lag": 6}, 0, {"lag": 6, "mating_pool": "growing"}),
        ({"lag": 6, "mating_pool": "survivors"}, 0, {"lag": 6, "mating_pool": "survivors"}),
        ({"lag": "auto"}, 0, {"lag": 1}),
        ({"lag": "auto", "seed": 3}, 4, {"lag": 8, "mating_pool": "growing", "seed": 3}),
    ],
)
def test_auto_is_twice_the_workers(tmp_path, settings, workers, expected):
    settled = settle_lag(settings, Workdir(tmp_path), WorkerConfig(workers=workers))
    assert settled == expected


def test_of_a_cluster_only_one_of_this_machine_has_a_known_number_of_processors(tmp_path):
    workdir, cores = Workdir(tmp_path), len(os.sched_getaffinity(0))
    settled = settle_lag({"lag": "auto"}, workdir, WorkerConfig(cluster="local"))
    assert settled == {"lag": 2 * cores, "mating_pool": "growing"}
    with pytest.raises(InputError, match="lag=auto cannot tell how many .* give a number"):
        settle_lag({"lag": "auto"}, workdir, WorkerConfig(cluster="10.0.0.1:6379"))
    config = replace(SearchConfig(), {"num_generations": 100})
    (line,) = describe_lag(config, WorkerConfig(cluster="auto"))
    assert "lag=1 lets 1 train" in line


def test_a_run_keeps_the_lag_that_it_began_with(tmp_path):
    workdir = Workdir(tmp_path)
    with workdir.locked():
        workdir.open(replace(SearchConfig(), {"lag": 8}), {"preset": "paper", "device": "none"})
    settled = settle_lag({"lag": "auto"}, workdir, WorkerConfig(workers=2))
    assert settled == {"lag": 8, "mating_pool": "growing"}
    # A number is what a person asks for; that it differs is said where the run is opened.
    assert settle_lag({"lag": 4}, workdir, WorkerConfig())["lag"] == 4


def test_a_run_of_a_version_without_lag_had_none(tmp_path):
    workdir = Workdir(tmp_path)
    config = SearchConfig()
    with workdir.locked():
        workdir.open(config, {"preset": "paper", "device": "none"})
    text = workdir.config.read_text().replace('"lag": 1,', "")
    assert text != workdir.config.read_text() and "lag" in flatten(config)
    workdir.config.write_text(text)
    assert settle_lag({"lag": "auto"}, workdir, WorkerConfig(workers=2)) == {"lag": 1}


@pytest.mark.parametrize(
    ("settings", "workers", "expected"),
    [
        ({"num_generations": 100}, 0, []),
        ({"num_generations": 100}, 1, []),
        ({"num_generations": 100}, 2, ["lag=1 lets 1 train"]),
        ({"num_generations": 100, "lag": 4}, 2, []),
        ({"num_generations": 100, "mating_pool": "survivors"}, 8, []),
        ({"num_generations": 100, "strategy": "random"}, 8, []),
        ({"num_generations": 2, "strategy": "random", "lag": 3}, 4, []),
        ({"num_generations": 2}, 0, []),
        ({"num_generations": 2, "lag": 2}, 0, ["lag=2 is 7% of 30 candidates"]),
        ({"num_generations": 2, "lag": 3}, 4, ["lag=3 lets 3 train", "lag=3 is 10% of 30"]),
    ],
)
def test_what_a_person_is_told(settings, workers, expected):
    lines = describe_lag(replace(SearchConfig(), settings), WorkerConfig(workers=workers))
    assert len(lines) == len(expected)
    for line, part in zip(lines, expected, strict=True):
        assert part in line
