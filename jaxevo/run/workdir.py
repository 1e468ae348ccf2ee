"""The folder of a run: its configuration, its history, and a lock.

`history.jsonl` is the truth about a run. Each line is one JSON object with a `kind`:

- `individual`: a candidate with id, genome, generation, parents, operators, fitness, parameters, multiply-adds and
  seconds; `reused` is the id of the isomorphic individual whose fitness it got, `failure` the reason why it has none.
- `stagnation`: an avoidance, soft or hard.
- `retraining`: one of the best trained again with a fresh seed.
- `session`: at the end, the seconds of the session that came to it, by what they went into.

Lines are only appended, and each is on the disk before the search goes on; a last line cut short by a crash is dropped.
"""

from __future__ import annotations

import csv
import dataclasses
import fcntl
import importlib.metadata
import io
import json
import os
import pathlib
import platform
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from jaxevo.config import SearchConfig, flatten
from jaxevo.config.presets import complete
from jaxevo.errors import InputError, printable

SCHEMA_VERSION = 1
MAX_HISTORY_BYTES = 1 << 30
MAX_LINE_BYTES = 1 << 20  # of the history; a candidate's line has about a thousand
MAX_DOCUMENT_BYTES = 1 << 20  # of the other files
_PACKAGES = ("jaxevo", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "tensorflow-datasets", "numpy")


class WorkdirError(InputError):
    """A run's folder that cannot be used; one sentence says why and what to do."""


def write_json(path: pathlib.Path, data: Any) -> None:
    """Writes a JSON file that is whole or not there at all."""
    write_text(path, json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_csv(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table that is whole or not there at all; its columns are those of the first row."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, file.getvalue())


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes a text file that is whole or not there at all."""
    write_bytes(path, text.encode())


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Writes a file that is whole or not there at all."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        os.unlink(name)
        raise OSError(error.errno, error.strerror, str(path)) from error  # a failed write does not say of which file


def read_json(path: pathlib.Path) -> Any:
    """Raises `WorkdirError` naming the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(content) > MAX_DOCUMENT_BYTES:
            raise WorkdirError(f"{path} is larger than {MAX_DOCUMENT_BYTES} bytes; this is another kind of file")
        return json.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise WorkdirError(f"{path} does not exist; {path.parent} is not the folder of a run") from None
    except WorkdirError:
        raise
    except (ValueError, RecursionError) as error:
        raise WorkdirError(f"{path} is damaged ({error}); restore it or start in another workdir") from None


@dataclasses.dataclass(frozen=True)
class Workdir:
    """Paths of a run's files."""

    path: pathlib.Path

    @property
    def config(self) -> pathlib.Path:
        """Configuration, versions and device."""
        return self.path / "config.json"

    @property
    def history(self) -> pathlib.Path:
        """Everything that happened, a line each."""
        return self.path / "history.jsonl"

    @property
    def checkpoints(self) -> pathlib.Path:
        """The search's state after each generation."""
        return self.path / "checkpoints" / "search"

    @property
    def final_checkpoints(self) -> pathlib.Path:
        """The final training's state after each epoch."""
        return self.path / "checkpoints" / "final"

    @property
    def best_genome(self) -> pathlib.Path:
        """The winner's genome."""
        return self.path / "best.json"

    @property
    def best_weights(self) -> pathlib.Path:
        """The winner's trained weights."""
        return self.path / "best"

    @property
    def result(self) -> pathlib.Path:
        """What came out; there when the run is complete."""
        return self.path / "result.json"

    def check_inside(self) -> None:
        """Raises `WorkdirError` for a link, by which files elsewhere would be changed, and for pipes and devices."""
        files = self.config, self.history, self.best_genome, self.result, self.path / "lock"
        folders = self.checkpoints.parent, self.checkpoints, self.final_checkpoints, self.best_weights
        for path in (*files, *folders):
            if path.is_symlink() or (path.exists() and not (path.is_dir() if path in folders else path.is_file())):
                raise WorkdirError(f"{path} is a link or of a wrong kind; a run's files must lie in its folder itself")

    def lock(self) -> int:
        """Keeps other processes out until this one ends. Raises `WorkdirError` if one is in."""
        self.check_inside()
        handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise WorkdirError(f"another process is using {self.path}; wait for it or stop it") from None
        return handle

    def open(self, config: SearchConfig, extra: dict[str, Any]) -> dict[str, Any]:
        """Creates the run, or checks that it is one of this configuration; returns the content of `config.json`."""
        if not self.config.exists():
            if self.history.exists():
                raise WorkdirError(f"{self.path} has a history but no config.json; restore it or use another workdir")
            document = {"schema": SCHEMA_VERSION, "config": flatten(config), "versions": versions()} | extra
            write_json(self.config, document)
            return document
        document = self.read_config()
        differences = _differences(complete(document["config"]), flatten(config))
        if document.get("data") != extra.get("data"):
            differences.append("the images are not those it began with")
        if differences:
            raise WorkdirError(
                f"{self.path} holds a run of another configuration ({'; '.join(differences)}); "
                "give the same flags to go on with it, or another --workdir"
            )
        return document

    def read_config(self) -> dict[str, Any]:
        """The content of `config.json`. Raises `WorkdirError`."""
        self.check_inside()
        document = read_json(self.config)
        if not isinstance(document, dict) or not isinstance(document.get("config"), dict):
            raise WorkdirError(f"{self.config} is not the configuration of a run; use another workdir")
        if document.get("schema") != SCHEMA_VERSION:
            raise WorkdirError(
                f"{self.config} has schema {document.get('schema')!r} and this version reads {SCHEMA_VERSION}; "
                "go on with the version that wrote it"
            )
        return document

    def read_history(self) -> tuple[list[dict[str, Any]], int]:
        """All whole lines of the history, and their length in bytes. Raises `WorkdirError` for a damaged one."""
        if not self.history.exists():
            return [], 0
        if self.history.stat().st_size > MAX_HISTORY_BYTES:
            raise WorkdirError(f"{self.history} is larger than {MAX_HISTORY_BYTES} bytes; this is another kind of file")
        records: list[dict[str, Any]] = []
        length = 0
        with self.history.open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES):
                if not line.endswith(b"\n") and len(line) < MAX_LINE_BYTES:
                    break  # torn
                record = _parse_line(line)
                if record is None:
                    raise WorkdirError(
                        f"{self.history}, line {len(records) + 1}, is damaged; remove it and all after it to go on "
                        "from there"
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
    """The history of a run, read back and then appended to."""

    def __init__(self, workdir: Workdir):
        self.records, length = workdir.read_history()
        self._path = workdir.history
        with self._path.open("ab") as file:
            file.truncate(length)

    def append(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Writes a line to the disk and returns its record."""
        record = {"kind": kind} | fields
        with self._path.open("ab") as file:
            file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.records.append(record)
        return record

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The records of a kind, in order."""
        return [record for record in self.records if record["kind"] == kind]


def versions() -> dict[str, str]:
    """What the run is made with."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def changed_versions(document: dict[str, Any]) -> list[str]:
    """What a run was begun with and is gone on with in another version, from the content of its `config.json`."""
    began, now = document.get("versions"), versions()
    if not isinstance(began, dict):
        return []
    return [
        f"{name} {printable(str(began[name]))}, now {now[name]}"
        for name in now
        if began.get(name, now[name]) != now[name]
    ]


def _differences(stored: dict[str, Any], asked: dict[str, Any]) -> list[str]:
    return [
        f"{name} was {stored.get(name, 'unknown')!r}, is {asked.get(name, 'unknown')!r}"
        for name in sorted(stored.keys() | asked.keys())
        if stored.get(name) != asked.get(name)
    ]
