"""A history survives crashes: lines are on the disk at once, torn ones go, damaged are named."""

from __future__ import annotations

import pathlib
import resource

import pytest

from jaxevo.config import SearchConfig
from jaxevo.files import FileError
from jaxevo.run.history import MAX_HISTORY_BYTES, MAX_LINE_BYTES, History, read_lines
from jaxevo.run.ledger import Ledger
from jaxevo.run.workdir import Workdir


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "history.jsonl"


def reopened(path: pathlib.Path) -> History:
    """The history as a later session goes on with it."""
    return History(path, read_lines(path)[1])


def append_events(path: pathlib.Path, *events: str) -> None:
    history = reopened(path)
    for event in events:
        history.append({"kind": "stagnation", "event": event})


def events_in(path: pathlib.Path) -> list[str]:
    return [record["event"] for record in read_lines(path)[0]]


def test_lines_are_appended_and_read_back(path: pathlib.Path):
    assert read_lines(path) == ([], 0)
    history = reopened(path)
    history.append({"kind": "individual", "id": 0, "fitness": 0.5, "failure": None})
    # On the disk at once, not when the file is closed.
    first = '{"kind": "individual", "id": 0, "fitness": 0.5, "failure": null}\n'
    assert path.read_text() == first
    history.append({"kind": "stagnation", "event": "soft"})
    history.append({"kind": "individual", "id": 1, "failure": "line\nbreak \u2028 é"})
    with pytest.raises(ValueError, match="not JSON compliant"):
        history.append({"kind": "individual", "id": 2, "fitness": float("nan")})
    records, length = read_lines(path)
    assert records == [
        {"kind": "individual", "id": 0, "fitness": 0.5, "failure": None},
        {"kind": "stagnation", "event": "soft"},
        {"kind": "individual", "id": 1, "failure": "line\nbreak \u2028 é"},
    ]
    assert length == path.stat().st_size


def test_torn_last_line_is_dropped(path: pathlib.Path):
    append_events(path, "soft", "hard")
    whole = path.read_bytes()
    end_of_first = whole.index(b"\n") + 1
    # Wherever the crash was, also just before the line's end.
    for cut in range(end_of_first, len(whole)):
        path.write_bytes(whole[:cut])
        assert events_in(path) == ["soft"]
        append_events(path, "again")  # appends where the first line ends
        assert events_in(path) == ["soft", "again"]
        assert path.read_bytes().startswith(whole[:end_of_first])
    path.write_bytes(whole[: end_of_first - 1])
    assert read_lines(path) == ([], 0)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'{"event": "soft"}',
        b'{"kind": 1}',
        b"\xff",
        b"9" * 5000,
        b"[" * 100_000,
        b"\0" * 20,
    ],
)
def test_damaged_line_is_named_by_its_number(path: pathlib.Path, line: bytes):
    append_events(path, "soft", "hard", "soft")
    lines = path.read_bytes().splitlines()
    damaged = b"\n".join([*lines[:1], line, *lines[2:], b""])
    path.write_bytes(damaged)
    workdir = Workdir(path.parent)
    for read in (lambda: read_lines(path), lambda: Ledger.open(workdir, SearchConfig())):
        with pytest.raises(FileError) as caught:
            read()
        assert str(caught.value) == (
            f"{path}, line 2, is damaged; remove it and all after it to go on from there"
        )
    assert path.read_bytes() == damaged


def test_line_that_did_not_fit_on_the_disk_is_dropped(path: pathlib.Path):
    append_events(path, "soft")
    size, limits = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    history = reopened(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    try:
        with pytest.raises(OSError):
            history.append({"kind": "stagnation", "event": "lost"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.stat().st_size == size + 10
    append_events(path, "again")
    assert events_in(path) == ["soft", "again"]


def test_huge_history_is_refused(path: pathlib.Path):
    with path.open("wb") as file:
        file.truncate(MAX_HISTORY_BYTES + 1)  # a sparse file, nothing is written
    with pytest.raises(
        FileError, match="is larger than 1073741824 bytes; this is another kind of file"
    ):
        read_lines(path)


def test_line_that_is_too_long_is_damaged(path: pathlib.Path):
    record = {"kind": "note", "text": "x" * (MAX_LINE_BYTES - 30)}
    reopened(path).append(record)
    assert read_lines(path)[0] == [record]
    reopened(path).append(record | {"text": "x" * MAX_LINE_BYTES})
    with pytest.raises(FileError, match="line 2, is damaged"):
        read_lines(path)
