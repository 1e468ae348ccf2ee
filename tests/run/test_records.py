"""Lines of a history are written and read by the same types, and each value is checked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import chain

from jaxevo.checked import CheckedFields
from jaxevo.files import FileError
from jaxevo.run.records import Candidate, Change, Place, Retraining, Stagnation, Stop
from jaxevo.strategies.individual import Individual


def individual(id_: int, fitness: float | None = 0.5, **fields: Any) -> Individual:
    return Individual(id_, chain(2), 0, operators=("random",), fitness=fitness, **fields)


EARLIER = {
    0: Candidate(individual(0), 10, 100),
    1: Candidate(individual(1, None), 10, 100, failure="the loss was nan"),
    3: Candidate(individual(3), 10, 100, losses=(0.5,)),
}


def read_back(line: dict[str, Any]) -> CheckedFields:
    """A line as it comes from the disk."""
    return CheckedFields("line 3", json.loads(json.dumps(line)))


@pytest.mark.parametrize(
    "candidate",
    [
        Candidate(individual(2), 10, 100),
        Candidate(individual(2, 1.0, parents=(0, 0)), 10, 100, seconds={"train": 1.5}),
        Candidate(individual(2), 10, 100, reused=0),
        Candidate(individual(2, None), 10, 100, failure="its process ended"),
        Candidate(individual(2), 10, 100, place=Place("n1/17", attempt=2, lost=3)),
        Candidate(individual(2, rival=3), 10, 100, losses=(1.5, 1 / 3)),
    ],
)
def test_candidates_are_read_back_as_they_were_written(candidate: Candidate):
    line = candidate.to_dict()
    assert line["kind"] == "individual" and "traceback" not in line
    assert Candidate.read(read_back(line), EARLIER) == candidate


def test_a_place_is_of_a_node_and_its_numbers_are_counts():
    assert (Place("n1/17").node, Place("n1").node) == ("n1", "n1")
    line = Candidate(individual(2), 10, 100, place=Place("n1/17")).to_dict()
    assert "where" not in Candidate(individual(2), 10, 100).to_dict()
    for wrong in ({"attempt": 0}, {"lost": -1}):
        with pytest.raises(FileError, match="not counts of attempts"):
            Candidate.read(read_back(line | wrong), EARLIER)


def test_a_rival_is_an_earlier_individual_with_losses():
    for wrong in (0, 1, 7):
        line = Candidate(individual(2, rival=wrong), 10, 100).to_dict()
        with pytest.raises(FileError, match=f"rival {wrong} is not an earlier individual"):
            Candidate.read(read_back(line), EARLIER)
    for wrong in ([None], ["1"], 3):
        line = Candidate(individual(2), 10, 100).to_dict() | {"losses": wrong}
        with pytest.raises(FileError, match="losses"):
            Candidate.read(read_back(line), EARLIER)


def test_seconds_of_candidates_are_rounded_and_tracebacks_are_written_for_people():
    seconds = {"train": 1.23456789}
    candidate = Candidate(individual(2, None), 1, 1, None, "why", seconds, "Traceback ...")
    line = candidate.to_dict()
    assert line["seconds"] == {"train": 1.2346} and line["traceback"] == "Traceback ..."
    read = Candidate.read(read_back(line), EARLIER)
    assert read.traceback is None and read.failure == "why"


def test_a_genome_files_metadata_say_where_it_is_from():
    assert EARLIER[0].metadata("usps", 7) == {
        "dataset": "usps",
        "seed": 7,
        "id": 0,
        "parameters": 10,
        "search_fitness": 0.5,
    }


@pytest.mark.parametrize(
    "retraining",
    [Retraining(0, 1, 0.25), Retraining(1, 0, 0.0, "diverged", {"compile": 1.0, "train": 2.0})],
)
def test_retrainings_are_read_back_as_they_were_written(retraining: Retraining):
    line = retraining.to_dict()
    assert line["kind"] == "retraining" and line["seed"] == retraining.repeat
    assert Retraining.read(read_back(line), EARLIER) == retraining


def test_stagnations_and_stops_are_read_back_as_they_were_written():
    stagnation, stop = Stagnation("hard", 7, 3), Stop("the time limit was reached")
    assert stagnation.to_dict()["kind"] == "stagnation" and stop.to_dict()["kind"] == "stop"
    assert Stagnation.read(read_back(stagnation.to_dict())) == stagnation
    assert Stop.read(read_back(stop.to_dict())) == stop


CHANGE = Change("2026-11-28T12:00:00", 2, {"num_generations": 8, "final_warmup": 0.1}, True)


@pytest.mark.parametrize(
    "change", [CHANGE, Change("2026-11-28T12:00:00", 2, {}, False, 0, 0.9, None)]
)
def test_changes_are_read_back_as_they_were_written(change: Change):
    assert change.to_dict()["kind"] == "change"
    assert Change.read(read_back(change.to_dict())) == change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": 3}, "time is 3, not of type str"),
        ({"settings": []}, r"settings is \[\], not of type dict"),
        ({"settings": {"final_epochs": float("inf")}}, "final_epochs is inf"),
        ({"lifts_stop": 1}, "lifts_stop is 1, not of type bool"),
        ({"winner": 0.5}, "winner is 0.5, not of type int"),
    ],
)
def test_a_change_that_cannot_be_is_refused(change: dict[str, Any], reason: str):
    with pytest.raises(FileError, match=f"line 3.*: {reason}"):
        Change.read(read_back(CHANGE.to_dict() | change))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 0}, "id 0 is negative or taken by an earlier line"),
        ({"id": -1}, "id -1 is negative or taken by an earlier line"),
        ({"id": "2"}, "id is '2', not of type int"),
        ({"id": True}, "id is True, not of type int"),
        ({"fitness": None}, "an individual has either a fitness or a failure"),
        ({"failure": "why"}, "an individual has either a fitness or a failure"),
        ({"fitness": 1e16}, "fitness is 1e+16, not a number up to 1e+15"),
        ({"fitness": float("nan")}, "fitness is nan, not a number up to 1e+15"),
        ({"parents": [2]}, "individual 2 is not an earlier one with a fitness"),
        ({"parents": [0, 1]}, "individual 1 is not an earlier one with a fitness"),
        ({"parents": [0.5]}, "parents[0] is 0.5, not of type int"),
        ({"reused": 1}, "individual 1 is not an earlier one with a fitness"),
        ({"operators": "random"}, "operators is 'random', not of type list"),
        ({"genome": []}, "genome is [], not of type dict"),
        ({"parameters": None}, "parameters is None, not of type int"),
        ({"seconds": {"sleep": 1.0}}, "'sleep' is not one of compile, train, evaluate"),
        ({"seconds": {"train": "1"}}, "train is '1', not of type float"),
    ],
)
def test_a_candidate_that_cannot_be_is_refused(change: dict[str, Any], reason: str):
    line = Candidate(individual(2), 10, 100).to_dict() | change
    with pytest.raises(FileError) as caught:
        Candidate.read(read_back(line), EARLIER)
    assert str(caught.value).startswith("line 3")
    assert f": {reason}; restore the file from a copy" in str(caught.value)


@pytest.mark.parametrize("name", ["id", "genome", "generation", "parents", "fitness", "seconds"])
def test_a_candidate_of_which_a_value_is_missing_is_refused(name: str):
    line = Candidate(individual(2), 10, 100).to_dict()
    del line[name]
    with pytest.raises(FileError, match=f"line 3: {name} is missing"):
        Candidate.read(read_back(line), EARLIER)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": 5}, "individual 5 is not an earlier one"),
        ({"fitness": None}, "fitness is None, not of type float"),
        ({"seed": 0.5}, "seed is 0.5, not of type int"),
        ({"seconds": []}, r"seconds is \[\], not of type dict"),
    ],
)
def test_a_retraining_that_cannot_be_is_refused(change: dict[str, Any], reason: str):
    with pytest.raises(FileError, match=f"line 3: {reason}"):
        Retraining.read(read_back(Retraining(0, 1, 0.25).to_dict() | change), EARLIER)
