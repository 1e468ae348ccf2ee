"""Genome files: a genome as JSON text with metadata, and the shipped ones by name.

A file in the notation of DARTS (`darts_text`) is read too. Files may come from anyone, so each is
checked as it is read.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from jaxevo.errors import InputError
from jaxevo.files import home_expanded
from jaxevo.search_space import darts_text
from jaxevo.search_space.genome import CELL_KINDS, Genome, expect_keys

SCHEMA_VERSION = 1
MAX_FILE_BYTES = 1 << 20


def dumps(genome: Genome, metadata: Mapping[str, Any] | None = None) -> str:
    """A genome file's text, one node a line, so that a changed node is one changed line."""
    document, entries = genome.to_dict(), []
    for kind in CELL_KINDS:
        lines = ",\n".join(f"      {json.dumps(node)}" for node in document[kind])
        entries.append(f'    "{kind}": [\n{lines}\n    ]')
    if genome.layout is not None:
        entries.append(f'    "layout": {json.dumps(document["layout"])}')
    body = ",\n".join(entries)
    parts = [f'  "schema": {SCHEMA_VERSION}', f'  "genome": {{\n{body}\n  }}']
    if metadata:
        parts.append(
            '  "metadata": '
            + json.dumps(dict(metadata), indent=2, sort_keys=True).replace("\n", "\n  ")
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def loads(text: str) -> tuple[Genome, dict[str, Any]]:
    """Genome and metadata of a genome file's text. Raises `ValueError` saying what is wrong."""
    if text.lstrip().startswith(darts_text.PREFIX):
        return darts_text.loads(text), {}
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not a JSON document ({error})") from None
    expect_keys(data, "genome file", ("schema", "genome"), optional=("metadata",))
    if data["schema"] != SCHEMA_VERSION:
        raise ValueError(
            f"schema {data['schema']!r} is not known; this version reads schema {SCHEMA_VERSION}"
        )
    metadata = data.get("metadata", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: expected an object, found {type(metadata).__name__}")
    return Genome.from_dict(data["genome"]), metadata


def load(path: str | os.PathLike[str]) -> tuple[Genome, dict[str, Any]]:
    """Reads a genome file. Raises `InputError` naming the file, or `OSError`."""
    path = pathlib.Path(path)
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise InputError(
            f"{path}: a genome file is smaller than {MAX_FILE_BYTES} bytes; this is another kind "
            "of file"
        )
    try:
        return loads(content.decode("utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None


def shipped_path(name: str) -> pathlib.Path | None:
    """The file of a genome that comes with the package (`evoA` or `evoA.json`), or None."""
    folder = pathlib.Path(__file__).parent / "genomes"
    candidates = {p.stem: p for p in sorted(folder.glob("*.json"))}
    return candidates.get(name.removesuffix(".json"))


def find(name: str) -> tuple[Genome, dict[str, Any]]:
    """The genome at a path, or a shipped one by name.

    A file of that name in the working folder comes first.
    """
    if pathlib.Path(name).is_file():
        return load(name)
    if (path := shipped_path(name)) is not None:
        return load(path)
    shipped = ", ".join(
        sorted(p.name for p in (pathlib.Path(__file__).parent / "genomes").glob("*.json"))
    )
    raise InputError(
        f"genome {name!r} is neither a file nor one of the shipped ones ({shipped}); give one of "
        "these"
    )


def listed(genomes: str | Iterable[Genome | str]) -> list[Genome | str]:
    """Genomes or their names, which may be one text with commas between them."""
    return [*(genomes.split(",") if isinstance(genomes, str) else genomes)] if genomes else []


def pack(genomes: Iterable[Genome | str]) -> str:
    """Genomes as one line of text, which `unpack` reads.

    Args:
        genomes: Themselves, or names as `find` takes them.

    Raises:
        InputError: There is no such genome, or its file cannot be used.
    """
    found = [find(home_expanded(each))[0] if isinstance(each, str) else each for each in genomes]
    return json.dumps([genome.to_dict() for genome in found]) if found else ""


def unpack(text: str) -> list[Genome]:
    """The genomes of a text of `pack`. Raises `ValueError` saying what is wrong."""
    if not text:
        return []
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not a JSON document ({error})") from None
    if not isinstance(data, list):
        raise ValueError(f"expected a list of genomes, found {type(data).__name__}")
    return [Genome.from_dict(each) for each in data]
