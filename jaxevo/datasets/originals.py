"""Finding a published data set's files in a person's folder, or downloading them into the cache."""

from __future__ import annotations

import contextlib
import http.client
import logging
import os
import pathlib
import tempfile
import urllib.request
from collections.abc import Sequence

from jaxevo.datasets.base import DataError
from jaxevo.datasets.files import cache_dir, hash_file
from jaxevo.datasets.sources import OriginalFile, PublishedSource
from jaxevo.files import home_expanded

_TIMEOUT_S = 20
_MAX_DOWNLOAD = 256 << 20  # bytes; SVHN's train_32x32.mat, the largest, has 174 MiB
_log = logging.getLogger(__name__)


def locate(source: PublishedSource, data_dir: str | None) -> dict[str, list[pathlib.Path]]:
    """The files of each split: a person's own (of any checksum), else downloaded ones."""
    folders = [cache_dir() / "downloads" / source.name]
    if data_dir is not None:
        given = pathlib.Path(home_expanded(data_dir))
        if not os.path.isdir(given):
            fault = "is not a folder" if os.path.exists(given) else "does not exist"
            raise DataError(
                f"data_dir={data_dir} {fault}: name the folder that holds {source.name}/"
            )
        own = [given / name for name in (source.name, source.folder) if name]
        folders = [*own, given, *folders]
    for folder in folders:
        # All from one folder: MNIST's and Fashion-MNIST's files have the same names.
        found = {
            split: [_find(folder, file.name) for file in files]
            for split, files in source.files.items()
        }
        complete = {split: [path for path in paths if path] for split, paths in found.items()}
        if all(len(complete[split]) == len(files) for split, files in source.files.items()):
            return complete
    return {
        split: _download_all(source, files, folders[-1], data_dir=data_dir)
        for split, files in source.files.items()
    }


def _find(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """The file, packed as published or unpacked, as Kaggle writes its name too."""
    unpacked = name.removesuffix(".gz").removesuffix(".bz2")
    for path in (folder / each for each in (name, unpacked, unpacked.replace("-idx", ".idx"))):
        if os.path.isfile(path):  # unlike pathlib's, False if the folder may not be entered
            return path
    return None


def _download_all(
    source: PublishedSource,
    files: Sequence[OriginalFile],
    folder: pathlib.Path,
    *,
    data_dir: str | None,
) -> list[pathlib.Path]:
    names = ", ".join(file.name for group in source.files.values() for file in group)
    place = (
        f"{data_dir}/{source.name}"
        if data_dir
        else f"a folder {source.name}/ and name its parent by data_dir"
    )
    if source.page:
        raise DataError(
            f"{source.name} was not found in {data_dir or 'the cache'}: put {names} "
            f"({source.page}) into {place}"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [_download(file, folder) for file in files]
    except (OSError, http.client.HTTPException) as error:
        raise DataError(
            f"{source.name} was not found in {data_dir or 'the cache'} and cannot be downloaded "
            f"({str(error)[:200]}): put {names} from {os.path.dirname(files[0].urls[0])}/ into "
            f"{place}"
        ) from error


def _download(file: OriginalFile, folder: pathlib.Path) -> pathlib.Path:
    """Downloads one file from the first of its addresses that has it; else raises `OSError`."""
    target = folder / file.name
    if target.is_file():
        return target
    failures: list[Exception] = []
    for url in file.urls:
        try:
            _fetch(url, file.checksum, target)
            return target
        except (OSError, http.client.HTTPException) as error:
            failures.append(error)
    raise OSError(
        "; ".join(f"{url}: {error}" for url, error in zip(file.urls, failures, strict=True))
    )


def _fetch(url: str, checksum: str, target: pathlib.Path) -> None:
    """Downloads to a temporary file and renames it.

    So no half file is ever taken for a whole one.
    """
    _log.info("downloading %s", url)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    part = pathlib.Path(name)
    try:
        with (
            os.fdopen(handle, "wb") as out,
            urllib.request.urlopen(url, timeout=_TIMEOUT_S) as response,
        ):
            size = 0
            while chunk := response.read(1 << 20):
                size += len(chunk)
                if size > _MAX_DOWNLOAD:
                    raise OSError(f"it is larger than {_MAX_DOWNLOAD >> 20} MiB")
                out.write(chunk)
        # Only a file with the published checksum gets its name.
        algorithm, expected = checksum.split(":")
        if (actual := hash_file(part, algorithm)) != expected:
            raise OSError(f"its {algorithm} is {actual}, not {expected}")
        part.replace(target)
    finally:
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
