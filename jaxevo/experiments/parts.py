"""Parts of an experiment, whole searches and trainings, as jobs of a pool.

A part is made in a folder of its own, by the code that makes it where there is no pool, and goes on
there after an interruption. The experiment then goes through its parts and finds them made. So all
processes see the same folders: those of other machines by a file system that they share.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import platform
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from jaxevo.config import WorkerConfig
from jaxevo.errors import InputError
from jaxevo.run.explore import SearchFailedError
from jaxevo.run.open_pool import open_pool
from jaxevo.run.pool import Function, Job, Key, Outcome
from jaxevo.run.share import Share
from jaxevo.run.words import format_duration
from jaxevo.training.fit import DivergedError

HERE = WorkerConfig()  # no pool: this process makes the parts


class PartFailedError(RuntimeError):
    """A pool could not make a part, which is not to be tried in this process."""


@dataclasses.dataclass(frozen=True)
class Workplace:
    """The surroundings of a process that makes parts.

    Attributes:
        cwd: Working folder, to which paths are relative.
        marker: File in the experiment's folder, there while its parts are made.
        share: Of the machine, that the process has.
    """

    cwd: str
    marker: pathlib.Path
    share: Share

    def enter(self) -> None:
        """Makes this process like the one that asks for parts.

        Raises `InputError` where this process does not see the experiment's folder.
        """
        with contextlib.suppress(OSError):  # without the folder, the marker is not found either
            os.chdir(self.cwd)
        if not self.marker.exists():
            folder = pathlib.Path(self.cwd) / self.marker.parent
            raise InputError(
                f"{platform.node()} does not see {folder}: give a --workdir (and data) on a file "
                "system that all nodes share, under the same path"
            )
        self.share.take()


@contextlib.contextmanager
def shared_place(folder: pathlib.Path, limits: WorkerConfig) -> Iterator[Workplace]:
    """The place of parts in an experiment's folder, which is made; good within the block.

    Raises `OSError`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(prefix=".shared-", dir=folder) as file:
        marker = folder / pathlib.Path(file.name).name
        yield Workplace(os.getcwd(), marker, Share.of(limits))


def making(place: Workplace, make: Callable[..., Any]) -> Function:
    """The function of jobs that make parts, for a setup to build.

    Args:
        place: Where they are made.
        make: Makes a part of the job's arguments; what it returns is the part's `made`.

    Returns:
        A function to a dict: `made`, or `failure`, why the part has failed for good, or `refusal`,
        why none can be made so.
    """

    def function(*arguments: Any) -> Mapping[str, Any]:
        try:
            place.enter()
            return {"made": make(*arguments)}
        except (SearchFailedError, DivergedError) as error:
            return {"failure": str(error)}
        except InputError as error:
            return {"refusal": str(error)}

    return function


def make_parts(
    jobs: Iterable[Job],
    limits: WorkerConfig,
    *,
    say: Callable[[str], None],
    followers: Callable[[Key, Any], Iterable[Job]] = lambda key, made: (),
) -> dict[Key, str]:
    """Has a pool make parts, begun in their order, and says a line of each that has ended.

    Args:
        jobs: With setups that build what `making` gives; keys are the parts' names.
        limits: Of the pool.
        say: Takes the lines.
        followers: Gives the jobs that a part was needed for, from its key and what was made.

    Returns:
        Why parts have failed, by key.

    Raises:
        InputError: A part is refused, as by a folder of another run; all others end unfinished.
    """
    waiting = {job.key: job for job in jobs}
    failures: dict[Key, str] = {}
    if not waiting:
        return failures
    with open_pool(limits, say) as pool:
        for job in waiting.values():
            pool.submit(job)
        while waiting:
            # Take the next part that has ended.
            key = pool.first(waiting)
            del waiting[key]
            outcome = pool.result(key)
            value = outcome.value or {"failure": outcome.failure}
            if "refusal" in value:
                raise InputError(value["refusal"])
            # Submit what waited for it, unless it has failed.
            if "failure" in value:
                failures[key] = value["failure"]
            else:
                for job in followers(key, value["made"]):
                    waiting[job.key] = job
                    pool.submit(job)
            say(f"{_line(key, outcome, failures.get(key))}; {len(waiting)} to go")
    return failures


def _line(key: Key, outcome: Outcome, failure: str | None) -> str:
    """How a part has ended."""
    took = f"{format_duration(outcome.seconds)} on {outcome.where}"
    again = f", attempt {outcome.attempt}" if outcome.attempt > 1 else ""
    return f"{key}: failed after {took}: {failure}" if failure else f"{key}: {took}{again}"
