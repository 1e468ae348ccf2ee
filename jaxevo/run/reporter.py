"""The interface by which a run tells what it does; displays implement it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from jaxevo.run.pool import Member
from jaxevo.run.records import Candidate
from jaxevo.run.remaining import Remaining
from jaxevo.strategies.base import Strategy


class Reporter(Protocol):
    """Listener to a run's progress."""

    def begin(self, remaining: Remaining) -> None:
        """The run begins; `remaining` tells at any time how long it still takes."""
        ...

    def message(self, text: str) -> None:
        """Takes a message of one line."""
        ...

    def candidate(self, candidate: Candidate, strategy: Strategy) -> None:
        """A candidate was recorded, and the strategy was told of it."""
        ...

    def stage(self, name: str, done: int, total: int) -> None:
        """A stage that follows the search begins; so much of it was done before."""
        ...

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        """Progress of a stage that follows the search."""
        ...

    def epoch(self, done: int, total: int) -> None:
        """An epoch of a candidate's training is done."""
        ...

    def members(self, members: Callable[[], Sequence[Member]]) -> None:
        """Other processes train; `members` tells at any time which there are."""
        ...


class Silent:
    """Keeps the messages and shows nothing."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def begin(self, remaining: Remaining) -> None:
        """Shows nothing."""

    def message(self, text: str) -> None:
        """Keeps the message."""
        self.messages.append(text)

    def candidate(self, candidate: Candidate, strategy: Strategy) -> None:
        """Shows nothing."""

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        """Shows nothing."""

    def stage(self, name: str, done: int, total: int) -> None:
        """Shows nothing."""

    def epoch(self, done: int, total: int) -> None:
        """Shows nothing."""

    def members(self, members: Callable[[], Sequence[Member]]) -> None:
        """Shows nothing."""
