"""What a run's records say: hand-worked tables, the replayed population, and records that cannot be used."""

import dataclasses
import json
import math
import pathlib
import zlib
from typing import Any

import pytest

from jaxevo.config import EvolutionConfig, SearchConfig
from jaxevo.config.presets import ADDED_LATER
from jaxevo.errors import InputError
from jaxevo.reports import summary as report
from jaxevo.reports.summary import Generation
from jaxevo.run.records import load
from jaxevo.run.workdir import FileError, Workdir
from jaxevo.search_space import genome as genomes
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.strategies.individual import Individual
from jaxevo.strategies.regularized import RegularizedEvolution

NODE = Node((0, 1), (Op.CONV_3X3, Op.IDENTITY))
GENOME = Genome(Cell((NODE,)), Cell((NODE, NODE)))
SMALL = SearchConfig(evolution=EvolutionConfig(population_size=2, num_offspring=2, num_generations=2))
TRAINED = {"compile": 1.0, "train": 2.0, "evaluate": 0.5}

# id, generation, parents, operators, fitness, reused. After generation 1 the best two of 3 (0.7), 2 (0.6), 4 (0.6) and
# 0 (0.5) are 3 and 2; generation 2 lacks its second offspring.
TABLE = (
    (0, 0, (), "random", 0.5, None),
    (1, 0, (), "random", None, None),
    (2, 0, (), "random", 0.6, None),
    (3, 1, (2, 0), "crossover op_mutation", 0.7, None),
    (4, 1, (3, 2), "crossover", 0.6, 2),
    (5, 2, (3, 2), "crossover op_mutation", 0.65, None),
)
RESULT = {
    **{"id": 2, "parameters": 10, "multiply_adds": 20, "trainings": 9, "test_images": 100, "seconds": {"final": 9.5}},
    **{"dataset": "digits", "candidates": 7, "memo_hits": 1, "failures": 1, "session_seconds": {"train": 9.0}},
    **{
        "search_fitness": 0.64,
        "retrained_fitness": 0.62,
        "validation_accuracy": 0.6,
        "test_accuracy": 0.55,
        "test_interval": [0.5, 0.6],
    },
}


def individual_record(individual: Individual, reused: int | None = None) -> dict[str, Any]:
    failure = "diverged" if individual.fitness is None else None
    outcome = {"reused": reused, "failure": failure, "seconds": {} if reused is not None else TRAINED}
    return {"kind": "individual", **individual.to_dict(), "parameters": 10, "multiply_adds": 20, **outcome}


LAST = Individual(6, GENOME, 2, (3, 2), ("crossover",), 0.1)  # completes generation 2


def table_records() -> list[dict[str, Any]]:
    return [
        individual_record(Individual(new_id, GENOME, generation, parents, tuple(names.split()), fitness), reused)
        for new_id, generation, parents, names, fitness, reused in TABLE
    ]


def retraining(known: int, seed: int, fitness: float) -> dict[str, Any]:
    return {"kind": "retraining", "id": known, "seed": seed, "fitness": fitness, "failure": None, "seconds": TRAINED}


def write_run(
    path: pathlib.Path, records: list[dict[str, Any]], config: SearchConfig = SMALL, tail: str = ""
) -> Workdir:
    path.mkdir(exist_ok=True)
    workdir = Workdir(path)
    workdir.open(config, {"preset": "quick", "device": "a device"})
    workdir.history.write_text("".join(json.dumps(record) + "\n" for record in records) + tail)
    return workdir


def interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's formula."""
    z, p = 1.959963984540054, successes / trials
    half = z * math.sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    low, high = ((p + z * z / (2 * trials) + side * half) / (1 + z * z / trials) for side in (-1, 1))
    return low, high


def as_tuple(rate: report.Rate | None) -> tuple | None:
    return None if rate is None else dataclasses.astuple(rate)


def test_generations_of_the_table(tmp_path):
    rows = report.generations(load(write_run(tmp_path, table_records())))
    assert rows == [
        Generation(0, 0.6, pytest.approx(0.55), 1.0, 2.0, trainings=3, reused=0, failed=1),
        Generation(1, 0.7, pytest.approx(0.65), 1.0, 2.0, trainings=1, reused=1, failed=0),
        Generation(2, 0.7, pytest.approx(0.65), 1.0, 2.0, trainings=1, reused=0, failed=0),
    ]


def test_operator_success_of_the_table(tmp_path):
    rows = report.operator_success(load(write_run(tmp_path, table_records())))
    expected = {  # beaten and survived: only generations 0 and 1 are complete
        "crossover": (3, (1, 3), (1, 2)),
        "random": (3, None, (2, 3)),
        "op_mutation": (2, (1, 2), (1, 1)),
    }
    assert [row.operator for row in rows] == list(expected)
    for row in rows:
        applied, *rates = expected[row.operator]
        assert row.applied == applied
        for rate, counts in zip((row.beat_better_parent, row.survived), rates, strict=True):
            assert as_tuple(rate) == (None if counts is None else pytest.approx((*counts, *interval(*counts))))


def test_population_lineage_failures_and_seconds_of_the_table(tmp_path):
    run = load(write_run(tmp_path, table_records()))
    assert [member.id for member in run.replay.population] == [3, 5, 2]
    assert run.survivors == {0, 2, 3}
    lineages = {of: [individual.id for individual in report.ancestors(run, of)] for of in run.candidates}
    assert lineages == {0: [0], 1: [1], 2: [2], 3: [0, 2, 3], 4: [0, 2, 3, 4], 5: [0, 2, 3, 5]}
    assert report.failures(run) == {"diverged": 1}
    spent = {"compile": 5.0, "train": 10.0, "evaluate": 2.5, "total": 17.5}
    assert report.seconds(run) == {"search": spent, "retraining": dict.fromkeys(spent, 0.0)}
    assert report.state(run) == "incomplete: in generation 2 of 2, 6 candidates known"
    assert run.best is not None and run.best.id == 3


def test_state_after_the_search(tmp_path):
    records = [*table_records(), individual_record(LAST), retraining(3, 0, 0.6), retraining(2, 0, 0.64)]
    workdir = write_run(tmp_path, records)
    asked = "incomplete: training the best again, 2 of at most 6 trainings known"
    assert report.state(load(workdir)) == asked
    for epoch, content in ((7, "x"), (8, "")):  # an empty folder is no checkpoint
        folder = workdir.final_checkpoints / str(epoch)
        folder.mkdir(parents=True)
        if content:
            (folder / content).touch()
    assert report.state(load(workdir)) == "incomplete: in the final training, after epoch 7 of 100"
    workdir.result.write_text(json.dumps(RESULT))
    run = load(workdir)
    assert report.state(run) == "complete"
    assert run.best is not None and run.best.id == 2  # the winner, not the best of the search
    assert report.seconds(run)["retraining"]["total"] == 7.0
    assert report.seconds(run)["final training"] == {"total": 9.5}


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
        told = dataclasses.replace(candidates[0], fitness=None if value % 7 == 0 else value % 101 / 100)
        number = len(strategy.events)
        strategy.tell(told)
        records.append(individual_record(told))
        for event in strategy.events[number:]:
            stagnation = {"event": event.kind, "generation": event.generation, "best": event.best_id}
            records.append({"kind": "stagnation", **stagnation})
        states.append((len(records), list(strategy.population), list(strategy.events), strategy.generation))
    assert {"soft", "hard"} == {event.kind for event in strategy.events}
    workdir = write_run(tmp_path, [], config)
    for length, population, events, generation in states:
        workdir.history.write_text("".join(json.dumps(record) + "\n" for record in records[:length]))
        replay = load(workdir).replay
        assert (replay.population, replay.events, replay.generation) == (population, events, generation)


def test_an_empty_and_a_torn_history(tmp_path):
    run = load(write_run(tmp_path / "empty", []))
    assert run.best is None and run.find(None) is None
    assert report.generations(run) == report.operator_success(run) == []
    assert report.state(run) == "incomplete: in generation 0 of 2, 0 candidates known"
    assert json.loads(json.dumps(report.document(run, None)))["individual"] is None
    with pytest.raises(InputError, match="nothing to export"):
        report.export_best(run, tmp_path / "best.json")
    torn = load(write_run(tmp_path / "torn", table_records(), tail='{"kind": "ind'))
    assert list(torn.candidates) == [*range(6)]


def test_a_run_of_one_generation(tmp_path):
    config = SearchConfig(evolution=EvolutionConfig(population_size=2, num_generations=0))
    run = load(write_run(tmp_path, table_records()[:3], config))
    assert run.replay.done and len(report.generations(run)) == 1
    assert [row.operator for row in report.operator_success(run)] == ["random"]


@pytest.mark.parametrize(
    ("line", "changes", "message"),
    [
        (1, {"id": None}, "id is None, not of type int"),
        (1, {"id": True}, "id is True"),
        (3, {"id": 0}, "id 0 is negative or taken"),
        (1, {"genome": {"normal": []}}, "genome: missing key 'reduction'"),
        (1, {"genome": {"normal": [{"inputs": [0, 9], "ops": ["identity"] * 2}], "reduction": []}}, "input 9"),
        (1, {"fitness": "high"}, "fitness is 'high'"),
        (1, {"fitness": math.nan}, "fitness is nan"),
        (1, {"fitness": None}, "either a fitness or a failure"),
        (1, {"parents": "12"}, "parents is '12'"),
        (4, {"parents": [2, "0"]}, "parents\\[1\\] is '0'"),
        (4, {"parents": [2, 5]}, "individual 5 is not an earlier one"),
        (4, {"parents": [2, 1]}, "individual 1 is not an earlier one with a fitness"),
        (4, {"operators": [1]}, "operators\\[0\\] is 1"),
        (4, {"generation": 2}, "an individual of generation 2, while the run is in generation 1 of 2"),
        (5, {"reused": 17}, "individual 17 is not"),
        (5, {"seconds": {"train": "1"}}, "seconds: train is '1'"),
        (5, {"seconds": {"sleep": 1}}, "'sleep' is not one of"),
        (6, {"kind": "stagnation", "event": "soft", "best": 3}, "would not avoid stagnation"),
        (6, {"kind": "retraining", "id": 8, "seed": 0}, "individual 8 is not"),
        (6, {"kind": "retraining", "seed": []}, "seed is \\[\\]"),
    ],
)
def test_records_that_cannot_be_used(tmp_path, line, changes, message):
    records = table_records()
    records[line - 1] = records[line - 1] | changes
    with pytest.raises(FileError, match=f"history.jsonl, line {line}[:,] .*{message}"):
        load(write_run(tmp_path, records))


@pytest.mark.parametrize("name", ["id", "genome", "generation", "parents", "operators", "fitness", "seconds", "reused"])
def test_missing_keys(tmp_path, name):
    records = table_records()
    del records[2][name]
    with pytest.raises(FileError, match=f"history.jsonl, line 3: {name} is missing"):
        load(write_run(tmp_path, records))


def test_a_record_of_another_kind_is_passed_over(tmp_path):
    records = [{"kind": "remark", "text": "of a later version"}, *table_records()]
    assert len(load(write_run(tmp_path, records)).candidates) == 6


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config": {}}, "seed is missing"),
        ({"device": 3}, "device is 3"),
        ({"versions": {"jax": None}}, "versions: jax is None"),
        ({"schema": 2}, "schema 2"),
    ],
)
def test_a_damaged_config(tmp_path, changes, message):
    workdir = write_run(tmp_path, [])
    workdir.config.write_text(json.dumps(json.loads(workdir.config.read_text()) | changes))
    with pytest.raises(FileError, match=f"config.json.*{message}"):
        load(workdir)


def test_a_run_of_an_earlier_version(tmp_path):
    workdir = write_run(tmp_path, table_records())
    document = json.loads(workdir.config.read_text())
    for name in ADDED_LATER:
        del document["config"][name]
    workdir.config.write_text(json.dumps(document))
    assert load(workdir).config == SMALL
    workdir.open(SMALL, {})  # goes on with it
    with pytest.raises(FileError, match="strategy was 'rea', is 'aco'"):
        workdir.open(dataclasses.replace(SMALL, strategy="aco"), {})


@pytest.mark.parametrize(("name", "value"), [("population_size", 0), ("mating_pool", "none"), ("seed", "0")])
def test_a_config_of_impossible_values(tmp_path, name, value):
    workdir = write_run(tmp_path, [])
    document = json.loads(workdir.config.read_text())
    document["config"][name] = value
    workdir.config.write_text(json.dumps(document))
    with pytest.raises(FileError, match=f"config.json, config: {name}"):
        load(workdir)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([], "result is \\[\\]"),
        (RESULT | {"id": 77}, "not the result of this history"),
        (RESULT | {"test_accuracy": None}, "test_accuracy is None"),
        (RESULT | {"test_interval": [0.5]}, "not the result"),
        (RESULT | {"seconds": {}}, "final is missing"),
    ],
)
def test_a_damaged_result(tmp_path, result, message):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(result))
    with pytest.raises(FileError, match=f"result.json.*{message}"):
        load(workdir)


def test_a_result_of_an_incomplete_search(tmp_path):
    workdir = write_run(tmp_path, table_records())
    workdir.result.write_text(json.dumps(RESULT))
    with pytest.raises(FileError, match="not the result of this history"):
        load(workdir)


def test_text_of_a_record_cannot_control_the_terminal(tmp_path):
    records = table_records()
    records[1]["failure"] = "red \x1b[31m\nand \ud800"
    assert report.failures(load(write_run(tmp_path, records))) == {"red \\x1b[31m\\nand \\ud800": 1}


def test_drawing():
    nodes = (
        Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)),
        Node((2, 0), (Op.MAX_POOL_3X3, Op.CONV_5X5)),
        Node((1, 1), (Op.CONV_7X7, Op.AVG_POOL_3X3)),
        Node((3, 4), (Op.IDENTITY, Op.IDENTITY)),
        Node((0, 4), (Op.IDENTITY, Op.CONV_3X3)),
        Node((5, 2), (Op.CONV_3X3, Op.CONV_3X3)),
    )
    assert report.draw(Cell(nodes)) == [
        "depth 1   node 0  = concat( conv_3x3(input),      identity(input) )",
        "          node 2  = concat( conv_7x7(input),      avg_pool_3x3(input) )",
        "depth 2   node 1  = concat( max_pool_3x3(node 0), conv_5x5(input) )",
        "          node 4  = concat( identity(input),      conv_3x3(node 2) )",
        "depth 3   node 3  = concat( identity(node 1),     identity(node 2) )",
        "depth 4   node 5  = concat( conv_3x3(node 3),     conv_3x3(node 0) )",
        "output            = concat( node 4, node 5 )",
    ]
    assert report.draw(Cell(nodes[:1]))[-1] == "output            = node 0"


def test_the_exported_genome_file(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    report.export_best(load(workdir), tmp_path / "best_so_far.json")
    metadata = {"dataset": "digits", "seed": 0, "id": 3, "parameters": 10, "search_fitness": 0.7}
    assert genomes.load(tmp_path / "best_so_far.json") == (GENOME, metadata)
    workdir.result.write_text(json.dumps(RESULT))
    report.export_best(load(workdir), tmp_path / "winner.json")
    winner = metadata | {"id": 2, "search_fitness": 0.64, "retrained_fitness": 0.62, "test_accuracy": 0.55}
    assert genomes.load(tmp_path / "winner.json") == (GENOME, winner)
    with pytest.raises(InputError, match="winner.json exists already"):
        report.export_best(load(workdir), tmp_path / "winner.json")


def test_find(tmp_path):
    run = load(write_run(tmp_path, table_records()))
    found = run.find(1)
    assert found is not None and found.fitness is None
    with pytest.raises(InputError, match="no individual 6"):
        run.find(6)
