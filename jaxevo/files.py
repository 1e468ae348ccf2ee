"""Reading and writing of small files.

A written file is whole or not there; a read one is bounded and checked.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jaxevo.errors import InputError, explained

MAX_DOCUMENT_BYTES = 1 << 20  # of a JSON document


class FileError(InputError):
    """A file or folder of a run that cannot be used; one sentence says why and what to do."""


def home_expanded(path: str | os.PathLike[str]) -> str:
    """The path with the home folder in place of a leading `~`.

    A shell leaves `~` as it is in `--workdir=~/runs`. Raises `InputError` if no home is known, and
    for an empty path, as of a shell's variable that is not set: it would mean the folder one is in.
    """
    if not os.fspath(path):
        raise InputError("an empty path is given: name a file or a folder")
    expanded = os.path.expanduser(os.fspath(path))
    if expanded == "~" or expanded.startswith("~/"):
        raise InputError(f"{expanded}: no home folder is known; set HOME, or give the path in full")
    return expanded


def check_place(name: str, path: str) -> None:
    """Raises `InputError` where no file or folder of that path can be made, before long work.

    Args:
        name: Of the path, for the message, such as `--output`.
        path: Where something is to be made, or replaced.
    """
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        existing = folder
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        if not os.path.isdir(existing):
            raise InputError(f"{name}={path}: {existing} is a file; give a place in a folder")
        raise InputError(f"{name}={path}: its folder does not exist; create it first")
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        refused = OSError(error.errno, error.strerror, folder)
        raise InputError(f"{name}={path}: {explained(refused)}") from error


def check_weights_place(path: pathlib.Path) -> None:
    """Raises `InputError` for a path in which orbax cannot write weights: it reads it as a pattern.

    It would end without an error, and without a part of what it was to write.
    """
    if found := [character for character in "[\\" if character in str(path.resolve())]:
        raise InputError(
            f"{path.resolve()} has a {found[0]} in its path, where no weights can be written; give "
            "another folder"
        )


def check_file_place(name: str, path: str) -> None:
    """Raises `InputError` where no file of that path can be made, as `check_place` does."""
    if os.path.isdir(path) or path.endswith(os.sep):
        raise InputError(f"{name}={path} is a folder; give the name of a file")
    check_place(name, path)


def default_cache_dir() -> pathlib.Path:
    """Folder of this program's caches. Raises `InputError` if no home folder is known."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home_expanded("~/.cache")) / "jaxevo"


def write_json(path: pathlib.Path, data: Any) -> None:
    """Writes a JSON file. Raises `OSError`, and `ValueError` for NaN and infinities."""
    write_text(path, json.dumps(data, indent=2, sort_keys=True, allow_nan=False) + "\n")


def write_csv(path: pathlib.Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes a table; its columns are those of the first row. Raises `OSError`."""
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, file.getvalue())


def write_text(path: pathlib.Path, text: str) -> None:
    """Writes a text file. Raises `OSError`."""
    write_bytes(path, text.encode(errors="backslashreplace"))  # names of files may be any bytes


def write_bytes(path: pathlib.Path, content: bytes) -> None:
    """Writes a file under another name, and renames it once it is on the disk. Raises `OSError`."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _named(error, path) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException as error:  # Ctrl-C too leaves nothing behind
        with contextlib.suppress(FileNotFoundError):  # it has its name already
            os.unlink(name)
        if isinstance(error, OSError):
            raise _named(error, path) from error
        raise


def _named(error: OSError, path: pathlib.Path) -> OSError:
    """The error of writing a file, which names no file or one that was to be renamed."""
    return OSError(error.errno, error.strerror, str(path))


@contextlib.contextmanager
def drafted(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A place for a file or a folder, which goes to `path` once the block has made it whole.

    Raises `OSError` naming `path` where it cannot be written.
    """
    try:
        place = tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _named(error, path) from error
    with place as folder:
        draft = pathlib.Path(folder) / path.name
        try:
            yield draft
            shutil.move(draft, path)
        except OSError as error:
            named = error.filename
            elsewhere = isinstance(named, str | os.PathLike) and not pathlib.Path(
                named
            ).absolute().is_relative_to(pathlib.Path(folder).absolute())
            raise (error if elsewhere or error.errno is None else _named(error, path)) from error


def copy_folder(source: pathlib.Path, path: pathlib.Path) -> None:
    """Copies a folder to a new one, whole or not at all; links stay links. Raises `OSError`."""
    refused: list[OSError] = []

    def copy(file: str, to: str) -> None:
        try:
            shutil.copy2(file, to)
        except OSError as error:  # names both; where the room ends it is the new one
            full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            refused.append(OSError(error.errno, error.strerror) if full else error)
            raise

    with drafted(path) as draft:
        try:
            shutil.copytree(source, draft, symlinks=True, copy_function=copy)
        except shutil.Error as error:  # a list of all
            raise (refused[0] if refused else OSError(str(error))) from error


def read_json(path: pathlib.Path) -> Any:
    """Reads a JSON document of at most `MAX_DOCUMENT_BYTES`. Raises `FileError` naming the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
        if len(content) > MAX_DOCUMENT_BYTES:
            raise FileError(
                f"{path} is larger than {MAX_DOCUMENT_BYTES} bytes; this is another kind of file"
            )
        return json.loads(content.decode("utf-8"))
    except FileNotFoundError:
        raise FileError(
            f"{path} does not exist; {path.parent} is not the folder of a run"
        ) from None
    except FileError:
        raise
    except (ValueError, RecursionError) as error:
        raise FileError(
            f"{path} is damaged ({error}); restore it or start in another workdir"
        ) from None


def numbered_folders(folder: pathlib.Path) -> list[pathlib.Path]:
    """The folders within that have a number for a name, by number."""
    if not folder.is_dir():
        return []
    numbered = (path for path in folder.iterdir() if path.name.isdecimal())
    kept = (path for path in numbered if path.is_dir() and not path.is_symlink())
    return sorted(kept, key=lambda path: int(path.name))


def checkpoint_steps(folder: pathlib.Path) -> list[int]:
    """Numbers of the checkpoints in a folder, oldest first; empty folders are none."""
    return [int(path.name) for path in numbered_folders(folder) if _has_content(path)]


def _has_content(folder: pathlib.Path) -> bool:
    """True if something is in a folder, which another process may have removed just now."""
    try:
        return any(folder.iterdir())
    except FileNotFoundError:
        return False
