"""The pool of processes that the settings ask for."""

from __future__ import annotations

from collections.abc import Callable

from jaxevo.config import WorkerConfig
from jaxevo.run.pool import Pool
from jaxevo.run.workers import Workers


def open_pool(limits: WorkerConfig, message: Callable[[str], None] = lambda text: None) -> Pool:
    """Opens a pool, to be closed, as by `with`.

    Args:
        limits: `cluster`, or else the number of processes of this machine, and what a job may take.
        message: Is told of nodes that join the cluster, leave it or are refused.

    Raises `InputError` if the cluster cannot be joined.
    """
    if not limits.cluster:
        return Workers(limits)
    from jaxevo.run.cluster import Cluster  # imports JAX, which tells what nodes must be like

    return Cluster(limits, message)
