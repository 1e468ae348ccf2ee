"""The display of another process's run: it grows with the history, and ends with the result."""

from __future__ import annotations

import io
import json
import pathlib

import pytest
from builders_runs import LAST, RESULT, hash_run, individual_record, table_records, write_run
from rich.console import Console

from jaxevo.files import FileError
from jaxevo.reports.follow import display, follow
from jaxevo.run.workdir import Workdir


def shown(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_it_goes_on_with_the_run_and_ends_with_its_result(tmp_path: pathlib.Path):
    workdir = write_run(tmp_path / "run", table_records()[:2], tail='{"kind": "indi')
    console = Console(file=io.StringIO(), width=80, height=30, force_terminal=True)
    looks = []

    def wait(seconds: float) -> None:
        looks.append(shown(console))
        if len(looks) == 2:
            write_run(workdir.path, [*table_records(), individual_record(LAST)])
        if len(looks) == 3:
            workdir.result.write_text(json.dumps(RESULT))

    follow(workdir, console, wait=wait)
    assert "incomplete: in generation 0 of 2, 2 candidates known" in looks[0]
    assert looks[1] == looks[0] and "newest: 6, 10.00%, 10 parameters" in looks[2]
    assert "test accuracy 55.00%" in shown(console)[len(looks[2]) :] and len(looks) == 3


def test_it_fits_into_the_terminal(tmp_path: pathlib.Path):
    run = hash_run(tmp_path / "run")
    console = Console(file=io.StringIO(), width=60, height=14)
    console.print(display(run, console.height))
    lines = shown(console).splitlines()
    assert len(lines) <= 13 and "    15 " in shown(console)  # the last generation


def test_what_is_no_run_is_refused(tmp_path: pathlib.Path):
    with pytest.raises(FileError, match="is not the folder of a run"):
        follow(Workdir(tmp_path), Console(file=io.StringIO()))
