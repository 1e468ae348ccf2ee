"""Hostile input: valid files of every kind, damaged in many ways, are read or refused in one line.

`python -m pytest -m slow -s tests/test_fuzz.py` damages more than 10,000 and prints a table of what
came of them.
"""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import json
import pathlib
import shutil
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tensorstore
from builders_classifiers import GENOME, fresh_classifier
from builders_data import (
    idx_bytes,
    make_images,
    make_labels,
    mat_bytes,
    npz_bytes,
    picture,
    usps_text,
)
from builders_runs import (
    LAST,
    RESULT,
    SMALL,
    individual_record,
    retraining,
    table_records,
    write_run,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rich.console import Console

from jaxevo.datasets import Images, load_search_data, load_test_data
from jaxevo.datasets.prepared import _checked
from jaxevo.datasets.sources import SOURCES
from jaxevo.errors import InputError
from jaxevo.reports import summary, terminal
from jaxevo.reports.run_page import render_run
from jaxevo.run.confusion import Confusion
from jaxevo.run.ledger import Ledger
from jaxevo.run.mistakes import choose_mistakes, write_mistakes
from jaxevo.run.reader import check_state, load_run
from jaxevo.run.records import Candidate, Change
from jaxevo.run.result import BaselineScores
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files
from jaxevo.strategies.regularized import RegularizedEvolution
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.classifier import Classifier

MAX_MESSAGE = 1000  # characters beside the path
ALLOWANCE = 64 << 20  # bytes of memory whatever the file's size
FEW, MANY = 15, 600  # inputs of a kind
SECONDS = 4.0  # of the processor; the promise is one, on a quiet machine

# Mutations


NUMBERS = [0, 1, 2, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1]
WORDS = [
    number.to_bytes(size, order)
    for number in NUMBERS
    for size in (4, 8)
    for order in ("little", "big")
]
JSON_VALUES = [
    *("null", "true", "NaN", "-Infinity", "1e999", "1e308", "-1", "0", "0.5", "1e-320"),
    *("1" * 400, "9" * 5000, "-" + "9" * 4000),
    *('""', '"x"', '"\\u0000\\u001b[31m\\n"', '"\\ud800"', '"' + "é" * 3000 + '"'),
    *("[]", "{}", "[[]]", "[0, 0]", "[" * 3000 + "]" * 3000, '{"a":' * 900 + "1" + "}" * 900),
    *("[" * 200_000, '{"kind": 1, "kind": 2}'),
    '[{"inputs": [0, 0], "ops": ["identity", [[]]]}]',
]
HEADER = "0.head.value/zarr.json"
MARKER = "\u2603 here"
SHARES = st.floats(0, 1, exclude_max=True)
BYTE_MUTATIONS = st.one_of(
    st.tuples(st.just("flip"), SHARES, st.integers(1, 255)),
    st.tuples(
        st.just("put"),
        SHARES,
        st.one_of(st.binary(min_size=1, max_size=16), st.sampled_from(WORDS)),
    ),
    st.tuples(
        st.just("overwrite"),
        SHARES,
        st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from(WORDS)),
    ),
    st.tuples(st.just("header"), st.integers(0, 39), st.sampled_from(WORDS)),
    st.tuples(st.just("delete"), SHARES, st.integers(1, 64)),
    st.tuples(st.just("cut"), SHARES, st.none()),
    st.tuples(st.just("splice"), SHARES, SHARES),
    st.tuples(st.just("repeat"), SHARES, st.integers(1, 200)),
)
JSON_MUTATIONS = st.tuples(
    st.sampled_from(["replace", "delete", "twice", "add"]), SHARES, st.sampled_from(JSON_VALUES)
)


def mutate_bytes(data: bytes, kind: str, where: Any, what: Any) -> bytes:
    """Damages bytes; `where` is a share of their length, for a header a place in 4-byte words."""
    place = min(4 * where, len(data)) if kind == "header" else int(where * len(data))
    before, after = data[:place], data[place:]
    match kind:
        case "flip":
            return before + bytes(byte ^ what for byte in after[:1]) + after[1:]
        case "put":
            return before + what + after
        case "overwrite" | "header":
            return before + what + after[len(what) :]
        case "delete":
            return before + after[what:]
        case "cut":
            return before
        case "splice":
            return before + data[int(what * len(data)) :]
        case _:
            return before + after[:8] * what + after


def places(document: Any, path: tuple = ()) -> Iterator[tuple]:
    """The paths of all values in a document, the whole one's first."""
    yield path
    inner = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in inner:
        yield from places(value, (*path, key))


def mutate_json(data: bytes, kind: str, where: float, value: str) -> bytes:
    """Replaces, deletes, doubles or adds a value of a document, which is otherwise as it was."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return data  # damaged already
    path = (paths := list(places(document)))[int(where * len(paths))]
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    if not path:
        return value.encode()
    if kind == "delete":
        del parent[path[-1]]
    elif kind == "add" and isinstance(parent, dict):
        parent["\x1b[31mnew\n"] = MARKER
    else:
        parent[path[-1]] = MARKER
    quoted, key = json.dumps(MARKER), json.dumps(path[-1])
    twice = kind == "twice" and isinstance(parent, dict)
    return (
        json.dumps(document)
        .replace(quoted, f"{value}, {key}: {value}" if twice else value)
        .encode()
    )


def mutate_line(data: bytes, kind: str, where: float, value: str) -> bytes:
    """As `mutate_json`, in one of the lines."""
    lines = data.splitlines()
    number = int(where * len(lines))
    lines[number : number + 1] = [
        mutate_json(line, kind, where * len(lines) % 1, value)
        for line in lines[number : number + 1]
    ]
    return b"".join(line + b"\n" for line in lines)


# Kinds of input


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of input: a valid folder as path -> content, which of its files are damaged, and how
    it is read.
    """

    files: dict[str, bytes]
    read: Callable[[pathlib.Path], object]  # of the folder
    targets: tuple[str, ...]
    pack: Callable[[bytes], bytes] = bytes  # what is damaged is packed like this afterwards


def one_file(
    data: bytes, read: Callable[[pathlib.Path], object], name: str = "file", **options: Any
) -> Kind:
    return Kind({name: data}, lambda folder: read(folder / name), (name,), **options)


def read_tree(folder: pathlib.Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def read_run(folder: pathlib.Path) -> None:
    """All that `inspect` shows, the report, and what `search` reads when it resumes."""
    workdir = Workdir(folder)
    run = load_run(workdir)
    json.dumps(summary.document(run, run.best), allow_nan=False)
    terminal.show_run(run, run.best, Console(file=io.StringIO(), width=80))
    render_run(run)
    workdir.open(SMALL, {})
    Ledger.open(workdir, SMALL)


def database(folder: pathlib.Path) -> tensorstore.KvStore:
    """Of the arrays of saved weights."""
    base = {"driver": "file", "path": f"{folder}/arrays/"}
    return tensorstore.KvStore.open({"driver": "ocdbt", "base": base}).result()


def read_header(folder: pathlib.Path) -> None:
    """Puts the file `header` into the weights as one array's header, with all checksums right, and
    reads them.
    """
    database(folder).write(HEADER, (folder / "header").read_bytes()).result()
    Classifier.load(folder)


def those_read(files: dict[str, bytes]) -> tuple[str, ...]:
    """Without what orbax leaves behind from writing."""
    return tuple(name for name in files if "ocdbt.process" not in name and files[name])


def read_published(name: str) -> Callable[[pathlib.Path], object]:
    return lambda folder: _checked(SOURCES[name], sorted(folder.iterdir()))


def read_own(path: pathlib.Path) -> None:
    load_search_data(str(path), validation_fraction=0.2)
    load_test_data(str(path))


def read_checkpoints(folder: pathlib.Path) -> None:
    """As a search that resumes: it takes the newest that can be read, and without one goes on from
    the history.
    """
    newest = Checkpoints(folder).load_newest()
    if newest is None:
        raise InputError("no checkpoint can be read")
    strategy = RegularizedEvolution(SMALL.evolution, 0)
    recorded = go_on(RegularizedEvolution(SMALL.evolution, 0), {})
    try:
        check_state(newest[1], recorded)
        strategy.load_state_dict(newest[1])
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"not of this search ({error})") from None
    go_on(strategy, recorded)


def go_on(strategy: RegularizedEvolution, recorded: dict[int, Candidate]) -> dict[int, Candidate]:
    """Tells the next five candidates' fitness and returns their records; those that are known must
    be the same.
    """
    found = {}
    for _ in range(5):
        for candidate in strategy.ask()[:1]:
            known = recorded.get(candidate.id)
            if known is not None and known.individual.genome != candidate.genome:
                raise InputError("the history has another genome")
            told = dataclasses.replace(candidate, fitness=candidate.id % 3 / 10)
            found[told.id] = Candidate(told, parameters=10, multiply_adds=20)
            strategy.tell(told)
    return found


def run_files(folder: pathlib.Path) -> dict[str, bytes]:
    change = Change("2026-11-28", 7, {}, lifts_stop=True, winner=3, validation_accuracy=0.6)
    stop = {"kind": "stop", "reason": "the time limit was reached"}
    finished = [*table_records(), individual_record(LAST), stop, change.to_dict()]
    workdir = write_run(folder, [*finished, retraining(2, 0, 0.64)])
    workdir.add_change(change)
    baseline = BaselineScores(19_258, 100_000, 0.5, 0.55, 3, 2)
    kept = {"id": 3, "retrained_fitness": 0.6, "validation_accuracy": 0.7, "parameters": 10}
    result = RESULT | {"baseline": dataclasses.asdict(baseline), "kept": [kept]}
    workdir.result.write_text(json.dumps(result))
    Confusion(("a", "b"), np.array([[5, 1], [0, 3]])).write(workdir.confusion)
    images = Images(make_images(1, (4, 4, 1)), np.zeros(1, np.int32))
    write_mistakes(workdir.mistakes, choose_mistakes(images, np.array([1]), ("a", "b")))
    return read_tree(folder)


def folder_files(kind: str) -> dict[str, bytes]:
    return {f"{name}/{number}.{kind}": picture(kind) for name in "ab" for number in range(4)}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Kind]:
    """By name."""
    folder = tmp_path_factory.mktemp("valid")
    run = run_files(folder / "run")
    fresh_classifier().save(folder / "best")
    checkpoints = Checkpoints(folder / "checkpoints")
    strategy = RegularizedEvolution(SMALL.evolution, 0)
    go_on(strategy, {})
    checkpoints.save(1, strategy.state_dict(), {"x": np.arange(500.0)})
    best, states = read_tree(folder / "best"), read_tree(folder / "checkpoints")
    header = database(folder / "best").read(HEADER).result().value
    pixels, labels = make_images(6, (28, 28)), make_labels(6)
    digits = usps_text(make_images(3, (16, 16, 1)) // 64, make_labels(3))
    colour = make_images(2, (32, 32, 3)) // 64
    own = make_images(20, (3, 3)), make_labels(20, 2)
    mnist = {"images": idx_bytes(pixels // 64), "labels": idx_bytes(labels)}
    genome = genome_files.dumps(GENOME, {"dataset": "digits"}).encode()
    return {
        "genome JSON": one_file(genome, genome_files.load),
        **{
            name: Kind(run, read_run, (name,))
            for name in (
                *("config.json", "history.jsonl", "result.json", "confusion.csv"),
                "mistakes.json",
            )
        },
        "saved weights": Kind(best, Classifier.load, those_read(best)),
        "array header in weights": Kind(best | {"header": header}, read_header, ("header",)),
        "search checkpoints": Kind(states, read_checkpoints, those_read(states)),
        "IDX": Kind(mnist, read_published("mnist"), tuple(mnist)),
        "IDX, gzip": Kind(mnist, read_published("mnist"), tuple(mnist), pack=gzip.compress),
        "IDX, damaged gzip": Kind(
            {name: gzip.compress(data) for name, data in mnist.items()},
            read_published("mnist"),
            tuple(mnist),
        ),
        "LIBSVM": one_file(digits, lambda path: read_published("usps")(path.parent)),
        "LIBSVM, bzip2": one_file(
            digits, lambda path: read_published("usps")(path.parent), pack=bz2.compress
        ),
        "LIBSVM, damaged bzip2": one_file(
            bz2.compress(digits), lambda path: read_published("usps")(path.parent)
        ),
        ".mat": one_file(
            mat_bytes(colour, labels[:2], False),
            lambda path: read_published("svhn_cropped")(path.parent),
        ),
        ".mat, compressed": one_file(
            mat_bytes(colour, labels[:2], True),
            lambda path: read_published("svhn_cropped")(path.parent),
        ),
        ".npz": one_file(npz_bytes(*own, False), read_own, "file.npz"),
        ".npz, compressed": one_file(npz_bytes(*own, True), read_own, "file.npz"),
        **{
            f"folder of {kind.upper()}": Kind(folder_files(kind), read_own, (f"a/1.{kind}",))
            for kind in ("png", "jpeg", "gif", "bmp", "tiff", "ppm", "webp")
        },
    }


# Trying an input


@dataclasses.dataclass
class Tally:
    """What came of the inputs of one kind."""

    inputs: int = 0
    refused: int = 0
    seconds: float = 0.0  # of the processor, the slowest
    memory: int = 0  # bytes, the most beyond what was there before
    size: int = 0  # of the folder that needed it


def resident(peak: bool) -> int:
    """Bytes of memory that the process has, or had at most since `forget_peak`."""
    name = "VmHWM:" if peak else "VmRSS:"
    status = pathlib.Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith(name))


def forget_peak() -> None:
    """Sets the peak of resident memory back to what is there now; see proc(5)."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")


def attempt(kind: Kind, folder: pathlib.Path, tally: Tally) -> None:
    """Reads a folder, which must succeed or be refused in one line, within bounds of time and
    memory.
    """
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    forget_peak()
    tracemalloc.start()
    before, begin = resident(peak=False), time.process_time()
    try:
        kind.read(folder)
    except InputError as error:
        message = str(error).replace(str(folder), "")
        tally.refused += 1
        assert "\n" not in message.strip() and 0 < len(message) <= MAX_MESSAGE, message[:2000]
    seconds = time.process_time() - begin
    # Arrays that are allocated and never written to are traced, and what libraries in C allocate is
    # resident.
    memory = max(tracemalloc.get_traced_memory()[1], resident(peak=True) - before)
    tracemalloc.stop()
    assert memory <= 10 * size + ALLOWANCE, (memory, size)
    assert seconds <= SECONDS, seconds
    tally.inputs += 1
    tally.seconds = max(tally.seconds, seconds)
    if memory > tally.memory:
        tally.memory, tally.size = memory, size


def write(folder: pathlib.Path, files: dict[str, bytes], pack: Callable[[bytes], bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(pack(content))


def fuzz(kind: Kind, folder: pathlib.Path, number: int) -> Tally:
    """Tries `number` damaged inputs of a kind, always the same."""
    tally = Tally()

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        SHARES,
        st.booleans(),
        st.lists(BYTE_MUTATIONS, min_size=1, max_size=4),
        st.lists(JSON_MUTATIONS, min_size=1, max_size=3),
    )
    def one(
        target: float, as_json: bool, bytes_steps: list[tuple], json_steps: list[tuple]
    ) -> None:
        name = kind.targets[int(target * len(kind.targets))]
        data = kind.files[name]
        as_json &= data[:1] == b"{"
        mutate = (
            (mutate_line if name.endswith(".jsonl") else mutate_json) if as_json else mutate_bytes
        )
        for step in json_steps if as_json else bytes_steps:
            data = mutate(data, *step)
        write(folder, kind.files | {name: data}, kind.pack)
        attempt(kind, folder, tally)

    write(folder, kind.files, kind.pack)
    kind.read(folder)
    one()
    return tally


def test_a_few_damaged_files_of_every_kind(kinds, tmp_path):
    for name, kind in kinds.items():
        assert fuzz(kind, tmp_path / "fuzzed", FEW).refused, name


@pytest.mark.slow
def test_many_damaged_files_of_every_kind(kinds, tmp_path, capsys):
    total = Tally()
    for name, kind in kinds.items():
        tally = fuzz(kind, tmp_path / "fuzzed", MANY)
        total.inputs += tally.inputs
        with capsys.disabled():
            print(
                f"| {name} | {tally.inputs:,} | {tally.refused:,} | {tally.seconds * 1000:.0f} ms "
                f"| "
                f"{tally.memory / 2**20:.1f} MiB | {tally.size:,} |"
            )
    assert total.inputs >= 10_000
