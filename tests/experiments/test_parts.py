"""Parts as jobs of a pool: what follows on them, what fails, and what ends them all."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re

import pytest

from jaxevo.config import WorkerConfig
from jaxevo.errors import InputError
from jaxevo.experiments.parts import Workplace, make_parts, making, shared_place
from jaxevo.run.pool import Job
from jaxevo.training.fit import DivergedError

LIMITS = WorkerConfig(workers=2)


@dataclasses.dataclass(frozen=True)
class Writing:
    """Each part writes a file of its name, unless its end is another one."""

    folder: pathlib.Path
    place: Workplace

    def build(self):
        return making(self.place, self.write)

    def write(self, name: str, end: str = "") -> str:
        if end == "diverges":
            raise DivergedError("the loss was nan")
        if end == "dies":
            os._exit(3)
        if end == "is refused":
            raise InputError("the folder is another run's")
        (self.folder / name).touch()
        return name.upper()


def test_followers_are_made_and_a_part_that_fails_is_named(tmp_path: pathlib.Path):
    said = []
    with shared_place(tmp_path / "run", LIMITS) as place:
        setup = Writing(tmp_path, place)

        def followers(key, made):
            return [Job("after", setup, (f"after {made}",))] if key == "first" else []

        ends = {"first": "", "bad": "diverges", "worse": "dies", "last": ""}
        jobs = [Job(name, setup, (name, end)) for name, end in ends.items()]
        failures = make_parts(jobs, LIMITS, say=said.append, followers=followers)
    assert failures == {
        "bad": "the loss was nan",
        "worse": "its process ended with exit code 3, twice",
    }
    made = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert made == {"first", "last", "after FIRST"}
    assert {line.split(":")[0] for line in said} == {*ends, "after"}
    (line,) = (line for line in said if line.startswith("bad"))
    assert re.match(r"bad: failed after 0(\.\d+)? s on .*: the loss was nan; ", line)
    assert said[-1].endswith("; 0 to go")
    # The marker is gone with the block.
    assert list((tmp_path / "run").iterdir()) == []


def test_a_part_that_is_refused_ends_all(tmp_path: pathlib.Path):
    with shared_place(tmp_path, LIMITS) as place:
        setup = Writing(tmp_path, place)
        jobs = [Job(name, setup, (name, "is refused")) for name in ("one", "two")]
        with pytest.raises(InputError, match="the folder is another run's"):
            make_parts(jobs, LIMITS, say=lambda text: None)


def test_a_process_that_does_not_see_the_folder_makes_nothing(tmp_path: pathlib.Path):
    with shared_place(tmp_path / "run", LIMITS) as place:
        elsewhere = dataclasses.replace(place, marker=tmp_path / "not_here" / place.marker.name)
        refusal = Writing(tmp_path, elsewhere).build()("one")["refusal"]
    assert f"does not see {tmp_path}/not_here: give a --workdir" in refusal
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize(("workers", "threads"), [(1, 4), (2, 2), (3, 1), (9, 1), (0, 1)])
def test_the_processes_of_a_machine_share_its_cores(tmp_path, monkeypatch, workers, threads):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(4)))
    with shared_place(tmp_path, WorkerConfig(workers=workers)) as place:
        assert place.share.threads == threads
