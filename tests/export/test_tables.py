"""Tables of candidates: a hand-worked run, the same values in both formats."""

import csv
import json

from builders_runs import GENOME, hash_run, table_records, write_run
from pyarrow import parquet

from jaxevo.export import tables
from jaxevo.run.reader import load_run


def test_the_rows_of_the_table(tmp_path):
    rows = tables.rows(load_run(write_run(tmp_path, table_records())))
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert rows[3] == {
        **{"id": 3, "generation": 1, "parents": "2 0", "operators": "crossover op_mutation"},
        **{"survived": True, "fitness": 0.7, "accuracy": 0.7, "cross_entropy": None, "loss": None},
        **{"parameters": 10, "multiply_adds": 20, "reused": None, "failure": None},
        **{"compile_seconds": 1.0, "train_seconds": 2.0, "evaluate_seconds": 0.5},
        **{"normal_nodes": 1, "reduction_nodes": 2, "channels": 24, "num_normal_cells": 3},
        **{"conv_kind": "separable", "channel_multiplier": 2},
        "genome": json.dumps(GENOME.to_dict()),
    }
    assert (rows[1]["fitness"], rows[1]["failure"]) == (None, "diverged")
    assert (rows[4]["reused"], rows[4]["train_seconds"]) == (2, None)


def test_both_formats_have_the_rows(tmp_path):
    run = hash_run(tmp_path, 40, min_channels=4, vary_conv_kind=True, strategy="nsga2")
    rows = tables.rows(run)
    assert len({row["channels"] for row in rows}) > 1  # each genome's own
    assert {row["conv_kind"] for row in rows} == {"separable", "full"}
    tables.save_parquet(run, tmp_path / "table.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").to_pylist() == rows
    tables.save_csv(run, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open() as file:
        texts = list(csv.DictReader(file))
    assert texts == [
        {name: "" if value is None else str(value) for name, value in row.items()} for row in rows
    ]


def test_types_do_not_depend_on_the_values(tmp_path):
    # Before the first failure and the first duplicate their columns are empty.
    run = load_run(write_run(tmp_path, table_records()[:1]))
    tables.save_parquet(run, tmp_path / "one.parquet")
    types = {field.name: str(field.type) for field in parquet.read_schema(tmp_path / "one.parquet")}
    assert (types["failure"], types["reused"], types["loss"]) == ("string", "int64", "double")
