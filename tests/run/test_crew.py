"""What other processes are at, in words."""

from __future__ import annotations

from builders import chain

from jaxevo.run.crew import Crew
from jaxevo.run.pool import Member
from jaxevo.run.records import Candidate, Place
from jaxevo.strategies.individual import Individual


def candidate(number: int, place: Place | None) -> Candidate:
    return Candidate(Individual(number, chain(1), 0, fitness=0.5), 1, 1, place=place)


def test_nodes_are_told_with_what_they_are_at():
    members = [Member("b", (0, 0, 12)), Member("b"), Member("a/17"), Member("b", (0, 0, 14))]
    assert Crew(lambda: members, lambda: 0.0).words() == ["a: idle", "b: 12 14"]


def test_many_nodes_are_counted():
    members = [Member(f"n{number}") for number in range(10)]
    words = Crew(lambda: members, lambda: 0.0).words()
    assert words[7:] == ["n7: idle", "2 more nodes"]


def test_the_pace_is_that_of_trained_candidates_and_losses_and_retries_are_counted():
    now = 0.0
    crew = Crew(lambda: [], lambda: now)
    places = [Place("a/1"), None, Place("a/2", attempt=2), Place("b/1", lost=2)]
    for number, place in enumerate(places):
        crew.add(candidate(number, place))
        now += 10
    # The second one was not trained: two more in the 30 s after the first.
    assert crew.words() == ["4.0 candidates a minute", "2 lost with nodes", "1 tried again"]
