"""The folder of a run: whole files, one configuration, a history that survives crashes, one process at a time."""

from __future__ import annotations

import json
import os
import pathlib
import resource

import pytest

from jaxevo.config import SearchConfig, flatten, replace
from jaxevo.run.workdir import (
    MAX_HISTORY_BYTES,
    SCHEMA_VERSION,
    FileError,
    History,
    Workdir,
    changed_versions,
    read_json,
    versions,
    write_csv,
    write_json,
    write_text,
)


@pytest.fixture
def workdir(tmp_path: pathlib.Path) -> Workdir:
    return Workdir(tmp_path)


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def history_of(workdir: Workdir, *events: str) -> None:
    history = History(workdir)
    for event in events:
        history.append("stagnation", event=event)


def events_of(workdir: Workdir) -> list[str]:
    return [record["event"] for record in workdir.read_history()[0]]


# Files


def test_tables_are_read_back_as_they_were_written(tmp_path: pathlib.Path):
    path = tmp_path / "table.csv"
    write_csv(path, [{"model": 'a, "b"', "mean": 0.5}, {"model": "two\nlines", "mean": None}])
    assert path.read_bytes() == b'model,mean\n"a, ""b""",0.5\n"two\nlines",\n'
    with pytest.raises(ValueError, match="fields not in fieldnames"):
        write_csv(path, [{"model": "a"}, {"model": "b", "unknown": 1}])
    assert path.read_bytes().startswith(b"model,mean\n")


def test_json_files_are_whole_or_not_there(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "result.json"
    write_json(path, {"b": 1, "a": [None, "é"]})
    assert path.read_text() == '{\n  "a": [\n    null,\n    "\\u00e9"\n  ],\n  "b": 1\n}\n'
    assert read_json(path) == {"b": 1, "a": [None, "é"]}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"loss": float("nan")})

    def full(*_: object) -> None:
        raise OSError(28, "no space left")

    for function in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, function, full)
            with pytest.raises(OSError, match="no space left: .*result.json"):
                write_text(path, "half")
        assert read_json(path)["b"] == 1
        assert names(tmp_path) == ["result.json"]


def test_files_can_be_read_by_others(tmp_path: pathlib.Path):
    write_text(tmp_path / "best.json", "{}")
    assert (tmp_path / "best.json").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "content",
    [b"", b'{"a": 1', b"\xff\xfe", b"[" * 100_000, b"9" * 5000],
    ids=["empty", "torn", "binary", "deep", "long number"],
)
def test_damaged_json_is_named(tmp_path: pathlib.Path, content: bytes):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(FileError) as caught:
        read_json(path)
    assert str(caught.value).startswith(f"{path} is damaged (")
    assert str(caught.value).endswith("); restore it or start in another workdir")


def test_missing_json_is_named(tmp_path: pathlib.Path):
    with pytest.raises(FileError, match="does not exist; .* is not the folder of a run"):
        read_json(tmp_path / "config.json")


# Configuration


def test_configuration_is_written_once_and_checked_then(workdir: Workdir):
    config = SearchConfig()
    document = workdir.open(config, {"preset": "paper"})
    assert document == {
        "schema": SCHEMA_VERSION,
        "config": flatten(config),
        "versions": versions(),
        "preset": "paper",
    }
    assert read_json(workdir.config) == document
    written = workdir.config.stat().st_mtime_ns
    assert workdir.open(replace(config, flatten(config)), {"preset": "quick"}) == document
    assert workdir.config.stat().st_mtime_ns == written


def test_differences_are_named(workdir: Workdir):
    workdir.open(SearchConfig(), {})
    with pytest.raises(FileError) as caught:
        workdir.open(replace(SearchConfig(), {"channels": 8, "dataset": "usps", "final_epochs": 5}), {})
    assert str(caught.value) == (
        f"{workdir.path} holds a run of another configuration (channels was 24, is 8; dataset was 'digits', is 'usps'; "
        "final_epochs was 100, is 5); give the same flags to go on with it, or another --workdir"
    )


def test_settings_of_other_versions_are_differences(workdir: Workdir):
    document = workdir.open(SearchConfig(), {})
    document["config"]["islands"] = document["config"].pop("seed")
    write_json(workdir.config, document)
    with pytest.raises(FileError, match="islands was 0, is 'unknown'; seed was 'unknown', is 0"):
        workdir.open(SearchConfig(), {})


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "is not the configuration of a run; use another workdir"),
        ({"schema": SCHEMA_VERSION}, "is not the configuration of a run; use another workdir"),
        ({"schema": SCHEMA_VERSION, "config": []}, "is not the configuration of a run; use another workdir"),
        ({"config": {}}, "has schema None and this version reads 1; go on with the version that wrote it"),
        ({"schema": 2, "config": {}}, "has schema 2 and this version reads 1; go on with the version that wrote it"),
    ],
)
def test_strange_configurations_are_refused(workdir: Workdir, document: object, message: str):
    write_json(workdir.config, document)
    with pytest.raises(FileError) as caught:
        workdir.open(SearchConfig(), {})
    assert str(caught.value) == f"{workdir.config} {message}"


def test_history_without_configuration_is_refused(workdir: Workdir):
    history_of(workdir, "soft")
    with pytest.raises(FileError, match="has a history but no config.json; restore it or use another workdir"):
        workdir.open(SearchConfig(), {})
    assert not workdir.config.exists()


def test_versions_are_of_everything_that_matters():
    found = versions()
    assert {"python", "jaxevo", "jax", "flax", "numpy"} <= found.keys()
    assert "not installed" not in found.values()


# History


def test_versions_that_changed_since_a_run_began():
    now = versions()
    assert changed_versions({"versions": now}) == changed_versions({"versions": None}) == changed_versions({}) == []
    began = now | {"jax": "0.1\n", "forgotten": "1"}
    assert changed_versions({"versions": began}) == [f"jax 0.1\\n, now {now['jax']}"]


def test_history_is_appended_and_read_back(workdir: Workdir):
    assert workdir.read_history() == ([], 0)
    history = History(workdir)
    assert history.records == []
    first = history.append("individual", id=0, fitness=0.5, failure=None)
    assert first == {"kind": "individual", "id": 0, "fitness": 0.5, "failure": None}
    # On the disk at once, not when the file is closed.
    assert workdir.history.read_text() == '{"kind": "individual", "id": 0, "fitness": 0.5, "failure": null}\n'
    history.append("stagnation", event="soft")
    history.append("individual", id=1, failure="line\nbreak \u2028 é")
    with pytest.raises(ValueError, match="not JSON compliant"):
        history.append("individual", id=2, fitness=float("nan"))
    records, length = workdir.read_history()
    assert records == history.records
    assert length == workdir.history.stat().st_size
    assert [record["id"] for record in history.of_kind("individual")] == [0, 1]
    assert history.of_kind("retraining") == []


def test_torn_last_line_is_dropped(workdir: Workdir):
    history_of(workdir, "soft", "hard")
    whole = workdir.history.read_bytes()
    end_of_first = whole.index(b"\n") + 1
    for cut in range(end_of_first, len(whole)):  # wherever the crash was, also just before the line's end
        workdir.history.write_bytes(whole[:cut])
        assert events_of(workdir) == ["soft"]
        history_of(workdir, "again")  # appends where the first line ends
        assert events_of(workdir) == ["soft", "again"]
        assert workdir.history.read_bytes().startswith(whole[:end_of_first])
    workdir.history.write_bytes(whole[: end_of_first - 1])
    assert workdir.read_history() == ([], 0)


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"7", b'{"event": "soft"}', b'{"kind": 1}', b"\xff", b"9" * 5000, b"[" * 100_000, b"\0" * 20],
)
def test_damaged_line_is_named_by_its_number(workdir: Workdir, line: bytes):
    history_of(workdir, "soft", "hard", "soft")
    lines = workdir.history.read_bytes().splitlines()
    damaged = b"\n".join([*lines[:1], line, *lines[2:], b""])
    workdir.history.write_bytes(damaged)
    for read in (workdir.read_history, lambda: History(workdir)):
        with pytest.raises(FileError) as caught:
            read()
        assert str(caught.value) == (
            f"{workdir.history}, line 2, is damaged; remove it and all after it to go on from there"
        )
    assert workdir.history.read_bytes() == damaged


def test_line_that_did_not_fit_on_the_disk_is_dropped(workdir: Workdir):
    history_of(workdir, "soft")
    size, limits = workdir.history.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    history = History(workdir)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
    try:
        with pytest.raises(OSError):
            history.append("stagnation", event="lost")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert workdir.history.stat().st_size == size + 10
    history_of(workdir, "again")
    assert events_of(workdir) == ["soft", "again"]


def test_huge_history_is_refused(workdir: Workdir):
    with workdir.history.open("wb") as file:
        file.truncate(MAX_HISTORY_BYTES + 1)  # a sparse file, nothing is written
    with pytest.raises(FileError, match="is larger than 1073741824 bytes; this is another kind of file"):
        workdir.read_history()


# Lock


def test_lock_keeps_others_out_until_it_is_gone(workdir: Workdir):
    handle = workdir.lock()  # flock is of the open file: a second one conflicts, be it in this process or another
    with pytest.raises(FileError) as caught:
        workdir.lock()
    assert str(caught.value) == (f"another process is using {workdir.path}; wait for it or stop it")
    os.close(handle)  # as the end of a process does, however it ends
    os.close(workdir.lock())


def test_lock_says_nothing_about_other_runs(tmp_path: pathlib.Path):
    handles = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        handles.append(Workdir(tmp_path / name).lock())
    for handle in handles:
        os.close(handle)


def test_paths_are_all_different(workdir: Workdir):
    properties = [name for name, value in vars(Workdir).items() if isinstance(value, property)]
    paths = {getattr(workdir, name) for name in properties}
    assert len(paths) == len(properties) == 7
    assert json.dumps(sorted(str(path.relative_to(workdir.path)) for path in paths)) == json.dumps(
        ["best", "best.json", "checkpoints/final", "checkpoints/search", "config.json", "history.jsonl", "result.json"]
    )
