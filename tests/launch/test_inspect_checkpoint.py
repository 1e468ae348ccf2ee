"""The launcher from outside: text, JSON, the exported genome, and one line for what cannot be used;
all without JAX.
"""

import json
import os
import pathlib

import numpy as np
import pytest
from builders_pages import Page
from builders_runs import LAST, RESULT, individual_record, retraining, table_records, write_run
from launching import launch

from jaxevo.reports.cell_text import cell_lines
from jaxevo.run.confusion import Confusion
from jaxevo.search_space import genome_files
from jaxevo.search_space.genome import CELL_KINDS

KEPT = {"id": 3, "retrained_fitness": 0.6, "validation_accuracy": 0.7, "parameters": 10}


def inspect(folder: pathlib.Path, *arguments: str, columns: int = 80) -> tuple[int, str, str]:
    """Runs the launcher where an import of JAX fails."""
    done = launch(
        "launch/inspect_checkpoint.py",
        *arguments,
        environment=os.environ | {"COLUMNS": str(columns)},
        folder=folder,
        without_jax=True,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run, one of two candidates, one of none, a damaged one, and a folder that is no
    run.
    """
    folder = tmp_path_factory.mktemp("runs")
    (folder / "other").mkdir()
    records = table_records()
    records[1]["failure"] = "[bold]not finite[/bold] :smile: [/]\x1b[31m"
    records[3]["operators"] = ["crossover", "[red]"]
    finished = [*records, individual_record(LAST), retraining(2, 0, 0.64)]
    workdir = write_run(folder / "run", finished)
    workdir.result.write_text(json.dumps(RESULT | {"kept": [KEPT]}))
    Confusion(("[red]", "dog"), np.array([[60, 40], [5, 7]])).write(workdir.confusion)
    write_run(folder / "young", records[:2], tail='{"kind": "indi')
    write_run(folder / "empty", [])
    write_run(folder / "damaged", table_records(), tail="{}\n")
    return folder


def test_text_and_json(folder):
    results = [
        inspect(folder, "--workdir=run", "--id=5", "--export_best=five.json"),
        inspect(folder, "--workdir=young", "--id=1", columns=120),
        inspect(folder, "--workdir=empty"),
        inspect(
            folder,
            *("--workdir=run", "--json", "--export_best=exported.json", "--plot=of/run"),
            "--report=report.html",
        ),
        inspect(folder, "--workdir=young", "--id=1", "--plot=of/young"),
        inspect(folder, "--genome=evoA.json", "--plot=of/genomes"),
    ]
    assert [(code, err) for code, _, err in results] == [(0, "")] * 6
    text, young, empty, document, _, genome = (out for _, out, _ in results)

    assert all(len(line) <= 80 for line in text.splitlines())
    assert "…" not in text  # rich's mark of text that is cut off
    lines = [" ".join(line.split()) for line in text.splitlines()]
    for line in (
        "state complete",
        "[red] 100 60.00% 60 40",
        "dog 12 58.33% 5 7",
        "3 60.00% 70.00% 10 run/kept/3",
        # 18 from 37.5 % to 70 %: 9.7 are 55 %, 12.5 are 60 %
        "0 60.00% 55.00% 1.0 2.0 3 0 1 ━━━━━━━━━━──",
        "3 1 70.00% 1 2 10 2 0 crossover, [red]",
        "crossover 4 1/4 = 25% (5% to 70%) 2/4 = 50% (15% to 85%)",
        "2 0 60.00% 64.00%",
        "1 [bold]not finite[/bold] :smile: [/]\\x1b[31m",
        "final training 9.5",
        "5: 65.00%, generation 2, crossover, op_mutation",
        "├── 3: 70.00%, generation 1, crossover, [red]",
        "│ ├── 2: 60.00%, generation 0, random",
        "output = concat( node 0, node 1 )",
    ):
        assert line in lines, line
    assert (
        "failed: [bold]not finite[/bold] :smile: [/]\\x1b[31m\n1: failed, generation 0, random\n"
        in young
    )
    assert "incomplete: in generation 0 of 2, 2 candidates known" in young
    assert "0 candidates known" in empty and "POPULATION" not in empty

    parsed = json.loads(document)
    assert (parsed["best"], parsed["individual"]["id"], parsed["complete"]) == (2, 2, True)
    assert [individual["id"] for individual in parsed["lineage"]] == [2]
    assert parsed["classes"][1]["taken_for"] == {"dog": 7, "[red]": 5}
    assert [individual["id"] for individual in parsed["population"]] == [3, 5]
    assert parsed["operators"][0]["survived"]["successes"] == 2
    assert genome_files.load(folder / "exported.json")[1]["id"] == 2
    assert genome_files.load(folder / "five.json")[1]["id"] == 5
    page = Page((folder / "report.html").read_text())
    assert "[red]" in page.texts["figcaption"] + page.texts["th"] and len(page.of("img")) == 5
    pictures = {
        path.name: sorted(p.name for p in path.iterdir()) for path in (folder / "of").iterdir()
    }
    progress = ["progress.png", "progress.svg"]
    sizes = ["sizes.png", "sizes.svg"]
    assert pictures == {
        "run": [
            *("cells.png", "cells.svg", "confusion.png", "confusion.svg", *progress, *sizes),
            *("training.png", "training.svg"),
        ],
        "young": ["cells_1.png", "cells_1.svg", *progress, *sizes],
        "genomes": ["evoA.png", "evoA.svg"],
    }
    assert "node 1: concat" in (folder / "of" / "run" / "cells.svg").read_text()
    evo_a = genome_files.find("evoA")[0]
    for name, cell in zip(CELL_KINDS, evo_a.cells, strict=True):
        assert "\n".join([f"{name.upper()} CELL OF evoA.json", *cell_lines(cell)]) in genome
        assert (
            f"{name.title()} cell: {cell.num_nodes} nodes (B = {cell.num_nodes})"
            in (folder / "of" / "genomes" / "evoA.svg").read_text()
        )


def test_errors_are_one_line(folder):
    (folder / "there.json").write_text("precious")
    cases = {
        "give either --workdir=": (),
        "or --genome=": ("--workdir=run", "--genome=evoA.json"),
        "'nothing.json' is neither a file nor": ("--genome=nothing.json", "--plot=pictures"),
        "there.json: not a JSON document": ("--genome=there.json",),
        "--id is of a run": ("--genome=evoA.json", "--id=0"),
        "other is not the folder of a run": ("--workdir=other",),
        "missing is not the folder of a run": ("--workdir=missing",),
        "history.jsonl, line 7, is damaged": ("--workdir=damaged",),
        "has no individual 99": ("--workdir=run", "--id=99"),
        "there.json exists already": ("--workdir=run", "--export_best=there.json"),
        "nothing to draw": ("--workdir=empty", "--plot=pictures"),
        "nothing to export": ("--workdir=empty", "--export_best=new.json"),
        "its folder does not exist": ("--workdir=run", "--export_best=nowhere/new.json"),
    }
    for message, arguments in cases.items():
        code, out, err = inspect(folder, *arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("error: ") and message in err
    assert (folder / "there.json").read_text() == "precious"
    assert not (folder / "new.json").exists() and not any((folder / "pictures").glob("*"))
