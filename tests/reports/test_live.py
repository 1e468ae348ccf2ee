"""The report of a run that goes on: when it is written, at which cost, and what a fault does."""

from __future__ import annotations

import dataclasses
import json
import pathlib

from builders_pages import Page
from builders_runs import LAST, RESULT, SMALL, individual_record, table_records, write_run

from jaxevo.reports.live import LiveReport
from jaxevo.run.ledger import Ledger
from jaxevo.run.reader import load_run
from jaxevo.run.remaining import Remaining
from jaxevo.run.reporter import Silent
from jaxevo.run.workdir import Workdir
from jaxevo.stopwatch import Stopwatch


class Clock:
    """Time that passes by command, and so many seconds at each look."""

    def __init__(self, step: float) -> None:
        self.now = 100.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def begun(path: pathlib.Path, step: float) -> tuple[LiveReport, Silent, Clock, Workdir]:
    """A report of a run of three candidates, whose first page is written."""
    workdir = write_run(path, table_records()[:3])
    clock, inner = Clock(step), Silent()
    live = LiveReport(inner, workdir, clock)
    ledger = Ledger.open(workdir, SMALL)
    live.begin(Remaining(SMALL, ledger, Stopwatch(), num_train=10, scored=1.0))
    return live, inner, clock, workdir


def test_it_is_written_at_the_start_and_after_each_generation(tmp_path: pathlib.Path):
    live, _, _, workdir = begun(tmp_path / "run", step=0.001)
    page = Page(workdir.report.read_text())
    assert page.of("body") == [{"data-reload": "5"}]
    workdir.report.unlink()
    run = load_run(workdir)
    live.candidate(run.candidates[2], run.replay)
    # Generation 0 is complete after candidate 2, and had only begun at candidate 0.
    assert workdir.report.exists() == (run.replay.generation > 0)
    workdir.report.unlink(missing_ok=True)
    current = dataclasses.replace(run.candidates[2].individual, generation=run.replay.generation)
    live.candidate(dataclasses.replace(run.candidates[2], individual=current), run.replay)
    assert not workdir.report.exists()


def test_it_takes_at_most_a_hundredth_of_the_time(tmp_path: pathlib.Path):
    live, _, clock, workdir = begun(tmp_path / "run", step=1.0)
    live.training("final training", 1, 9, note="")
    workdir.report.unlink()
    live.training("final training", 2, 9, note="")
    clock.now += 90
    live.training("final training", 3, 9, note="")
    assert not workdir.report.exists()
    clock.now += 20
    live.training("final training", 4, 9, note="")
    assert workdir.report.exists()


def test_everything_is_passed_on(tmp_path: pathlib.Path):
    live, inner, _, _ = begun(tmp_path / "run", step=0.0)
    live.message("words")
    live.stage("testing", 0, 1)
    live.epoch(1, 2)
    assert inner.messages == ["words"]


def test_a_fault_is_told_once_and_ends_nothing(tmp_path: pathlib.Path):
    live, inner, _, workdir = begun(tmp_path / "run", step=0.0)
    workdir.report.unlink()
    workdir.report.mkdir()
    for epoch in range(3):
        live.training("final training", epoch, 9, note="")
    (message,) = inner.messages
    assert message.startswith("no report is written (") and "\n" not in message
    assert message.endswith("; the run is not affected")


def test_the_last_page_has_pictures_and_is_written_once(tmp_path: pathlib.Path):
    live, inner, _, workdir = begun(tmp_path / "run", step=0.0)
    complete = [*table_records(), individual_record(LAST)]
    write_run(workdir.path, complete)
    workdir.result.write_text(json.dumps(RESULT))
    live.finish()
    page = Page(workdir.report.read_text())
    assert page.of("body") == [{}] and len(page.of("img")) >= 3
    before = workdir.report.stat().st_mtime_ns
    live.finish()
    assert workdir.report.stat().st_mtime_ns == before and inner.messages == []
