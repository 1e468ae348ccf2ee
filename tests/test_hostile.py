"""Files made to do harm: bombs, links that lead elsewhere, pipes that never end, sizes that nothing
has.
"""

from __future__ import annotations

import ast
import bz2
import gzip
import json
import os
import pathlib
import shutil
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorstore as ts
from builders_classifiers import fresh_classifier, with_document
from builders_data import data_error, make_images, make_labels, mat_bytes, write_folder
from builders_runs import RESULT, SMALL, retraining, table_records, write_run
from conftest import REPOSITORY
from launching import launch

from jaxevo.datasets import file_pixels, idx, libsvm, load_train_data, mat
from jaxevo.datasets.sources import SOURCES
from jaxevo.errors import InputError
from jaxevo.files import MAX_DOCUMENT_BYTES
from jaxevo.reports import summary
from jaxevo.run.history import MAX_LINE_BYTES
from jaxevo.run.reader import load_run
from jaxevo.training import checkpoints as checkpoint_files
from jaxevo.training.checkpoints import Checkpoints, load_weights, save_weights
from jaxevo.training.classifier import Classifier


def refusal(function: Callable[[], object]) -> str:
    with pytest.raises(InputError) as caught:
        function()
    return str(caught.value)


# Bombs


def test_idx_that_unpacks_to_many_times_its_size(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "images.gz"
    path.write_bytes(
        gzip.compress(struct.pack(">4I", 0x803, 60_000, 28, 28))
    )  # refused before the rest is read
    data_error(
        lambda: idx.read_idx(path, 3), path, "unpacks to 44 MiB, more than 10 times its own size"
    )


def test_libsvm_bomb(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libsvm, "_MAX_UNPACKED", 1 << 20)
    path = tmp_path / "usps.bz2"
    path.write_bytes(bz2.compress((b"1" + b" " * 16_000 + b"\n") * 100))
    assert path.stat().st_size < 1000
    data_error(lambda: libsvm.read_split([path]), path, "more than 20,000 lines or 1 MiB")


def test_mat_that_unpacks_to_many_times_its_size(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mat, "MAX_UNPACKED_BYTES", 1 << 20)
    path = tmp_path / "bomb.mat"
    path.write_bytes(mat_bytes(np.zeros((400, 32, 32, 3), np.uint8), make_labels(400)))
    data_error(lambda: mat.read_split([path]), path, "unpacks to more than 1 MiB")


def test_npz_bombs(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(
        path, x_train=np.zeros((50_000, 28, 28), np.uint8), y_train=make_labels(50_000)
    )
    data_error(
        lambda: load_train_data(str(path)),
        path,
        "x_train",
        "unpacks to 39,200,000 values",
        "numpy.savez",
    )
    # A directory of millions of entries, each of which becomes an object.
    length = 2 << 20
    path.write_bytes(
        bytes(length) + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 40_000, 40_000, length, 0, 0)
    )
    data_error(lambda: load_train_data(str(path)), path, "its directory is too large")
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_LZMA
    ) as archive:  # its header says how much to allocate
        for name in ("x_train", "y_train"):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.zeros((4, 4, 4), np.uint8))
    data_error(lambda: load_train_data(str(path)), path, "compressed in another way")


def test_pictures_that_unpack_to_many_times_their_size(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_pixels, "_ALLOWANCE", 100_000)
    write_folder(tmp_path, np.zeros((12, 200, 200), np.uint8), make_labels(12, 2))
    data_error(
        lambda: load_train_data(str(tmp_path)), tmp_path, "unpacks to", "give a smaller image_size"
    )
    assert len(load_train_data(str(tmp_path), image_size=8)[0])


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("hostile") / "best"
    fresh_classifier().save(folder)
    return folder


@pytest.fixture
def weights(saved: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(saved, tmp_path / "best"))


def claim(folder: pathlib.Path, shape: list[int], chunk: list[int]) -> pathlib.Path:
    """Adds an array of which nothing was written."""
    database = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{folder}/arrays/"}}
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    metadata = {"shape": shape, "data_type": "float32", "chunk_grid": grid}
    spec = {
        "driver": "zarr3",
        "kvstore": database | {"path": "claim/"},
        "metadata": metadata,
        "create": True,
    }
    ts.open(spec).result()
    return folder


@pytest.mark.parametrize(
    ("shape", "chunk"), [([10**12], [10]), ([10], [10**9]), ([10**6] * 3, [1] * 3)]
)
def test_arrays_that_claim_more_than_their_files(
    weights: pathlib.Path, shape: list[int], chunk: list[int]
) -> None:
    text = refusal(lambda: load_weights(claim(weights, shape, chunk)))
    assert f"{weights} is damaged and cannot be read (ValueError: its arrays claim 4000000" in text


def test_documents_that_claim_more_than_was_saved(
    saved: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    changes: dict[str, dict[str, Any]] = {
        "more cells than were saved": {
            "network": {"num_normal_cells": 1, "normal_repeats": 100, "channels": 1}
        },
        "a setting is larger than": {
            "network": {"num_normal_cells": 100, "channel_multiplier": 10**4000}
        },
    }
    empty = [{"inputs": [0, 0], "ops": ["identity", "identity"]}]
    for number, (message, change) in enumerate(changes.items()):
        if number == 0:
            change |= {
                "genome": {"normal": empty, "reduction": empty},
                "image_shape": [8, 8, 1],
                "class_names": ["0"],
            }
        folder = with_document(saved, tmp_path / str(number), change)
        text = refusal(lambda folder=folder: Classifier.load(folder))
        assert message in text or "more than were saved" in text


def test_documents_of_great_length(weights: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with (weights / "data" / "data.json").open("ab") as file:
        file.truncate(checkpoint_files.MAX_DOCUMENT_BYTES + 1)
    assert "data.json is larger than 4194304 bytes" in refusal(lambda: load_weights(weights))
    workdir = write_run(tmp_path / "run", table_records(), tail=" " * MAX_LINE_BYTES + "{}\n")
    assert "line 7, is damaged" in refusal(lambda: load_run(workdir))
    with workdir.config.open("ab") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)
    assert "config.json is larger than 1048576 bytes" in refusal(lambda: load_run(workdir))


# Numbers that cannot be summed, and text that controls the terminal


@pytest.mark.parametrize("field", ["fitness", "seconds"])
def test_numbers_whose_sum_overflows(tmp_path: pathlib.Path, field: str) -> None:
    listed = [*table_records(), retraining(2, 0, 0.6)]
    for record in listed:
        if record["seconds"] and record["fitness"]:
            record[field] = 1e308 if field == "fitness" else {"train": 1e308}
    text = refusal(lambda: summary.document(load_run(write_run(tmp_path, listed)), None))
    assert "is 1e+308, not a number up to 1e+15" in text


def test_messages_are_one_bounded_printable_line() -> None:
    assert str(InputError("a\n\x1b[31mb\u2028 \ud800")) == "a \\x1b[31mb \\ud800"
    text = str(InputError("start " + "x" * 10_000 + " remedy"))
    assert text.startswith("start ") and text.endswith(" remedy") and len(text) < 1010


# Links and pipes


def test_links_out_of_a_folder_of_images(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "own", make_images(12, (5, 5)), make_labels(12, 2))
    write_folder(tmp_path / "other", make_images(6, (5, 5)), make_labels(6, 1), "c")
    (tmp_path / "own" / "b" / "inside.png").symlink_to(tmp_path / "own" / "a" / "0000.png")
    (tmp_path / "linked").symlink_to(tmp_path / "own")  # which the person named
    load_train_data(str(tmp_path / "linked"))
    for link, target in (("own/c", "other/c"), ("own/b/outside.png", "other/c/0000.png")):
        (tmp_path / link).symlink_to(tmp_path / target)
        data_error(
            lambda link=link: load_train_data(str(tmp_path / "own")),
            tmp_path / link,
            "leads out of",
        )
        (tmp_path / link).unlink()
    os.mkfifo(tmp_path / "own" / "a" / "pipe.png")
    data_error(lambda: load_train_data(str(tmp_path / "own")), "pipe.png is no regular file")
    data_error(
        lambda: idx.read_idx(tmp_path / "own" / "a" / "pipe.png", 3), "pipe.png is no regular file"
    )


@pytest.mark.parametrize(
    "name", ["best", "checkpoints", "history.jsonl", "config.json", "result.json", "lock"]
)
def test_links_out_of_a_workdir(tmp_path: pathlib.Path, name: str) -> None:
    workdir = write_run(tmp_path / "run", table_records())
    workdir.result.write_text(json.dumps(RESULT))
    victim = tmp_path / "victim"
    if name in ("best", "checkpoints"):
        shutil.copytree(workdir.path, victim)
    else:
        victim.write_text("no line end")  # a torn history: it would be emptied
    (workdir.path / name).unlink(missing_ok=True)
    (workdir.path / name).symlink_to(victim)
    for use in (workdir.lock, lambda: load_run(workdir)):
        assert f"{workdir.path / name} is a link or of a wrong kind" in refusal(use)
    (workdir.path / name).unlink()
    os.mkfifo(workdir.path / name)
    assert "is a link or of a wrong kind" in refusal(lambda: load_run(workdir))


def test_links_and_pipes_among_checkpoints(weights: pathlib.Path, tmp_path: pathlib.Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    checkpoints.save(1, {"step": 1})
    shutil.copytree(checkpoints.folder / "1", tmp_path / "elsewhere")
    (checkpoints.folder / "2").symlink_to(tmp_path / "elsewhere")
    assert checkpoints.steps() == [1]
    victim = pathlib.Path(shutil.copytree(weights, tmp_path / "victim"))
    (tmp_path / "link").symlink_to(victim)
    save_weights(tmp_path / "link", {}, {"x": np.ones(1)})
    assert (victim / "data" / "data.json").is_file() and not (tmp_path / "link").is_symlink()
    (weights / "arrays" / "d" / "more").symlink_to("/dev/zero")
    assert "more is a link or no regular file" in refusal(lambda: load_weights(weights))
    (weights / "arrays" / "d" / "more").unlink()
    os.mkfifo(weights / "arrays" / "d" / "more")
    assert "more is a link or no regular file" in refusal(lambda: load_weights(weights))


# What the program is made of


def test_nothing_in_the_package_can_run_what_it_reads() -> None:
    modules = [*(REPOSITORY / "jaxevo").rglob("*.py"), *(REPOSITORY / "launch").glob("*.py")]
    assert len(modules) > 30
    found = []
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Import(names=names):
                    imported = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module)):
                    imported = [module]
                case ast.Call(func=ast.Name(id=name)) if name in (
                    "eval",
                    "exec",
                    "compile",
                    "__import__",
                ):
                    found.append((path.name, name))
                    continue
                case ast.keyword(arg="allow_pickle", value=ast.Constant(value=value)) if value:
                    found.append((path.name, "allow_pickle"))
                    continue
                case ast.Attribute(value=ast.Name(id="np"), attr="load"):
                    found.append((path.name, "np.load"))
                    continue
                case _:
                    continue
            forbidden = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve", "yaml"}
            found += [(path.name, name) for name in imported if name.split(".")[0] in forbidden]
    assert found == [
        ("workers.py", "np.load")
    ]  # of what the search itself has written, pickles refused


def test_every_download_has_a_checksum() -> None:
    files = [
        file for source in SOURCES.values() for group in source.files.values() for file in group
    ]
    files = [file for file in files if file.urls]
    assert len(files) == 16
    for file in files:
        algorithm, digits = file.checksum.split(":")
        assert len(bytes.fromhex(digits)) == {"sha256": 32, "md5": 16}[algorithm]
        assert pathlib.Path(file.name).name == file.name
        assert all(url.startswith(("http://", "https://")) for url in file.urls)


# From outside


def test_launchers_end_with_one_line(
    saved: pathlib.Path, tmp_path: pathlib.Path, launch_environment: dict
) -> None:
    weights = claim(pathlib.Path(shutil.copytree(saved, tmp_path / "claim")), [10**12], [10**12])
    changed = with_document(saved, tmp_path / "changed", {"dataset": "\x1b[31mred\n"})
    (tmp_path / "deep.json").write_text("[" * 900_000)
    (tmp_path / "long.json").write_text(json.dumps({"x" * 900_000: "\x1b[31m"}))
    linked = write_run(tmp_path / "linked", [], SMALL)
    linked.best_weights.symlink_to(tmp_path)
    huge = write_run(
        tmp_path / "huge", [table_records()[0] | {"parameters": 10**4000, "fitness": 1e300}]
    )
    commands = [
        ["eval.py", f"--weights={weights}"],
        ["eval.py", f"--weights={changed}"],
        ["eval.py", f"--genome={tmp_path / 'deep.json'}"],
        ["eval.py", f"--genome={tmp_path / 'long.json'}"],
        ["search.py", "--preset=quick", f"--workdir={linked.path}"],
        ["inspect_checkpoint.py", f"--workdir={linked.path}"],
        ["inspect_checkpoint.py", f"--workdir={huge.path}"],
    ]
    for script, *arguments in commands:
        done = launch(f"launch/{script}", *arguments, environment=launch_environment)
        assert done.returncode == 2, (arguments, done.stderr[:2000])
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1, done.stderr[
            :2000
        ]
        assert done.stderr[:-1].isprintable() and len(done.stderr) < 1500
