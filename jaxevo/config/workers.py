"""Settings of the processes that evaluate candidates, on which no result depends."""

from __future__ import annotations

import dataclasses

from jaxevo.config.fields import check, check_at_least, setting
from jaxevo.config.search import SearchConfig

_OF_WORKERS = ("candidate_timeout", "worker_memory_limit", "candidates_per_worker")


@dataclasses.dataclass(frozen=True)
class WorkerConfig:
    """Settings of evaluating candidates in processes, on this machine or on a cluster.

    No result depends on them, so a run may go on with other ones.
    """

    workers: int = setting(
        0,
        "processes that evaluate candidates, so that one that dies takes nothing along; 0: this "
        "process. Several work at once on the first generation and on retraining, and with a lag "
        "all the time",
    )
    cluster: str = setting(
        "",
        "a Ray cluster whose nodes evaluate candidates: local, one of this machine's cores; auto, "
        "the one that runs here; or its head's address, such as 10.0.0.1:6379 (extra ray)",
    )
    gpus_per_candidate: float = setting(
        0.0, "GPUs of a cluster's node that a candidate gets: a whole number or 1/n; 0: none"
    )
    candidate_timeout: float = setting(
        0.0, "seconds after which a worker's candidate is given up; 0: never"
    )
    worker_memory_limit: int = setting(
        0, "MiB of memory that a worker may have; 0: as much as there is"
    )
    candidates_per_worker: int = setting(
        100, "candidates after which a worker is replaced by a fresh one"
    )

    def __post_init__(self) -> None:
        check_at_least(self, 0, "workers", "candidate_timeout", "worker_memory_limit")
        check_at_least(self, 0, "gpus_per_candidate")
        check_at_least(self, 1, "candidates_per_worker")
        for name in _OF_WORKERS:
            value = getattr(self, name)
            check(
                self.apart or value == getattr(WorkerConfig, name),
                name,
                value,
                rule="only a worker can be ended; give --workers=1 or more, or --cluster",
            )
        check(
            not (self.workers and self.cluster),
            "workers",
            self.workers,
            rule=f"the nodes of --cluster={self.cluster} evaluate candidates; give either",
        )
        gpus = self.gpus_per_candidate
        check(
            not gpus or bool(self.cluster),
            "gpus_per_candidate",
            gpus,
            rule="only a cluster divides GPUs; give --cluster",
        )
        share = 1 / gpus if 0 < gpus < 1 else gpus
        check(
            abs(share - round(share)) < 1e-3,
            "gpus_per_candidate",
            gpus,
            rule="a candidate gets whole GPUs or 1/n of one, such as 0.5",
        )

    @property
    def apart(self) -> bool:
        """True if candidates are evaluated in other processes."""
        return self.workers > 0 or bool(self.cluster)

    def check(self, config: SearchConfig) -> None:
        """Raises `InputError` if the search cannot be evaluated so."""
        check(
            not self.apart or config.candidates_per_step == 1,
            "cluster" if self.cluster else "workers",
            self.cluster or self.workers,
            rule=f"candidates_per_step={config.candidates_per_step} trains several candidates in "
            "one process; use either",
        )
