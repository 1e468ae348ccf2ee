"""The history of a run, `history.jsonl`: the truth about it, one JSON object a line.

Lines are only appended, and each is written before the search goes on. A last line that a crash has
cut short is dropped. `records` says what the lines hold.
"""

from __future__ import annotations

import json
import math
import os
import pathlib
import time
from typing import Any

from jaxevo.files import FileError

MAX_HISTORY_BYTES = 1 << 30
_MOMENT = 0.05  # seconds
MAX_LINE_BYTES = 1 << 20  # a candidate's line has about a thousand


def read_lines(path: pathlib.Path) -> tuple[list[dict[str, Any]], int]:
    """All whole lines of a history, and their length in bytes.

    Raises `FileError` for a damaged history.
    """
    if not path.exists():
        return [], 0
    if path.stat().st_size > MAX_HISTORY_BYTES:
        raise FileError(
            f"{path} is larger than {MAX_HISTORY_BYTES} bytes; this is another kind of file"
        )
    records: list[dict[str, Any]] = []
    length = 0
    with path.open("rb") as file:
        while line := file.readline(MAX_LINE_BYTES):
            if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                break  # torn
            # A whole line that cannot be parsed is damage, which is never passed over.
            record = _parse_line(line)
            if record is None:
                raise FileError(
                    f"{path}, line {len(records) + 1}, is damaged; remove it and all after it to "
                    "go on from there"
                )
            records.append(record)
            length += len(line)
    return records, length


def _parse_line(line: bytes) -> dict[str, Any] | None:
    """The record of a line, None for a damaged one."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("kind"), str) else None


class History:
    """A history that is appended to, from `length` bytes on, which the reading of it has given."""

    def __init__(self, path: pathlib.Path, length: int):
        self.path = path
        self._synced = -math.inf  # when a line last went to the disk
        if not path.exists():
            path.touch()
        elif path.stat().st_size > length:  # else it is left alone: a finished run does not change
            os.truncate(path, length)

    def append(self, record: dict[str, Any], *, soon: bool = False) -> None:
        """Writes a line to the disk, or hands it to the system that will do so `soon`.

        A line that may wait does so only if another one went to the disk a moment ago. A process
        that dies loses neither; a computer that does may lose the line.

        Raises `OSError`.
        """
        with self.path.open("ab") as file:
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            file.flush()
            if not soon or time.monotonic() - self._synced > _MOMENT:
                os.fsync(file.fileno())
                self._synced = time.monotonic()
