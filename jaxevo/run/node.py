"""A node of a cluster: in each of Ray's processes, local workers of one process carry out jobs.

So a job is limited, ended and tried again on a node exactly as it is on this machine, and fails in
the same words. Ray's process only hands jobs over; a worker is its child and ends with it.

JAX is imported in the worker alone. This module is imported on nodes, with Ray.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np
import ray

from jaxevo.config import WorkerConfig
from jaxevo.files import drafted
from jaxevo.run.likeness import likeness
from jaxevo.run.pool import Function, Job, Outcome
from jaxevo.run.workers import ArrayFile, Workers

_FOLDER = "JAXEVO_NODE_FOLDER"  # environment variable of a worker
_CACHE = "JAX_COMPILATION_CACHE_DIR"


@dataclasses.dataclass(frozen=True)
class Terms:
    """The terms on which a node carries out jobs, all from the driver.

    Attributes:
        limits: What a job may take.
        environment: Variables that decide how JAX computes.
        keep_compiled: Whether compiled programs are kept, in a folder of the node.
    """

    limits: WorkerConfig
    environment: tuple[tuple[str, str], ...]
    keep_compiled: bool

    @classmethod
    def here(cls, limits: WorkerConfig, keep_compiled: bool) -> Terms:
        """Jobs are to be carried out as in this process."""
        found = {name: os.environ[name] for name in os.environ if _decides(name)}
        alone = dataclasses.replace(limits, workers=1, cluster="", gpus_per_candidate=0.0)
        return cls(alone, tuple(sorted(found.items())), keep_compiled)


def _decides(name: str) -> bool:
    """True for an environment variable that decides how JAX computes."""
    return name.startswith(("JAX_", "XLA_", "JAXEVO_NATIVE")) and name != _CACHE


@dataclasses.dataclass(frozen=True)
class Stored:
    """Arrays in a file of the node, named by their content."""

    name: str

    def load(self) -> dict[str, np.ndarray]:
        return ArrayFile(str(pathlib.Path(os.environ[_FOLDER]) / self.name)).load()


class _Likeness:
    """The setup of the job that looks at the node."""

    def build(self) -> Function:
        return likeness


class _Host:
    """The local workers of this process of Ray."""

    def __init__(self, terms: Terms):
        self.terms = terms
        self.devices = os.environ.get("CUDA_VISIBLE_DEVICES")
        self.folder = _node_folder()
        # The worker inherits the environment.
        for name in [name for name in os.environ if _decides(name) or name == _CACHE]:
            del os.environ[name]
        os.environ.update(terms.environment)
        # Several candidates share a GPU, so none takes all of its memory.
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        os.environ[_FOLDER] = str(self.folder)
        if terms.keep_compiled:
            os.environ[_CACHE] = str(self.folder / "compiled")
            os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        # A spawned process would else begin with the main module of this one, which is Ray's.
        vars(sys.modules["__main__"]).pop("__file__", None)
        self.pool = Workers(terms.limits)

    def fits(self, terms: Terms) -> bool:
        """False if the worker was begun on other terms, or for another GPU."""
        return terms == self.terms and self.devices == os.environ.get("CUDA_VISIBLE_DEVICES")

    def fetch(self, arrays: Mapping[str, ray.ObjectRef]) -> None:
        """Writes the arrays into files of this node that are not there yet."""
        for name, reference in arrays.items():
            path = self.folder / name
            if not path.exists():
                named: dict[str, Any] = ray.get(reference)
                with drafted(path) as draft, draft.open("wb") as file:
                    np.savez(file, **named)

    def carry_out(self, job: Job) -> Outcome:
        self.pool.submit(job)
        return self.pool.result(job.key)


_host: _Host | None = None


def _host_of(terms: Terms) -> _Host:
    """This process's host on these terms."""
    global _host
    if _host is not None and not _host.fits(terms):
        _host.pool.close()
        _host = None
    if _host is None:
        _host = _Host(terms)
    return _host


def _node_folder() -> pathlib.Path:
    """A folder of this machine and of this cluster, which only this user can write to."""
    session = ray.get_runtime_context().get_session_name()
    folder = pathlib.Path(tempfile.gettempdir(), f"jaxevo-{os.getuid()}-{session}")
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise PermissionError(f"{folder} is another user's")
    return folder


def carry_out(job: Job, terms: Terms, arrays: Mapping[str, ray.ObjectRef]) -> Outcome:
    """Carries out a job in this process's worker; a task of Ray."""
    host = _host_of(terms)
    host.fetch(arrays)
    return host.carry_out(job)


def look(terms: Terms) -> dict[str, str]:
    """The properties of this node that decide results; a task of Ray.

    Raises `RuntimeError` if a worker cannot tell them.
    """
    outcome = _host_of(terms).carry_out(Job("likeness", _Likeness(), ()))
    if outcome.value is None:
        raise RuntimeError(outcome.failure)
    return dict(outcome.value)


def answer() -> None:
    """Shows that this node is there; a task of Ray."""
