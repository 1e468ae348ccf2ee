"""The folder of a run: one configuration, one process at a time, and no files elsewhere."""

from __future__ import annotations

import json
import os
import pathlib
import re

import pytest

from jaxevo.config import SearchConfig, flatten, replace
from jaxevo.files import FileError, read_json, write_json
from jaxevo.run.workdir import SCHEMA_VERSION, Workdir
from jaxevo.seeds import STREAMS
from jaxevo.versions import versions


@pytest.fixture
def workdir(tmp_path: pathlib.Path) -> Workdir:
    return Workdir(tmp_path)


# Configuration


def test_configuration_is_written_once_and_checked_then(workdir: Workdir):
    config = SearchConfig()
    document = workdir.open(config, {"preset": "paper"})
    assert document == {
        "schema": SCHEMA_VERSION,
        "config": flatten(config),
        "versions": versions(),
        "streams": STREAMS,
        "preset": "paper",
    }
    assert read_json(workdir.config) == document
    written = workdir.config.stat().st_mtime_ns
    assert workdir.open(replace(config, flatten(config)), {"preset": "quick"}) == document
    assert workdir.config.stat().st_mtime_ns == written


def test_only_a_complete_run_may_have_other_random_numbers(workdir: Workdir):
    config = SearchConfig()
    document = workdir.open(config, {})
    write_json(workdir.config, {**document, "streams": STREAMS - 1})
    with pytest.raises(FileError, match="drew other genomes by its seed"):
        workdir.open(config, {})
    write_json(workdir.result, {})
    assert workdir.open(config, {})["streams"] == STREAMS - 1


def test_a_search_by_an_earlier_model_does_not_go_on(workdir: Workdir):
    config = replace(SearchConfig(), {"strategy": "guided", "min_channels": 2})
    document = workdir.open(config, {})
    write_json(workdir.config, {**document, "streams": STREAMS})
    with pytest.raises(FileError, match="drew other genomes by its seed"):
        workdir.open(config, {})


def test_other_test_images_are_refused(workdir: Workdir):
    config, about = SearchConfig(), {"data": "abc", "test": "def"}
    workdir.open(config, about)
    workdir.open(config, about)
    with pytest.raises(FileError, match="the test images are not those it began with"):
        workdir.open(config, about | {"test": "ghi"})


def test_a_run_of_before_their_digest_takes_any_test_images(workdir: Workdir):
    workdir.open(SearchConfig(), {"data": "abc"})
    workdir.open(SearchConfig(), {"data": "abc", "test": "def"})


def test_differences_are_named(workdir: Workdir):
    workdir.open(SearchConfig(), {})
    other = replace(SearchConfig(), {"channels": 8, "dataset": "usps", "final_epochs": 5})
    with pytest.raises(FileError) as caught:
        workdir.open(other, {})
    assert str(caught.value) == (
        f"{workdir.path} holds a run of another configuration (channels was 24, is 8; "
        "dataset was 'digits', is 'usps'; final_epochs was 100, is 5); "
        "give the same flags to go on with it, or another --workdir"
    )


def test_where_the_run_can_be_continued_so_the_flag_is_named(workdir: Workdir):
    workdir.open(SearchConfig(), {"data": "abc"})
    longer = replace(SearchConfig(), {"num_generations": 300})
    with pytest.raises(FileError) as caught:
        workdir.open(longer, {"data": "abc"})
    assert str(caught.value).endswith(
        "(num_generations was 200, is 300); give the same flags to go on with it, --continue to "
        "change that, or another --workdir"
    )
    with pytest.raises(FileError) as caught:
        workdir.open(longer, {"data": "def"})
    assert "--continue" not in str(caught.value)


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
        (
            {"schema": SCHEMA_VERSION, "config": []},
            "is not the configuration of a run; use another workdir",
        ),
        (
            {"config": {}},
            "has schema None and this version reads 1; go on with the version that wrote it",
        ),
        (
            {"schema": 2, "config": {}},
            "has schema 2 and this version reads 1; go on with the version that wrote it",
        ),
    ],
)
def test_strange_configurations_are_refused(workdir: Workdir, document: object, message: str):
    write_json(workdir.config, document)
    with pytest.raises(FileError) as caught:
        workdir.open(SearchConfig(), {})
    assert str(caught.value) == f"{workdir.config} {message}"


@pytest.mark.parametrize("name", ["history.jsonl", "best.json", "report.html", "training.json"])
def test_files_that_a_run_would_replace_are_refused(workdir: Workdir, name: str):
    (workdir.path / name).write_text("mine")
    with pytest.raises(FileError, match=f"has {name} but no config.json, so it is no run"):
        workdir.open(SearchConfig(), {})
    assert [path.name for path in workdir.path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["best", "small_cnn", "kept", "checkpoints"])
def test_folders_that_a_run_would_replace_are_refused(workdir: Workdir, name: str):
    (workdir.path / name).mkdir()
    (workdir.path / name / "mine.txt").touch()
    with pytest.raises(FileError, match=f"has {name} but no config.json, so it is no run"):
        workdir.open(SearchConfig(), {})
    assert (workdir.path / name / "mine.txt").exists()


def test_other_files_may_lie_in_the_folder(workdir: Workdir):
    (workdir.path / "notes.txt").write_text("mine")
    workdir.open(SearchConfig(), {})
    assert (workdir.path / "notes.txt").read_text() == "mine"


def test_other_images_are_a_difference(workdir: Workdir):
    workdir.open(SearchConfig(), {"data": "abc"})
    assert workdir.open(SearchConfig(), {"data": "abc"})["data"] == "abc"
    with pytest.raises(FileError, match="the images are not those it began with"):
        workdir.open(SearchConfig(), {"data": "def"})


def test_the_same_images_may_lie_elsewhere(workdir: Workdir):
    began = replace(SearchConfig(), {"dataset": "photos/"})
    document = workdir.open(began, {"data": "abc"})
    moved = replace(SearchConfig(), {"dataset": "/disk/photos"})
    assert workdir.open(moved, {"data": "abc"}) == document
    with pytest.raises(FileError) as caught:
        workdir.open(moved, {"data": "def"})
    assert str(caught.value) == (
        f"{workdir.path} holds a run of another configuration (dataset was 'photos/', is "
        "'/disk/photos'; the images are not those it began with); give the same flags to go on "
        "with it, or another --workdir"
    )
    with pytest.raises(FileError, match="another configuration .channels was 24, is 8.; give"):
        workdir.open(replace(moved, {"channels": 8}), {"data": "abc"})


# Lock


def test_lock_keeps_others_out_until_it_is_gone(workdir: Workdir):
    handle = (
        workdir.lock()
    )  # flock is of the open file: a second one conflicts, be it in this process or another
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
    assert len(paths) == len(properties) == 13
    assert json.dumps(sorted(str(path.relative_to(workdir.path)) for path in paths)) == json.dumps(
        [
            "best",
            "best.json",
            "checkpoints/final",
            "checkpoints/search",
            "config.json",
            "confusion.csv",
            "front.json",
            "history.jsonl",
            "kept",
            "mistakes.json",
            "report.html",
            "result.json",
            "small_cnn",
        ]
    )


def test_the_folder_is_made_and_locked_within_the_block(tmp_path: pathlib.Path):
    workdir = Workdir(tmp_path / "runs" / "a")
    with pytest.raises(KeyboardInterrupt), workdir.locked():
        with pytest.raises(FileError, match="another process is using"), workdir.locked():
            pass
        raise KeyboardInterrupt
    with workdir.locked():
        assert workdir.path.is_dir()
    (tmp_path / "file").touch()
    named = re.escape(f"{tmp_path / 'file'}/run: not a directory: ")
    with pytest.raises(FileError, match=named), Workdir(tmp_path / "file" / "run").locked():
        pass


@pytest.mark.parametrize(
    "name",
    [
        *("config.json", "history.jsonl", "best.json", "result.json", "confusion.csv", "lock"),
        *("mistakes.json", "report.html"),
        *("best", "checkpoints", "kept", "small_cnn"),
    ],
)
@pytest.mark.parametrize("kind", ["link", "pipe", "wrong kind"])
def test_files_that_lie_elsewhere_or_are_none_are_refused(tmp_path, name: str, kind: str):
    workdir = Workdir(tmp_path / "run")
    workdir.path.mkdir()
    path, elsewhere = workdir.path / name, tmp_path / "elsewhere"
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(path)
    elif "." not in name and name != "lock":
        path.touch()
    else:
        path.mkdir()
    for use in (workdir.lock, workdir.read_config):
        with pytest.raises(FileError, match=f"{path} is a link or of a wrong kind"):
            use()
    assert not elsewhere.exists()
