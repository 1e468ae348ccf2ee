"""What a run's records say: hand-worked tables."""

from __future__ import annotations

import json

import numpy as np
import pytest
from builders_runs import (
    LAST,
    RESULT,
    SMALL,
    individual_record,
    retraining,
    table_records,
    write_run,
)

from jaxevo.config import EvolutionConfig, SearchConfig, replace
from jaxevo.errors import InputError
from jaxevo.reports import copies, descent, summary
from jaxevo.reports.summary import ClassScore, Generation
from jaxevo.run.changes import change_run
from jaxevo.run.confusion import Confusion
from jaxevo.run.reader import load_run


def test_generations_of_the_table(tmp_path):
    rows = summary.generations(load_run(write_run(tmp_path, table_records())))
    assert rows == [
        Generation(0, 0.6, pytest.approx(0.55), 1.0, 2.0, trainings=3, reused=0, failed=1),
        Generation(1, 0.7, pytest.approx(0.65), 1.0, 2.0, trainings=1, reused=1, failed=0),
        Generation(2, 0.7, pytest.approx(0.65), 1.0, 2.0, trainings=1, reused=0, failed=0),
    ]


def test_population_lineage_failures_and_seconds_of_the_table(tmp_path):
    run = load_run(write_run(tmp_path, table_records()))
    assert [member.id for member in run.replay.population] == [3, 5, 2]
    assert run.records.survivors == {0, 2, 3}
    lineages = {
        of: [individual.id for individual in descent.ancestors(run, of)] for of in run.candidates
    }
    assert lineages == {0: [0], 1: [1], 2: [2], 3: [0, 2, 3], 4: [0, 2, 3, 4], 5: [0, 2, 3, 5]}
    assert summary.failures(run) == {"diverged": 1}
    spent = {"compile": 5.0, "train": 10.0, "evaluate": 2.5, "total": 17.5}
    assert summary.seconds(run) == {"search": spent, "retraining": dict.fromkeys(spent, 0.0)}
    assert summary.state(run) == "incomplete: in generation 2 of 2, 6 candidates known"
    assert run.best is not None and run.best.id == 3


def test_state_after_the_search(tmp_path):
    records = [
        *table_records(),
        individual_record(LAST),
        retraining(3, 0, 0.6),
        retraining(2, 0, 0.64),
    ]
    workdir = write_run(tmp_path, records)
    asked = "incomplete: training the best again, 2 of at most 6 trainings known"
    assert summary.state(load_run(workdir)) == asked
    for epoch, content in ((7, "x"), (8, "")):  # an empty folder is no checkpoint
        folder = workdir.final_checkpoints / str(epoch)
        folder.mkdir(parents=True)
        if content:
            (folder / content).touch()
    assert (
        summary.state(load_run(workdir))
        == "incomplete: in the final training, after epoch 7 of 100"
    )
    workdir.result.write_text(json.dumps(RESULT))
    run = load_run(workdir)
    assert summary.state(run) == "complete"
    assert run.best is not None and run.best.id == 2  # the winner, not the best of the search
    assert summary.seconds(run)["retraining"]["total"] == 7.0
    assert summary.seconds(run)["final training"] == {"total": 9.5}


def test_a_run_that_was_continued(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(RESULT))
    for number, settings in enumerate(({"final_epochs": 7}, {"num_generations": 3})):
        change_run(workdir, replace(SMALL, settings | {"final_epochs": 7}), {}, time_limit=None)
        run = load_run(workdir)
        state = ("after the change the winner is chosen", "in generation 3 of 3, 7 candidates")
        assert f"incomplete: {state[number]}" in summary.state(run)
    header = summary.header(run)
    assert header["change 1"].endswith("+00:00: continued after 7 candidates with final_epochs=7")
    assert header["change 2"].endswith(": continued after 7 candidates with num_generations=3")
    changes = summary.document(run, None)["changes"]
    assert [change["settings"] for change in changes] == [
        {"final_epochs": 7},
        {"num_generations": 3},
    ]


def test_what_classes_are_taken_for(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    Confusion(("cat", "dog", "emu"), np.array([[6, 1, 3], [0, 5, 0], [0, 0, 0]])).write(
        workdir.confusion
    )
    assert summary.class_scores(load_run(workdir)) == []  # as long as there is no result
    workdir.result.write_text(json.dumps(RESULT))
    run = load_run(workdir)
    assert summary.class_scores(run) == [
        ClassScore("cat", 10, 0.6, {"cat": 6, "emu": 3, "dog": 1}),
        ClassScore("dog", 5, 1.0, {"dog": 5}),
        ClassScore("emu", 0, None, {}),
    ]
    assert [row["name"] for row in summary.document(run, None)["classes"]] == ["cat", "dog", "emu"]
    workdir.confusion.unlink()
    assert summary.class_scores(run) == []


def test_the_header_tells_whether_the_search_was_worth_it(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    told = {"no_baseline": "too\nsmall", "first_id": 3, "first_fitness": 0.5}
    workdir.result.write_text(json.dumps(RESULT | told))
    lines = summary.header(load_run(workdir))["search"].splitlines()
    assert "in generation 0; trained again it has a fitness of 62.00%, the best" in lines[0]
    assert lines[1] == "the small CNN is left out: too\\nsmall"


def test_an_empty_and_a_torn_history(tmp_path):
    run = load_run(write_run(tmp_path / "empty", []))
    assert run.best is None and run.find(None) is None
    assert summary.generations(run) == descent.operator_success(run) == []
    assert summary.state(run) == "incomplete: in generation 0 of 2, 0 candidates known"
    assert json.loads(json.dumps(summary.document(run, None)))["individual"] is None
    with pytest.raises(InputError, match="nothing to export"):
        copies.write_genome(run, run.best, tmp_path / "best.json")
    torn = load_run(write_run(tmp_path / "torn", table_records(), tail='{"kind": "ind'))
    assert list(torn.candidates) == [*range(6)]


def test_a_run_of_one_generation(tmp_path):
    config = SearchConfig(evolution=EvolutionConfig(population_size=2, num_generations=0))
    run = load_run(write_run(tmp_path, table_records()[:3], config))
    assert run.replay.done and len(summary.generations(run)) == 1
    assert [row.operator for row in descent.operator_success(run)] == ["random"]


def test_nodes_are_told_with_what_they_did(tmp_path):
    records = table_records()
    assert summary.nodes(load_run(write_run(tmp_path / "here", records))) == []
    places = [("n1/5", 1, 0), ("n1/6", 2, 0), ("n2/5", 1, 2)]
    for record, place in zip(records, places, strict=False):
        record |= dict(zip(("where", "attempt", "lost"), place, strict=True))
    run = load_run(write_run(tmp_path / "nodes", records))
    spent = sum(records[0]["seconds"].values())
    first, second = summary.nodes(run)
    assert first == summary.ClusterNode("n1", 2, 2, 1, 0, seconds=first.seconds)
    assert second == summary.ClusterNode("n2", 1, 1, 0, 2, seconds=spent)
    assert summary.document(run, None)["nodes"][1]["name"] == "n2"


def test_text_of_a_record_cannot_control_the_terminal(tmp_path):
    records = table_records()
    records[1]["failure"] = "red \x1b[31m\nand \ud800"
    assert summary.failures(load_run(write_run(tmp_path, records))) == {
        "red \\x1b[31m\\nand \\ud800": 1
    }
