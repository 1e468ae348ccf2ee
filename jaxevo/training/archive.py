"""A folder of saved weights as one zip file, to be sent to somebody.

A zip may come from a stranger: only plain files are unpacked, into a temporary folder, and no more
bytes than weights can have.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator

from jaxevo.files import write_bytes
from jaxevo.training.checkpoints import MAX_RATIO, MAX_UNPACKED_BYTES, CheckpointError

_MARK = "_CHECKPOINT_METADATA"  # is in the folder of weights itself
_MAX_FILES = 10_000
_DATE = (1980, 1, 1, 0, 0, 0)  # of every file, so that the same weights make the same zip


def pack(folder: pathlib.Path, path: pathlib.Path) -> None:
    """Writes the files of a folder of weights to a zip, in a folder of the same name.

    Raises `OSError`.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file() and not file.is_symlink():
                name = f"{folder.resolve().name}/{file.relative_to(folder).as_posix()}"
                entry = zipfile.ZipInfo(name, _DATE)
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    write_bytes(path, buffer.getvalue())


@contextlib.contextmanager
def opened(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """The folder of weights that a path names: the path itself, or what its zip file holds.

    Raises `CheckpointError` for a zip that cannot hold weights.
    """
    if not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="jaxevo-weights-") as temporary:
        folder = pathlib.Path(temporary).resolve()
        try:
            yield _unpack(path, folder)
        except CheckpointError as error:
            # Of the reader's errors the zip is the subject, not the folder that will be gone.
            raise CheckpointError(str(error).replace(str(folder), str(path))) from None


def _unpack(path: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """Unpacks into an empty folder, and returns where in it the weights lie."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            _check(path, entries)
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                # Asked for so many bytes, zlib unpacks no more, whatever the entry holds.
                with archive.open(entry) as source:
                    target.write_bytes(source.read(entry.file_size))
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        RuntimeError,
        ValueError,
    ) as error:
        raise CheckpointError(
            f"{path} cannot be unpacked ({error}); give a folder of weights, or the zip that "
            "jaxevo export has made of one"
        ) from None
    marks = [found.parent for found in folder.rglob(_MARK)]
    return min(marks, key=lambda found: len(found.parts), default=folder)


def _check(path: pathlib.Path, entries: list[zipfile.ZipInfo]) -> None:
    """Raises `CheckpointError` for names that lead elsewhere, links, and too much of anything."""
    names = [entry.filename for entry in entries]
    if len(names) > _MAX_FILES or len(set(names)) < len(names):
        raise CheckpointError(f"{path} has over {_MAX_FILES:,} files, or one of them twice")
    for entry in entries:
        parts = pathlib.PurePosixPath(entry.filename).parts
        kind = stat.S_IFMT(entry.external_attr >> 16)
        plain = entry.filename.isprintable() and "\\" not in entry.filename
        inside = not entry.filename.startswith("/") and ".." not in parts
        packed = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if not (plain and inside and packed and kind in (0, stat.S_IFREG)):
            raise CheckpointError(f"{path}: {entry.filename!r} is not a plain file of a zip")
    size = sum(entry.file_size for entry in entries)
    if size > max(MAX_UNPACKED_BYTES, MAX_RATIO * path.stat().st_size):
        raise CheckpointError(
            f"{path} unpacks to {size >> 20} MiB, more than {MAX_RATIO} times its own size: no "
            "trained weights do that"
        )
