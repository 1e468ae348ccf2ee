"""Each second is counted once, in the innermost part; worked by hand on a clock that is set."""

from __future__ import annotations

import pytest

from jaxevo.stopwatch import Stopwatch


class Clock:
    """Shows the seconds that it was advanced by."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stopwatch(clock) -> Stopwatch:
    return Stopwatch(clock)


def test_a_part_within_another_stops_it_meanwhile(clock, stopwatch):
    clock.advance(1)  # of no part
    with stopwatch.part("train"):
        clock.advance(2)
        with stopwatch.part("compile"):
            clock.advance(4)
            with stopwatch.part("checkpoint"):
                clock.advance(8)
            clock.advance(16)
        clock.advance(32)
    clock.advance(64)
    assert stopwatch.seconds == {"train": 2 + 32, "compile": 4 + 16, "checkpoint": 8}
    assert stopwatch.total() == 127


def test_the_innermost_part_runs(stopwatch):
    assert stopwatch.running is None
    with stopwatch.part("train"):
        with stopwatch.part("compile"):
            assert stopwatch.running == "compile"
        assert stopwatch.running == "train"
    assert stopwatch.running is None


def test_a_part_within_itself_counts_once(clock, stopwatch):
    with stopwatch.part("compile"):
        clock.advance(1)
        with stopwatch.part("compile"):
            clock.advance(2)
        clock.advance(4)
    assert stopwatch.seconds == {"compile": 7}


def test_a_part_that_ends_by_an_exception_is_counted_and_over(clock, stopwatch):
    with pytest.raises(MemoryError), stopwatch.part("train"):
        clock.advance(1)
        with stopwatch.part("evaluate"):
            clock.advance(2)
            raise MemoryError
    clock.advance(4)
    with stopwatch.part("train"):
        clock.advance(8)
    assert stopwatch.seconds == {"train": 9, "evaluate": 2}


def test_added_time_belongs_to_the_total(clock, stopwatch):
    stopwatch.add("data", 5)
    clock.advance(2)
    stopwatch.add("data", 1)
    assert stopwatch.seconds == {"data": 6}
    assert stopwatch.total() == 8


def test_a_lap_holds_what_its_block_took_by_part(clock, stopwatch):
    with stopwatch.part("compile"):
        clock.advance(5)  # before, for an estimate
    with stopwatch.lap() as lap:
        clock.advance(1)  # of no part
        with stopwatch.part("train"):
            clock.advance(2)
            with stopwatch.part("compile"):
                clock.advance(3)
        with stopwatch.part("evaluate"):
            pass
        assert lap == {}  # is filled at the end
    clock.advance(1)
    assert lap == {"compile": 3, "train": 2}
    assert stopwatch.seconds == {"compile": 8, "train": 2, "evaluate": 0}


def test_a_lap_begins_and_ends_within_a_part(clock, stopwatch):
    with stopwatch.part("train"):
        clock.advance(1)
        with stopwatch.lap() as lap:
            clock.advance(2)
        clock.advance(4)
    assert lap == {"train": 2}
    assert stopwatch.seconds == {"train": 7}


def test_a_lap_that_ends_by_an_exception_is_filled(clock, stopwatch):
    with pytest.raises(MemoryError), stopwatch.lap() as lap, stopwatch.part("train"):
        clock.advance(3)
        raise MemoryError
    assert lap == {"train": 3}


def test_the_clock_is_that_of_the_machine_if_none_is_given():
    stopwatch = Stopwatch()
    with stopwatch.part("train"):
        pass
    assert 0 <= stopwatch.seconds["train"] <= stopwatch.total()
