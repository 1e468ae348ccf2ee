"""A stopwatch of parts: seconds by part, each second counted once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping


class Stopwatch:
    """Seconds of a process by part.

    Parts nest: a part that begins within another one stops it meanwhile, so compiling that falls
    into a training counts as compiling alone. It belongs to one thread.

    Args:
        clock: Gives the time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}
        self._clock = clock
        self._begin = self._last = clock()
        self._stack: list[str] = []

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Adds the time within to a part, also when it ends by an exception."""
        self._charge()
        self._stack.append(name)
        try:
            yield
        finally:
            self._charge()
            self._stack.pop()

    def add(self, name: str, seconds: float) -> None:
        """Adds time that was measured elsewhere, before this stopwatch was made."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self._begin -= seconds

    @property
    def running(self) -> str | None:
        """The innermost part that runs, if any; another thread may ask."""
        stack = tuple(self._stack)
        return stack[-1] if stack else None

    def total(self) -> float:
        """Seconds since the stopwatch was made, and those that were added."""
        return self._clock() - self._begin

    @contextlib.contextmanager
    def lap(self) -> Iterator[dict[str, float]]:
        """Yields a dict that holds, at the end of the block, the seconds of its parts."""
        self._charge()
        before = dict(self.seconds)
        lap: dict[str, float] = {}
        try:
            yield lap
        finally:
            self._charge()
            lap |= _differences(before, self.seconds)

    def _charge(self) -> None:
        """Puts the time since the last call down to the part that is running, if any."""
        now = self._clock()
        if self._stack:
            name = self._stack[-1]
            self.seconds[name] = self.seconds.get(name, 0.0) + now - self._last
        self._last = now


def _differences(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, float]:
    """The parts that have grown, and by how much."""
    grown = {name: value - before.get(name, 0.0) for name, value in after.items()}
    return {name: value for name, value in grown.items() if value > 0}
