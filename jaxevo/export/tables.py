"""All candidates of a run as a table, for pandas, a spreadsheet or a database.

JAX is not imported.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

from jaxevo.config import LAYOUT_BOUNDS
from jaxevo.files import write_bytes, write_csv
from jaxevo.run.reader import Run
from jaxevo.run.records import PARTS, Candidate
from jaxevo.search_space.complexity import network_settings
from jaxevo.search_space.genome import LAYOUT_FIELDS

# Columns that the run's records have as they are.
_SCORES = ("fitness", "accuracy", "cross_entropy", "loss")
_FACTS = ("parameters", "multiply_adds", "reused", "failure")


def rows(run: Run) -> list[dict[str, Any]]:
    """A row for each candidate, in the order of their evaluation.

    Columns are plain values: numbers, texts, or None where a candidate has none. `parents` are ids
    and `operators` names with spaces between; `genome` is JSON as in a genome file.
    """
    return [_row(run, candidate) for candidate in run.candidates.values()]


def _row(run: Run, candidate: Candidate) -> dict[str, Any]:
    individual = candidate.individual
    genome = individual.genome
    settings = network_settings(genome, run.config.network)
    row: dict[str, Any] = {
        "id": candidate.id,
        "generation": individual.generation,
        "parents": " ".join(map(str, individual.parents)),
        "operators": " ".join(individual.operators),
        "survived": candidate.id in run.records.survivors,
    }
    row |= {name: getattr(candidate, name) for name in (*_SCORES, *_FACTS)}
    row |= {f"{part}_seconds": candidate.seconds.get(part) for part in PARTS}
    row |= {"normal_nodes": genome.normal.num_nodes, "reduction_nodes": genome.reduction.num_nodes}
    row |= {name: getattr(settings, name) for name in LAYOUT_FIELDS}
    return row | {"genome": json.dumps(genome.to_dict())}


def save_csv(run: Run, path: pathlib.Path) -> None:
    """Writes the rows of a run that has some as text. Raises `OSError`."""
    write_csv(path, rows(run))


def save_parquet(run: Run, path: pathlib.Path) -> None:
    """Writes the rows of a run that has some as a Parquet file. Raises `OSError`."""
    import pyarrow
    from pyarrow import parquet

    # The same types in each run, also where all values of a column are None.
    numbers = {"id", "generation", "reused", "parameters", "multiply_adds"}
    numbers |= {"normal_nodes", "reduction_nodes", *LAYOUT_BOUNDS.values()}
    texts = {"parents", "operators", "failure", "conv_kind", "genome"}
    found = rows(run)

    def type_of(name: str) -> pyarrow.DataType:
        if name == "survived":
            return pyarrow.bool_()
        if name in texts:
            return pyarrow.string()
        return pyarrow.int64() if name in numbers else pyarrow.float64()

    schema = pyarrow.schema([(name, type_of(name)) for name in found[0]])
    buffer = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist(found, schema=schema), buffer)
    write_bytes(path, buffer.getvalue().to_pybytes())
