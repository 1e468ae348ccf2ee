"""The processes that train for a run, in words for its display. JAX is not imported."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

from jaxevo.run.pool import Member
from jaxevo.run.records import Candidate

_NODES = 8  # that are shown one by one
_RECENT = 50  # candidates whose pace is shown


class Crew:
    """Nodes, what each is at, the pace, and what was lost or tried again.

    Args:
        members: Tells the processes that there are.
        clock: Gives the time in seconds.
    """

    def __init__(self, members: Callable[[], Sequence[Member]], clock: Callable[[], float]):
        self._members, self._clock = members, clock
        self._times: collections.deque[float] = collections.deque(maxlen=_RECENT)
        self._lost = 0
        self._again = 0

    def add(self, candidate: Candidate) -> None:
        """Takes note of a candidate; one that was not trained counts for nothing."""
        if candidate.place is not None:
            self._times.append(self._clock())
            self._lost += candidate.place.lost
            self._again += candidate.place.attempt > 1

    def words(self) -> list[str]:
        """Parts of the lines that tell of it."""
        # What each node is at: the ids are the third numbers of the seeds that are keys.
        by_node: dict[str, list[str]] = {}
        for member in self._members():
            at = by_node.setdefault(member.where.partition("/")[0], [])
            if isinstance(member.key, tuple) and len(member.key) > 2:
                at.append(str(member.key[2]))
        shown = [f"{node}: {' '.join(at) or 'idle'}" for node, at in sorted(by_node.items())]
        if len(shown) > _NODES:
            shown = [*shown[:_NODES], f"{len(shown) - _NODES} more nodes"]
        # The pace, and what went wrong.
        if len(self._times) > 1 and self._times[-1] > self._times[0]:
            pace = 60 * (len(self._times) - 1) / (self._times[-1] - self._times[0])
            shown.append(f"{pace:.1f} candidates a minute")
        if self._lost:
            shown.append(f"{self._lost} lost with nodes")
        if self._again:
            shown.append(f"{self._again} tried again")
        return shown
