"""The folder of compiled programs is bounded, and nothing else in it is touched."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest

from jaxevo import machine


@pytest.fixture
def folder(tmp_path):
    """Five programs of 100 bytes, written a second after another, and what is not JAX's."""
    for number in range(5):
        program = tmp_path / f"jit_{number}-cache"
        program.write_bytes(bytes(100))
        os.utime(program, (1000 + number, 1000 + number))
    (tmp_path / "notes.txt").write_bytes(bytes(1000))
    (tmp_path / "elsewhere-cache").symlink_to(tmp_path / "notes.txt")
    return tmp_path


def left(folder) -> list[int]:
    return sorted(int(path.name[4:5]) for path in folder.glob("jit_*-cache"))


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(500, [0, 1, 2, 3, 4]), (499, [1, 2, 3, 4]), (250, [3, 4]), (0, [])],
)
def test_programs_longest_unused_go_until_the_rest_fits(folder, limit: int, expected: list[int]):
    machine.drop_oldest_programs(folder, limit)
    assert left(folder) == expected
    assert (folder / "notes.txt").exists() and (folder / "elsewhere-cache").is_symlink()


def test_a_program_that_was_read_stays_longer(folder):
    os.utime(folder / "jit_0-cache", (2000, 1000))
    machine.drop_oldest_programs(folder, 200)
    assert left(folder) == [0, 4]


class Vanishing:
    """A folder from which a program is deleted before or after it was looked at."""

    def __init__(self, folder: pathlib.Path, before: bool):
        self.folder = folder
        self.before = before

    def glob(self, pattern: str) -> Iterator[pathlib.Path]:
        gone = self.folder / "jit_0-cache"
        for path in list(self.folder.glob(pattern)):
            if path == gone and self.before:
                gone.unlink()
            yield path
        gone.unlink(missing_ok=True)


@pytest.mark.parametrize("before", [True, False])
def test_a_program_that_vanishes_meanwhile_is_no_error(folder, before: bool):
    machine.drop_oldest_programs(Vanishing(folder, before), 300)
    assert left(folder) == [2, 3, 4]


def test_the_device_has_a_name():
    assert machine.device_name()
