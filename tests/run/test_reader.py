"""Runs that are read: the replayed population, and records, configurations and results that cannot
be used.
"""

from __future__ import annotations

import dataclasses
import json
import math
import zlib

import pytest
from builders_runs import (
    GENOME,
    LAST,
    RESULT,
    SMALL,
    individual_record,
    table_records,
    write_run,
)

from jaxevo.config import EvolutionConfig, SearchConfig, replace
from jaxevo.config.presets import ADDED_LATER
from jaxevo.errors import InputError
from jaxevo.files import FileError
from jaxevo.run.reader import check_state, load_run
from jaxevo.run.records import Change
from jaxevo.search_space.genome_files import pack
from jaxevo.strategies.regularized import RegularizedEvolution


@pytest.mark.parametrize("mating_pool", ["growing", "survivors"])
def test_replay_has_the_population_of_the_search_at_every_moment(tmp_path, mating_pool):
    evolution = EvolutionConfig(
        population_size=3,
        num_offspring=2,
        num_generations=9,
        stagnation_start=2,
        stagnation_patience=2,
        mating_pool=mating_pool,
    )
    config = SearchConfig(evolution=evolution, seed=3)
    strategy, records, states = RegularizedEvolution(evolution, 3), [], []
    while candidates := strategy.ask():
        value = zlib.crc32(candidates[0].genome.canonical_key().encode())
        told = dataclasses.replace(
            candidates[0], fitness=None if value % 7 == 0 else value % 101 / 100
        )
        number = len(strategy.events)
        strategy.tell(told)
        records.append(individual_record(told))
        for event in strategy.events[number:]:
            stagnation = {
                "event": event.kind,
                "generation": event.generation,
                "best": event.best_id,
            }
            records.append({"kind": "stagnation", **stagnation})
        states.append(
            (len(records), list(strategy.population), list(strategy.events), strategy.generation)
        )
    assert {"soft", "hard"} == {event.kind for event in strategy.events}
    workdir = write_run(tmp_path, [], config)
    for length, population, events, generation in states:
        workdir.history.write_text(
            "".join(json.dumps(record) + "\n" for record in records[:length])
        )
        replay = load_run(workdir).replay
        assert (replay.population, replay.events, replay.generation) == (
            population,
            events,
            generation,
        )


CHANGE = Change("2026-11-28", 5, {"num_generations": 3}, lifts_stop=True)


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (1, {"id": None}, "id is None, not of type int"),
        (1, {"id": True}, "id is True"),
        (3, {"id": 0}, "id 0 is negative or taken"),
        (1, {"genome": {"normal": []}}, "genome: missing key 'reduction'"),
        (
            1,
            {"genome": {"normal": [{"inputs": [0, 9], "ops": ["identity"] * 2}], "reduction": []}},
            "input 9",
        ),
        (1, {"fitness": "high"}, "fitness is 'high'"),
        (1, {"fitness": math.nan}, "fitness is nan"),
        (1, {"fitness": None}, "either a fitness or a failure"),
        (1, {"parents": "12"}, "parents is '12'"),
        (4, {"parents": [2, "0"]}, "parents\\[1\\] is '0'"),
        (4, {"parents": [2, 5]}, "individual 5 is not an earlier one"),
        (4, {"parents": [2, 1]}, "individual 1 is not an earlier one with a fitness"),
        (4, {"operators": [1]}, "operators\\[0\\] is 1"),
        (
            4,
            {"generation": 2},
            "an individual of generation 2, while the run is in generation 1 of 2",
        ),
        (5, {"reused": 17}, "individual 17 is not"),
        (5, {"seconds": {"train": "1"}}, "seconds: train is '1'"),
        (5, {"seconds": {"sleep": 1}}, "'sleep' is not one of"),
        (6, {"kind": "stagnation", "event": "soft", "best": 3}, "would not avoid stagnation"),
        (6, {"kind": "retraining", "id": 8, "seed": 0}, "individual 8 is not"),
        (6, {"kind": "retraining", "seed": []}, "seed is \\[\\]"),
        (6, {"kind": "change"}, "settings is missing"),
        (6, CHANGE.to_dict() | {"winner": 8}, "individual 8 is not an earlier one"),
        (6, CHANGE.to_dict() | {"winner": 1}, "individual 1 is not an earlier one with a fitness"),
    ],
)
def test_records_that_cannot_be_used(tmp_path, line, changes, message):
    records = table_records()
    records[line - 1] = records[line - 1] | changes
    with pytest.raises(FileError, match=f"history.jsonl, line {line}[:,] .*{message}"):
        load_run(write_run(tmp_path, records))


@pytest.mark.parametrize(
    "changes",
    [
        *({"losses": []}, {"losses": [0.5] * 16}, {"losses": [-0.5]}),
        *({"loss": None}, {"loss": -1e9}),
    ],
)
def test_candidates_of_a_race_have_losses_that_a_rival_can_have(tmp_path, changes):
    races = replace(SMALL, {"fitness": "speed", "racing": 0.1})
    scores = {"accuracy": 0.5, "cross_entropy": 0.5, "loss": 0.5, "losses": [0.5]}
    raced = [
        record | scores if record.get("fitness") is not None else record
        for record in table_records()
    ]
    assert load_run(write_run(tmp_path / "right", raced, config=races)).candidates
    raced[0] |= changes
    with pytest.raises(FileError, match="history.jsonl, line 1: its losses are not those of a"):
        load_run(write_run(tmp_path / "wrong", raced, config=races))


STATE = {"pending": [], "next_id": 1, "generation": 0, "population": [], "best": None, "events": []}


@pytest.mark.parametrize("rival", [1.0, True, "1", 2, 99])
def test_a_state_whose_rivals_cannot_be_is_refused(tmp_path, rival):
    candidates = load_run(write_run(tmp_path, table_records())).candidates
    check_state(STATE, candidates)
    with pytest.raises((KeyError, ValueError)):
        check_state(STATE | {"pending": [{"rival": rival}]}, candidates)


def test_a_state_with_fitness_that_no_history_has_is_refused(tmp_path):
    candidates = load_run(write_run(tmp_path, table_records())).candidates
    first = candidates[0].individual.to_dict()
    check_state(STATE | {"best": first, "population": [first]}, candidates)
    better = first | {"fitness": 0.999}
    for changes in ({"best": better}, {"population": [better]}, {"best": 1}, {"told": [better]}):
        with pytest.raises((KeyError, ValueError)):
            check_state(STATE | changes, candidates)


@pytest.mark.parametrize(
    "name", ["id", "genome", "generation", "parents", "operators", "fitness", "seconds", "reused"]
)
def test_missing_keys(tmp_path, name):
    records = table_records()
    del records[2][name]
    with pytest.raises(FileError, match=f"history.jsonl, line 3: {name} is missing"):
        load_run(write_run(tmp_path, records))


def test_a_record_of_another_kind_is_passed_over(tmp_path):
    records = [{"kind": "remark", "text": "of a later version"}, *table_records()]
    assert len(load_run(write_run(tmp_path, records)).candidates) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {}}, "seed is missing"),
        ({"device": 3}, "device is 3"),
        ({"versions": {"jax": None}}, "versions: jax is None"),
        ({"schema": 2}, "schema 2"),
        ({"changes": {}}, "changes is {}"),
        ({"changes": [{}]}, "change 1: settings is missing"),
        (
            {"changes": [CHANGE.to_dict() | {"settings": {"num_generations": "3"}}]},
            "num_generations is '3'",
        ),
    ],
)
def test_a_damaged_config(tmp_path, changes, message):
    workdir = write_run(tmp_path, [])
    workdir.config.write_text(json.dumps(json.loads(workdir.config.read_text()) | changes))
    with pytest.raises(FileError, match=f"config.json.*{message}"):
        load_run(workdir)


def test_a_run_of_an_earlier_version(tmp_path):
    workdir = write_run(tmp_path, table_records())
    document = json.loads(workdir.config.read_text())
    for name in ADDED_LATER:
        del document["config"][name]
    workdir.config.write_text(json.dumps(document))
    assert load_run(workdir).config == SMALL
    workdir.open(SMALL, {})  # goes on with it
    with pytest.raises(FileError, match="strategy was 'rea', is 'aco'"):
        workdir.open(dataclasses.replace(SMALL, strategy="aco"), {})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("population_size", 0), ("mating_pool", "none"), ("seed", "0")),
        *(("initial_genomes", "["), ("initial_genomes", pack([GENOME] * 3))),
    ],
)
def test_a_config_of_impossible_values(tmp_path, name, value):
    workdir = write_run(tmp_path, [])
    document = json.loads(workdir.config.read_text())
    document["config"][name] = value
    workdir.config.write_text(json.dumps(document))
    with pytest.raises(FileError, match=f"config.json, config: {name}"):
        load_run(workdir)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([], "result is \\[\\]"),
        (RESULT | {"id": 77}, "not the result of this history"),
        (RESULT | {"test_accuracy": None}, "some are null, not all"),
        (RESULT | {"test_interval": None, "test_images": None}, "some are null, not all"),
        (RESULT | {"validation_accuracy": None}, "validation_accuracy is None"),
        (RESULT | {"test_interval": [0.5]}, "not the result"),
        (RESULT | {"seconds": {}}, "final is missing"),
    ],
)
def test_a_damaged_result(tmp_path, result, message):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(result))
    with pytest.raises(FileError, match=f"result.json.*{message}"):
        load_run(workdir)


def test_a_result_without_a_test(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    untested = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))
    workdir.result.write_text(json.dumps(RESULT | untested))
    result = load_run(workdir).result
    assert result is not None
    assert (result.test_accuracy, result.test_interval, result.test_images) == (None, None, None)
    assert result.to_dict() | {"seconds": {}} == RESULT | untested | {"seconds": {}}


def test_a_result_of_an_incomplete_search(tmp_path):
    workdir = write_run(tmp_path, table_records())
    workdir.result.write_text(json.dumps(RESULT))
    with pytest.raises(FileError, match="not the result of this history"):
        load_run(workdir)


def test_find(tmp_path):
    run = load_run(write_run(tmp_path, table_records()))
    found = run.find(1)
    assert found is not None and found.fitness is None
    with pytest.raises(InputError, match="no individual 6"):
        run.find(6)
