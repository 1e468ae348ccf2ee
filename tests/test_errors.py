"""What a person reads where the operating system refuses something."""

import errno
import os
import pathlib

import pytest

from jaxevo.errors import explained, reason


@pytest.mark.parametrize(
    "code, text",
    [
        (errno.ENOENT, "a/b: no such file or directory: check the path, and make its folder first"),
        (errno.EEXIST, "a/b: file exists: name another place"),
        (errno.ENOSPC, "a/b: no space left on device: make room, or name another place"),
        (errno.EIO, "a/b: input/output error"),
    ],
)
def test_a_refusal_names_the_file_and_the_remedy(code: int, text: str):
    assert explained(OSError(code, os.strerror(code), "a/b")) == text


def test_the_remedy_can_be_left_out():
    assert reason(IsADirectoryError(errno.EISDIR, "Is a directory", "x")) == "x: is a directory"


def test_an_error_without_a_file_stays_as_it_is():
    assert explained(OSError("weights cannot be written")) == "weights cannot be written"


def test_errors_of_the_system_itself(tmp_path: pathlib.Path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(OSError) as caught:
        (file / "folder").mkdir()
    assert explained(caught.value).startswith(f"{file}/folder: not a directory: a part of the path")
