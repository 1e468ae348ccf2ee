"""What a process that trains for another one has of its machine: processors, compiled programs."""

from __future__ import annotations

import dataclasses
import os

from jaxevo.config import WorkerConfig
from jaxevo.machine import compilation_cache, keep_compiled


@dataclasses.dataclass(frozen=True)
class Share:
    """A process's share.

    Attributes:
        threads: That native kernels take at most, with the same results.
        compilation_cache: Folder of compiled programs, if there is one.
    """

    threads: int
    compilation_cache: str | None

    @classmethod
    def of(cls, limits: WorkerConfig) -> Share:
        """The share of each of these processes.

        One of a cluster has one processor; its node has its own folder of programs.
        """
        if not limits.workers:
            return cls(1, None)
        threads = len(os.sched_getaffinity(0)) // limits.workers
        return cls(max(1, threads), compilation_cache())

    def take(self) -> None:
        """Limits this process to its share.

        XLA's threads stay as they are, as its programs may depend on their number.
        """
        from jaxevo.networks import native

        if self.compilation_cache:
            keep_compiled(self.compilation_cache)
        if native.kernels_name() is not None:
            native.limit_threads(self.threads)
