"""The pool of processes that the settings ask for."""

from __future__ import annotations

from jaxevo.config import WorkerConfig
from jaxevo.run.pool import Pool
from jaxevo.run.workers import Workers


def open_pool(limits: WorkerConfig) -> Pool:
    """A pool of `limits.workers` processes of this machine, to be closed, as by `with`."""
    return Workers(limits)
