"""How many candidates of a search are under way at once (`EvolutionConfig.lag`, L).

L is a setting of the search, not of the workers that train: the same L gives the same history with
any number of them. So `auto` is settled once, when a run begins.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.config.presets import complete
from jaxevo.errors import InputError
from jaxevo.run.workdir import Workdir
from jaxevo.strategies.registry import waits

AUTO = "auto"
# With twice as many candidates under way as there are workers, these rarely wait for the slowest of
# them (`benchmarks/scaleout.py`).
_PER_WORKER = 2
_LARGE = 0.05  # of the candidates; a larger L costs the search quality


def settle_lag(
    settings: Mapping[str, Any], workdir: Workdir, limits: WorkerConfig
) -> dict[str, Any]:
    """The settings with a number in place of `lag=auto`: of the run that is there, or for workers.

    A lag above 1 brings the mating pool that it needs, unless another one is named.
    """
    if "lag" not in settings:
        return dict(settings)
    lag = settings["lag"]
    if lag == AUTO:
        if workdir.config.exists():
            lag = complete(workdir.read_config()["config"])["lag"]
        else:
            lag = max(1, _PER_WORKER * _workers(limits))
    needed = {"mating_pool": "growing"} if lag != 1 else {}
    return needed | dict(settings) | {"lag": lag}


def _workers(limits: WorkerConfig) -> int:
    """Number of processes that train. Raises `InputError` where it is not known."""
    if limits.cluster not in ("", "local"):
        raise InputError(
            f"lag={AUTO} cannot tell how many processors --cluster={limits.cluster} will have: "
            "give a number, about twice as many"
        )
    return len(os.sched_getaffinity(0)) if limits.cluster else limits.workers


def describe_lag(config: SearchConfig, limits: WorkerConfig) -> list[str]:
    """What a person should know of L: that it is too small for the workers, or too large."""
    evolution, lines = config.evolution, []
    workers = 2 if limits.cluster else limits.workers  # of a cluster two at least
    if not waits(config):
        return lines
    if workers > evolution.lag:
        lines.append(
            f"lag={evolution.lag} lets {evolution.lag} train at once after the first generation, "
            "and other processors wait; give --lag=, about twice the processors"
        )
    if evolution.lag > max(1, _LARGE * config.num_candidates):
        share = evolution.lag / config.num_candidates
        lines.append(
            f"lag={evolution.lag} is {share:.0%} of {config.num_candidates} candidates, each of "
            f"which is drawn without the results of the {evolution.lag - 1} before it: above "
            f"{_LARGE:.0%} searches find less"
        )
    return lines
