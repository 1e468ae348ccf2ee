"""Small files are whole or not there when written, bounded and checked when read."""

from __future__ import annotations

import errno
import os
import pathlib

import pytest
from full_disk import full_disk

from jaxevo.errors import InputError
from jaxevo.files import (
    MAX_DOCUMENT_BYTES,
    FileError,
    check_file_place,
    check_place,
    checkpoint_steps,
    copy_folder,
    default_cache_dir,
    drafted,
    home_expanded,
    numbered_folders,
    read_json,
    write_bytes,
    write_csv,
    write_json,
    write_text,
)


def names(folder: pathlib.Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_tables_are_read_back_as_they_were_written(tmp_path: pathlib.Path):
    path = tmp_path / "table.csv"
    write_csv(path, [{"model": 'a, "b"', "mean": 0.5}, {"model": "two\nlines", "mean": None}])
    assert path.read_bytes() == b'model,mean\n"a, ""b""",0.5\n"two\nlines",\n'
    with pytest.raises(ValueError, match="fields not in fieldnames"):
        write_csv(path, [{"model": "a"}, {"model": "b", "unknown": 1}])
    assert path.read_bytes().startswith(b"model,mean\n")


def test_a_home_folder_stands_for_a_leading_tilde(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ada")
    for path, expanded in (("~", ""), ("~/a b", "/a b"), (pathlib.Path("~/runs"), "/runs")):
        assert home_expanded(path) == f"/home/ada{expanded}"
    for path in ("runs/~", "./~/x", "digits", "photos/", "~nobody-of-this-name/x"):
        assert home_expanded(path) == path
    with pytest.raises(InputError, match="an empty path is given"):
        home_expanded("")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert default_cache_dir() == pathlib.Path("/home/ada/.cache/jaxevo")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert default_cache_dir() == pathlib.Path("/var/cache/jaxevo")


def test_text_that_is_no_unicode_is_escaped(tmp_path: pathlib.Path):
    write_text(tmp_path / "a", os.fsdecode(b"\xff and \xc3\xa9"))
    assert (tmp_path / "a").read_text() == "\\udcff and é"


def test_json_files_are_whole_or_not_there(tmp_path: pathlib.Path, monkeypatch):
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

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "half")
    assert names(tmp_path) == ["result.json"]


def test_texts_and_bytes_are_written_as_they_are(tmp_path: pathlib.Path):
    write_text(tmp_path / "text", "é\r\n")
    write_bytes(tmp_path / "bytes", b"\0\xff")
    assert (tmp_path / "text").read_bytes() == b"\xc3\xa9\r\n"
    assert (tmp_path / "bytes").read_bytes() == b"\0\xff"
    write_bytes(tmp_path / "bytes", b"")
    assert (tmp_path / "bytes").read_bytes() == b""


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


def test_json_of_more_than_a_document_is_refused(tmp_path: pathlib.Path):
    path = tmp_path / "config.json"
    path.write_bytes(b"1".rjust(MAX_DOCUMENT_BYTES))
    assert read_json(path) == 1
    path.write_bytes(b"1".rjust(MAX_DOCUMENT_BYTES + 1))
    with pytest.raises(FileError, match=f"is larger than {MAX_DOCUMENT_BYTES} bytes"):
        read_json(path)


def test_numbered_folders_are_in_the_order_of_their_numbers(tmp_path: pathlib.Path):
    for name in ("10", "9", "007", "-1", "1.5", "4.orbax-checkpoint-tmp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data").touch()
    (tmp_path / "3").touch()
    (tmp_path / "2").symlink_to(tmp_path / "9")
    (tmp_path / "8").mkdir()
    assert [path.name for path in numbered_folders(tmp_path)] == ["007", "8", "9", "10"]
    assert checkpoint_steps(tmp_path) == [7, 9, 10]  # an empty folder is no checkpoint
    assert numbered_folders(tmp_path / "missing") == checkpoint_steps(tmp_path / "missing") == []
    assert numbered_folders(tmp_path / "3") == []


# New files and folders


def test_places_are_checked_before_long_work(tmp_path: pathlib.Path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    check_file_place("--output", str(tmp_path / "new"))
    check_file_place("--output", str(tmp_path / "file"))  # to be replaced
    check_place("--save", f"{tmp_path}/new/")
    refused = {
        "none/new": "its folder does not exist; create it first",
        "file/new": f"{tmp_path / 'file'} is a file; give a place in a folder",
        "file/a/b": f"{tmp_path / 'file'} is a file; give a place in a folder",
        "folder": "is a folder; give the name of a file",
        "new/": "is a folder; give the name of a file",
    }
    for name, words in refused.items():
        with pytest.raises(InputError) as caught:
            check_file_place("--output", f"{tmp_path}/{name}")
        assert str(caught.value).startswith(f"--output={tmp_path}/{name}")
        assert str(caught.value).endswith(words)
    assert names(tmp_path) == ["file", "folder"]


def test_drafts_appear_whole_or_not_at_all(tmp_path: pathlib.Path, monkeypatch):
    with drafted(tmp_path / "there") as draft:
        draft.write_text("whole")
    assert (tmp_path / "there").read_text() == "whole"
    # An error of writing names the place that was asked for.
    with pytest.raises(OSError) as caught, drafted(tmp_path / "new"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "new")
    with pytest.raises(OSError) as caught, drafted(tmp_path / "new") as draft:
        (draft / "none").write_text("")
    assert caught.value.filename == str(tmp_path / "new")
    # One of reading names its own, beside the place too, and where that is relative.
    monkeypatch.chdir(tmp_path)
    for new in (tmp_path / "new", pathlib.Path("new")):
        with pytest.raises(FileNotFoundError) as caught, drafted(new):
            (tmp_path / "nowhere").read_text()
        assert caught.value.filename == str(tmp_path / "nowhere")
        with pytest.raises(FileNotFoundError) as caught, drafted(new) as draft:
            (draft / "none").write_text("")
        assert caught.value.filename == str(new)
    assert names(tmp_path) == ["there"]


def test_folders_are_copied_whole_or_not_at_all(tmp_path: pathlib.Path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("a")
    (source / "link").symlink_to("a")
    copy_folder(source, tmp_path / "copy")
    assert names(tmp_path / "copy") == ["a", "link"] and (tmp_path / "copy" / "link").is_symlink()
    os.mkfifo(source / "pipe")
    with pytest.raises(OSError, match="pipe"):
        copy_folder(source, tmp_path / "other")
    (source / "pipe").unlink()
    (source / "large").write_bytes(bytes(2000))
    with full_disk(1000), pytest.raises(OSError) as caught:
        copy_folder(source, tmp_path / "other")
    assert caught.value.filename == str(tmp_path / "other")
    assert names(tmp_path) == ["copy", "source"]
