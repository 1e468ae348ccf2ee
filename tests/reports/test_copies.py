"""Genome files and weights that are copied out of a run."""

from __future__ import annotations

import json
import pathlib

import pytest
from builders_runs import GENOME, LAST, RESULT, individual_record, table_records, write_run

from jaxevo.errors import InputError
from jaxevo.reports import copies
from jaxevo.run.reader import load_run
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files

KEPT = {"id": 3, "retrained_fitness": 0.6, "validation_accuracy": 0.7, "parameters": 10}


def test_weights_that_are_kept_are_exported(tmp_path):
    workdir = write_run(tmp_path / "run", [*table_records(), individual_record(LAST)])
    with pytest.raises(InputError, match="no trained weights: the run is inc"):
        copies.copy_weights(load_run(workdir), None, tmp_path / "none")
    for folder in (workdir.best_weights, workdir.weights(3)):
        folder.mkdir(parents=True)
        (folder / "weights").write_text(folder.name)
    workdir.result.write_text(json.dumps(RESULT | {"kept": [KEPT]}))
    run = load_run(workdir)
    for known, name in ((None, "best"), (2, "best"), (3, "3")):
        copies.copy_weights(run, known, tmp_path / f"of {known}")
        assert (tmp_path / f"of {known}" / "weights").read_text() == name
    with pytest.raises(InputError, match="of 3 exists already; give the folder of weights another"):
        copies.copy_weights(run, 3, tmp_path / "of 3")
    with pytest.raises(InputError, match="no trained weights of individual 4: those of 2, 3 are; "):
        copies.copy_weights(run, 4, tmp_path / "of 4")
    assert not (tmp_path / "of 4").exists()


def export(workdir: Workdir, path: pathlib.Path, known: int | None = None) -> None:
    run = load_run(workdir)
    copies.write_genome(run, run.find(known), path)


def test_the_exported_genome_file(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    export(workdir, tmp_path / "best_so_far.json")
    metadata = {"dataset": "digits", "seed": 0, "id": 3, "parameters": 10, "search_fitness": 0.7}
    assert genome_files.load(tmp_path / "best_so_far.json") == (GENOME, metadata)
    workdir.result.write_text(json.dumps(RESULT))
    export(workdir, tmp_path / "winner.json")
    winner = metadata | {
        "id": 2,
        "search_fitness": 0.6,
        "retrained_fitness": 0.62,
        "test_accuracy": 0.55,
    }
    assert genome_files.load(tmp_path / "winner.json") == (GENOME, winner)
    untested = dict.fromkeys(("test_accuracy", "test_interval", "test_images"))
    workdir.result.write_text(json.dumps(RESULT | untested))
    export(workdir, tmp_path / "untested.json")
    del winner["test_accuracy"]
    assert genome_files.load(tmp_path / "untested.json") == (GENOME, winner)
    with pytest.raises(InputError, match="winner.json exists already"):
        export(workdir, tmp_path / "winner.json")
    # Of any individual, a failed one too, only its own figures.
    for known, fitness in ((1, None), (5, 0.65)):
        export(workdir, tmp_path / f"{known}.json", known)
        own = metadata | {"id": known, "search_fitness": fitness}
        assert genome_files.load(tmp_path / f"{known}.json") == (GENOME, own)
