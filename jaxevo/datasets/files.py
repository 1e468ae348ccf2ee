"""Reading of files that may be damaged or hostile.

Packed or not, never more than a stated number of bytes is read.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import IO

from jaxevo.datasets.base import DataError
from jaxevo.files import default_cache_dir, home_expanded

_CHUNK = 1 << 20
REMEDY = "download it anew"


@contextlib.contextmanager
def read_errors(path: object, remedy: str = REMEDY) -> Iterator[None]:
    """Turns what the system and the unpackers raise into a `DataError` that names `path`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read ({str(error)[:200] or type(error).__name__}): {remedy}"
        ) from error


@contextlib.contextmanager
def opened(path: pathlib.Path) -> Iterator[IO[bytes] | gzip.GzipFile | bz2.BZ2File]:
    """Opens a gzip, bzip2 or plain file by its first bytes.

    Names are no guide, as they are often changed when a browser unpacks.
    """
    check_regular(path)
    with read_errors(path), path.open("rb") as raw:
        start = raw.read(3)
        raw.seek(0)
        if start[:2] == b"\x1f\x8b":
            with gzip.open(raw, "rb") as stream:
                yield stream
        elif start == b"BZh":
            with bz2.open(raw, "rb") as stream:
                yield stream
        else:
            yield raw


def read_at_most(stream: IO[bytes] | gzip.GzipFile | bz2.BZ2File, limit: int) -> bytearray:
    """Reads up to `limit` bytes; memory grows with what is there, not with what a header claims."""
    data = bytearray()
    while len(data) < limit and (chunk := stream.read(min(_CHUNK, limit - len(data)))):
        data += chunk
    return data


def check_regular(path: pathlib.Path, remedy: str = REMEDY) -> None:
    """Raises `DataError` for what is no file: reading a pipe would wait for ever."""
    if not path.is_file():
        raise DataError(f"{path} is no regular file: {remedy}")


def hash_file(path: pathlib.Path, algorithm: str = "sha256") -> str:
    """The file's checksum in hexadecimal digits."""
    with read_errors(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, algorithm).hexdigest()


def cache_dir() -> pathlib.Path:
    """Folder of prepared data and downloads, since a folder of data may be read-only."""
    named = os.environ.get("JAXEVO_CACHE")
    return pathlib.Path(home_expanded(named)) if named else default_cache_dir()
