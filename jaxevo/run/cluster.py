"""Workers on the nodes of a Ray cluster, which may join and leave during a search.

This process decides which node gets a job, and gives a node no more jobs than it has room for: so a
node that joins gets work at once, and one that is not like this machine gets none. A job that is
lost with its node goes to another one, which does not count as an attempt. What else goes wrong is
the node's own affair (node.py). Ray's own retries are off, since they do not tell the two apart.

Ray is imported where a cluster is used, since it is an extra.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from jaxevo.config import WorkerConfig
from jaxevo.machine import compilation_cache
from jaxevo.run.connect import check_token, connect, is_here
from jaxevo.run.likeness import differences, likeness
from jaxevo.run.pool import Member, Outcome, Shared, WorkerError
from jaxevo.run.queued_pool import QueuedJob, QueuedPool

_LOOK_AROUND = 1.0  # seconds after which nodes that join or leave are looked for again
_SHUN = 30.0  # seconds after which a node that was lost may be taken for a new one
_MAX_LOST = 10  # nodes with one job; then the job may be what ends them
_ENDED = "its process on the node ended"


@dataclasses.dataclass
class _Node:
    """A node that is there."""

    id: str
    name: str
    slots: int  # jobs at once
    state: str = "looked at"  # then "ready" or "refused"
    problem: str = ""  # why it is refused
    tasks: list[QueuedJob] = dataclasses.field(default_factory=list)

    @property
    def room(self) -> int:
        return self.slots - len(self.tasks) if self.state == "ready" else 0


class Cluster(QueuedPool):
    """A `Pool` of the nodes of a cluster.

    Args:
        limits: Which cluster, and what a job may take.
        message: Is told of nodes that join, leave or are refused.

    Raises `InputError` if the cluster cannot be joined.
    """

    def __init__(self, limits: WorkerConfig, message: Callable[[str], None]):
        super().__init__()
        self.limits, self.message = limits, message
        self._ray = connect(limits.cluster)
        from jaxevo.run import node
        from jaxevo.run.node import Terms

        self._stored = node.Stored
        self._terms = Terms.here(limits, keep_compiled=compilation_cache() is not None)
        self._likeness = likeness()
        # A process of Ray goes on after a job, with a GPU too, so that its worker is kept.
        one = {"max_retries": 0, "max_calls": 0, "num_cpus": 1}
        one |= {"num_gpus": limits.gpus_per_candidate}
        self._carry_out = self._ray.remote(**one)(node.carry_out)
        self._look = self._ray.remote(**one)(node.look)
        self._answer = self._ray.remote(max_retries=0, num_cpus=0)(node.answer)
        self._nodes: dict[str, _Node] = {}  # by id
        self._lost: dict[str, float] = {}  # when
        self._looked_around = 0.0
        self._waits = False  # for a node, which was told
        self._served = False  # by a node, at any time
        # References of tasks of Ray that are under way, and what takes each one's result.
        self._takers: dict[Any, Callable[[Any], None]] = {}
        self._arrays: dict[str, Any] = {}  # references by name

    def close(self) -> None:
        """Leaves the cluster, which ends all that runs there for this process."""
        self._takers.clear()
        self._arrays.clear()
        self._ray.shutdown()

    def share(self, arrays: Mapping[str, np.ndarray]) -> Shared:
        """Puts arrays into the cluster's store, from which each node takes them once."""
        digest = hashlib.sha256()
        for name, array in arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        name = f"{digest.hexdigest()}.npz"
        self._arrays[name] = self._ray.put(dict(arrays))
        return self._stored(name)

    def members(self) -> list[Member]:
        """The places of the nodes, and the jobs there; another thread may ask."""
        now = time.monotonic()
        found = []
        for node in tuple(self._nodes.values()):
            tasks = tuple(node.tasks)
            found += [Member(node.name, task.job.key, now - task.begin) for task in tasks]
            found += [Member(node.name)] * (node.slots - len(tasks))
        return found

    def _proceed(self) -> None:
        """Takes note of nodes and of what they have done.

        Raises `WorkerError` if the cluster is gone.
        """
        try:
            self._look_around()
            self._assign()
            self._take_results()
        except self._ray.exceptions.RayError as error:
            raise WorkerError(
                f"--cluster={self.limits.cluster} is gone ({error}): give the same command once it "
                "runs again"
            ) from None

    def _look_around(self) -> None:
        """Takes note of nodes that have joined or left.

        Raises `WorkerError` if there are nodes, and none ever was like this machine.
        """
        now = time.monotonic()
        if now - self._looked_around < _LOOK_AROUND:
            return
        self._looked_around = now
        there = {each["NodeID"]: each for each in self._ray.nodes() if each["Alive"]}
        for id_ in self._nodes.keys() - there.keys():
            self._lose(id_)
        for id_ in there.keys() - self._nodes.keys():
            if now - self._lost.get(id_, -_SHUN) >= _SHUN:
                self._add(there[id_])
        # Say so while there is no node, and end where no node will do.
        nodes = self._nodes.values()
        useless = all(node.state == "refused" for node in nodes)
        if nodes and useless and not self._served:
            reasons = "; ".join(f"{node.name}: {node.problem}" for node in nodes)
            raise WorkerError(
                f"no node of --cluster={self.limits.cluster} can train ({reasons}): install the "
                "same versions on machines of one kind, and search from one of these"
            )
        if useless and not self._waits:
            self.message("no node can train: waiting for one to join the cluster")
        self._waits = useless

    def _add(self, found: Mapping[str, Any]) -> None:
        """Has a node that has joined looked at, if it has room for jobs."""
        resources, address = found["Resources"], found["NodeManagerAddress"]
        slots = int(resources.get("CPU", 0))
        if self.limits.gpus_per_candidate:
            slots = min(slots, int(resources.get("GPU", 0) / self.limits.gpus_per_candidate + 1e-6))
        if not slots:
            return
        if not is_here(address):
            check_token(f"node {address}")
        named = found["NodeName"] != address
        name = found["NodeName"] if named else found["NodeManagerHostname"]
        node = _Node(found["NodeID"], name, slots)
        self._nodes[node.id] = node
        reference = self._on(node, self._look).remote(self._terms)
        self._takers[reference] = functools.partial(self._looked_at, node)

    def _on(self, node: _Node, function: Any) -> Any:
        """A function of Ray that is carried out on a node and nowhere else."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        return function.options(
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.id, soft=False)
        )

    def _looked_at(self, node: _Node, reference: Any) -> None:
        """Gives a node work if it is like this machine."""
        try:
            found = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            return self._refuse(node, _in_words(error))
        except self._ray.exceptions.RayError:
            return self._lose(node.id)
        if differ := differences(found, self._likeness):
            return self._refuse(node, differ)
        if node.id in self._nodes:
            node.state, self._served = "ready", True
            self.message(f"node {node.name} joins, with room for {node.slots} candidates at once")

    def _refuse(self, node: _Node, problem: str) -> None:
        """Gives a node no more work."""
        if node.state != "refused":
            node.state, node.problem = "refused", problem
            self.message(f"node {node.name} gets no work: {problem}")

    def _lose(self, id_: str) -> None:
        """Forgets a node; results of its tasks will tell that they are lost."""
        node = self._nodes.pop(id_, None)
        if node is not None:
            self._lost[id_] = time.monotonic()
            self.message(f"node {node.name} is gone; what it was at begins anew elsewhere")

    def _assign(self) -> None:
        """Gives waiting jobs to the nodes that have most room."""
        while self._queue and self._nodes:
            node = max(self._nodes.values(), key=lambda node: node.room)
            if node.room <= 0:
                return
            task = self._queue.popleft()
            task.begin = time.monotonic()
            node.tasks.append(task)
            function = self._on(node, self._carry_out)
            reference = function.remote(task.job, self._terms, self._arrays)
            self._takers[reference] = functools.partial(self._ended, node, task)

    def _take_results(self) -> None:
        """Waits until a task of Ray has ended, or it is time to look around again."""
        references = list(self._takers)
        if not references:
            time.sleep(_LOOK_AROUND / 4)
            return
        ready, _ = self._ray.wait(references, timeout=_LOOK_AROUND, fetch_local=False)
        if ready:  # and others perhaps
            ready, _ = self._ray.wait(
                references, num_returns=len(references), timeout=0, fetch_local=False
            )
        for reference in ready:
            self._takers.pop(reference)(reference)
        self._assign()

    def _ended(self, node: _Node, task: QueuedJob, reference: Any) -> None:
        """Takes the outcome of a job, or notices that the job or its node is lost."""
        node.tasks.remove(task)
        exceptions = self._ray.exceptions
        try:
            outcome: Outcome = self._ray.get(reference)
        except (exceptions.WorkerCrashedError, exceptions.OutOfMemoryError):
            # The process is gone, and perhaps with its node, which shows when that is asked.
            reference = self._on(node, self._answer).remote()
            self._takers[reference] = functools.partial(self._answered, node, task)
        except exceptions.RayTaskError as error:  # of the node's own: its worker does not start
            self._refuse(node, _in_words(error))
            self._queue.appendleft(task)
        except exceptions.RayError:
            self._lost_with(node, task)
        else:
            process = outcome.where.rpartition("/")[2]
            self._done[task.job.key] = dataclasses.replace(
                outcome,
                seconds=task.seconds + outcome.seconds,
                where=f"{node.name}/{process}",
                attempt=len(task.problems) + outcome.attempt,
                lost=task.lost,
            )

    def _answered(self, node: _Node, task: QueuedJob, reference: Any) -> None:
        """Counts an attempt if its process has ended on a node that lives."""
        try:
            self._ray.get(reference)
        except self._ray.exceptions.RayError:
            return self._lost_with(node, task)
        self._failed(task, _ENDED, where=node.name)

    def _lost_with(self, node: _Node, task: QueuedJob) -> None:
        """Has a job begun anew elsewhere."""
        self._lose(node.id)
        task.lost += 1
        if task.lost >= _MAX_LOST:
            raise WorkerError(
                f"{task.lost} nodes in turn were lost with job {task.job.key}: find out what ends "
                "them, perhaps too little memory (--worker_memory_limit), and give the same command"
            )
        self._queue.appendleft(task)


def _in_words(error: Any) -> str:
    """The exception that ended a task, in a line."""
    return " ".join(f"{error.cause or error}".split())[:300]
