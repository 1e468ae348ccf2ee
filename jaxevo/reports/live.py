"""The report of a run while it goes on, and at its end. No fault of a report ends a run.

JAX is not imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from jaxevo.errors import printable
from jaxevo.files import write_text
from jaxevo.reports.run_page import render_run, write_report
from jaxevo.run.pool import Member
from jaxevo.run.reader import load_run
from jaxevo.run.records import Candidate
from jaxevo.run.remaining import Remaining
from jaxevo.run.reporter import Reporter
from jaxevo.run.workdir import Workdir
from jaxevo.strategies.base import Strategy

RELOAD = 5  # seconds, after which the page of a run that goes on loads itself anew
_PATIENCE = 100  # the page is left as it is until so many times the seconds that it took are over


class LiveReport:
    """Passes everything on to another reporter, and keeps the run's page new.

    The page is written when the run begins, after each generation, and as later stages go on; but
    not while that would take more than a hundredth of the time.

    Args:
        reporter: Is told everything.
        workdir: The run's folder.
        clock: Gives the time in seconds.
    """

    def __init__(
        self,
        reporter: Reporter,
        workdir: Workdir,
        clock: Callable[[], float] = time.perf_counter,
    ):
        self._reporter = reporter
        self._workdir = workdir
        self._clock = clock
        self._next = 0.0  # no page is written before
        self._faults: set[str] = set()  # that were told

    def begin(self, remaining: Remaining) -> None:
        """The first page; what it brings into memory is not what the next ones take."""
        self._reporter.begin(remaining)
        self._renew()
        self._next = 0.0

    def message(self, text: str) -> None:
        """Passes the message on."""
        self._reporter.message(text)

    def candidate(self, candidate: Candidate, strategy: Strategy) -> None:
        """Passes the candidate on; the last one of a generation renews the page."""
        self._reporter.candidate(candidate, strategy)
        if strategy.generation > candidate.individual.generation:
            self._renew()

    def stage(self, name: str, done: int, total: int) -> None:
        """Passes the stage on."""
        self._reporter.stage(name, done, total)

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        """Passes the progress on, and renews the page."""
        self._reporter.training(stage, done, total, note=note)
        self._renew()

    def epoch(self, done: int, total: int) -> None:
        """Passes the epoch on."""
        self._reporter.epoch(done, total)

    def members(self, members: Callable[[], Sequence[Member]]) -> None:
        """Passes on who tells of other processes."""
        self._reporter.members(members)

    def finish(self) -> bool:
        """Writes the page of the finished run with all pictures, unless it is there.

        Returns whether it is there.
        """
        report, result = self._workdir.report, self._workdir.result
        if report.exists() and report.stat().st_mtime_ns > result.stat().st_mtime_ns:
            return True
        return self._try(lambda: write_report(load_run(self._workdir), report))

    def _renew(self) -> None:
        """Writes the page, unless the last one is too short a time ago for what it took."""
        begin = self._clock()
        if begin < self._next:
            return

        def write() -> None:
            text = render_run(load_run(self._workdir), reload=RELOAD)
            write_text(self._workdir.report, text)

        self._try(write)
        end = self._clock()
        self._next = end + _PATIENCE * (end - begin)

    def _try(self, write: Callable[[], None]) -> bool:
        """Calls a writer; any fault of it is told once, as the run must not end by it.

        Returns whether there was none.
        """
        try:
            write()
            return True
        except Exception as error:
            fault = printable(f"{type(error).__name__}: {error}")
            if fault not in self._faults:
                self._faults.add(fault)
                self._reporter.message(f"no report is written ({fault}); the run is not affected")
            return False
