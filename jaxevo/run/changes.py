"""A run that is continued: settings with which it goes on that it did not begin with.

A change is made by writing it into `config.json`. Whatever else it takes is done when the run is
opened, so a process that ends in between leaves a run that goes on in the same way. JAX is not
imported.
"""

from __future__ import annotations

import datetime
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from jaxevo.config import SearchConfig, replace
from jaxevo.config.changes import ENDS, changed
from jaxevo.run.ledger import Ledger
from jaxevo.run.reader import Run, load_run
from jaxevo.run.records import Change
from jaxevo.run.workdir import Workdir


def change_run(
    workdir: Workdir,
    config: SearchConfig,
    about: dict[str, Any],
    *,
    time_limit: float | None,
    check: Callable[[Run], None] = lambda run: None,
) -> str | None:
    """Writes that the run goes on with this configuration.

    A search that a time limit has ended goes on too, unless only the final training changes.

    Args:
        workdir: The run's folder.
        config: The settings that the run is to have.
        about: What `Workdir.open` is given beside the configuration.
        time_limit: Seconds that the search may take now; None: no limit.
        check: Raises where the run cannot go on, before anything is written.

    Returns:
        The change in words; None if nothing changes.

    Raises:
        InputError: There is no run, it is of a version that drew otherwise, the images are others,
            or a setting cannot change.
    """
    run = load_run(workdir)
    document = workdir.open(run.config, about)
    # The images are the run's, wherever they lie now.
    if "data" in about:
        config = replace(config, {"dataset": run.config.data.dataset})
    settings = changed(run.config, config)
    # A time limit's end is lifted where more of the search is asked for.
    more = not settings or time_limit is not None or bool(settings.keys() & set(ENDS))
    lifts_stop = run.records.stop is not None and more
    if not settings and not lifts_stop:
        return None
    workdir.check_streams(document, run.config)
    check(run)
    result = run.result
    change = Change(
        time=datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        candidates=len(run.candidates),
        settings=settings,
        lifts_stop=lifts_stop,
        winner=None if result is None else result.id,
        validation_accuracy=None if result is None else result.validation_accuracy,
        test_accuracy=None if result is None else result.test_accuracy,
    )
    workdir.add_change(change)
    return describe(change)


def settle_changes(workdir: Workdir, ledger: Ledger, changes: Sequence[Change]) -> None:
    """Does what the history does not have of the changes in `config.json`. Raises `OSError`."""
    missing = changes[len(ledger.changes) :]
    if not missing:
        return
    # A run with a result would be complete. Others may be kept beside another winner.
    for file in (workdir.result, workdir.front):
        file.unlink(missing_ok=True)
    for folder in (workdir.kept, workdir.baseline_weights):
        shutil.rmtree(folder, ignore_errors=True)
    # The last generation may have been cut short (an ant colony's); the history suffices.
    if any("num_generations" in change.settings for change in missing):
        shutil.rmtree(workdir.checkpoints, ignore_errors=True)
    for change in missing:
        ledger.add_change(change)


def describe(change: Change) -> str:
    """A change in words."""
    settings = ", ".join(f"{name}={value}" for name, value in change.settings.items())
    went_on = "beyond the time limit" if change.lifts_stop else ""
    words = " and ".join(filter(None, (went_on, f"with {settings}" if settings else "")))
    return f"continued after {change.candidates} candidates {words}"
