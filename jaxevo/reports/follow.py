"""The display in a terminal of a run that another process carries out. JAX is not imported.

The run's files are looked at every second, or less often where reading them takes long.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jaxevo.console import say
from jaxevo.reports import summary
from jaxevo.run.reader import Run, load_run
from jaxevo.run.words import percent, result_lines
from jaxevo.run.workdir import Workdir

_SECONDS = 1.0  # between two looks
_PATIENCE = 20  # times what the reading took: the search needs the processor
_OTHER_LINES = 8  # of the display, beside those of generations


def follow(
    workdir: Workdir, console: Console, *, wait: Callable[[float], None] = time.sleep
) -> None:
    """Shows a run until it is complete, and then its result.

    Args:
        workdir: The run's folder.
        console: Where it is shown.
        wait: Waits so many seconds.

    Raises `FileError`.
    """
    with Live(console=console, auto_refresh=False) as live:
        seen: list[tuple[int, int] | None] = []
        result, took = None, 0.0
        while result is None:
            if seen:
                wait(max(_SECONDS, _PATIENCE * took))
            now = _sizes(workdir)
            if now != seen:
                begin = time.perf_counter()
                run, seen = load_run(workdir), now
                took = time.perf_counter() - begin
                result = run.result
                live.update(display(run, console.height), refresh=console.is_terminal)
    if not console.is_terminal:  # where the display ends without a line's end
        console.print()
    for line in result_lines(result):
        say(console, line)


def display(run: Run, height: int) -> Group:
    """Progress, the last generations as far as there is room, and the newest candidate."""
    bar = Table.grid(padding=(0, 1), expand=True)
    for ratio in (None, 1, None):
        bar.add_column(ratio=ratio, no_wrap=True)
    # More than expected: candidates drawn for failed ones, or after hard stagnation avoidance.
    known = len(run.candidates)
    expected = max(run.config.num_candidates, known)
    bar.add_row("candidates", ProgressBar(total=expected, completed=known), f"{known}/{expected}")
    parts = [Text(summary.state(run)), bar, *_generations(run, max(1, height - _OTHER_LINES))]
    if run.candidates:
        newest = list(run.candidates.values())[-1]
        fitness = newest.failure or percent(newest.fitness)
        line = f"newest: {newest.id}, {fitness}, {newest.parameters:,} parameters"
        parts.append(Text(line, no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _generations(run: Run, most: int) -> list[Table]:
    """The last generations as a table; none before the first candidate."""
    rows = summary.generations(run)[-most:]
    if not rows:
        return []
    table = Table(box=None, pad_edge=False)
    for name in ("generation", "best so far", "median", "trained", "reused", "failed"):
        table.add_column(name, justify="right")
    for row in rows:
        counts = (row.generation, percent(row.best), percent(row.median))
        counts += (row.trainings, row.reused, row.failed)
        table.add_row(*map(str, counts))
    return [table]


def _sizes(workdir: Workdir) -> list[tuple[int, int] | None]:
    """Size and time of the files that tell how far a run has come."""
    found: list[tuple[int, int] | None] = []
    for path in (workdir.config, workdir.history, workdir.result, workdir.final_checkpoints):
        try:
            stat = path.stat()
            found.append((stat.st_size, stat.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found
