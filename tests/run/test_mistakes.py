"""Pictures of misclassified images: which, how they are kept, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import pathlib
import struct

import numpy as np
import pytest
from builders_data import make_images
from PIL import Image

from jaxevo.datasets import Images
from jaxevo.files import FileError
from jaxevo.run.mistakes import MAX_MISTAKES, choose_mistakes, read_mistakes, write_mistakes

NAMES = ("cat", "dog", "<b>")


def images(labels: list[int], shape: tuple[int, int, int] = (8, 8, 1)) -> Images:
    return Images(make_images(len(labels), shape), np.array(labels, np.int32))


def test_the_most_frequent_mistakes_come_first_and_each_has_few():
    labels = [0, 1, 0, 0, 0, 0, 2, 2]
    predicted = np.array([1, 1, 1, 1, 2, 1, 0, 2])
    given = images(labels)
    chosen = choose_mistakes(given, predicted, NAMES)
    # Of four cats taken for dogs the first three; the other mistakes by class.
    assert [each.index for each in chosen] == [0, 2, 3, 4, 6]
    assert [(each.class_name, each.taken_for) for each in chosen[2:]] == [
        *(("cat", "dog"), ("cat", "<b>"), ("<b>", "cat"))
    ]
    for each in chosen:
        pixels = np.asarray(Image.open(io.BytesIO(each.png)))
        assert np.array_equal(pixels, given.images[each.index, :, :, 0])
    assert choose_mistakes(given, given.labels, NAMES) == []


def test_many_and_large_coloured_images_are_kept_small(tmp_path: pathlib.Path):
    given = images([k % 10 for k in range(300)], (100, 60, 3))
    predicted = np.array([(k // 10) % 10 for k in range(300)])
    chosen = choose_mistakes(given, predicted, [str(k) for k in range(10)])
    assert len(chosen) == MAX_MISTAKES
    picture = Image.open(io.BytesIO(chosen[0].png))
    assert picture.size == (29, 48) and picture.mode == "RGB"
    write_mistakes(tmp_path / "mistakes.json", chosen)
    assert (tmp_path / "mistakes.json").stat().st_size < 250_000
    assert read_mistakes(tmp_path / "mistakes.json") == chosen
    assert read_mistakes(tmp_path / "none.json") is None


def header(width: int, height: int) -> str:
    begin = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
    return base64.b64encode(begin + struct.pack(">II", width, height)).decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"png": "<script>"}, "no base64"),
        ({"png": base64.b64encode(b"<svg/>").decode()}, "no PNG picture of at most 48 pixels"),
        ({"png": header(60_000, 60_000)}, "no PNG picture"),
        ({"png": header(0, 8)}, "no PNG picture"),
        ({"png": 3}, "not of type str"),
        ({"class": None}, "not of type str"),
        ({"index": "0"}, "not of type int"),
    ],
)
def test_what_is_no_small_picture_is_refused(tmp_path: pathlib.Path, change: dict, words: str):
    entry = {"index": 0, "class": "a", "taken_for": "b", "png": header(8, 8)}
    path = tmp_path / "mistakes.json"
    path.write_text(json.dumps({"mistakes": [entry]}))
    assert read_mistakes(path)
    path.write_text(json.dumps({"mistakes": [entry | change]}))
    with pytest.raises(FileError, match=words):
        read_mistakes(path)


def test_too_many_are_refused(tmp_path: pathlib.Path):
    entry = {"index": 0, "class": "a", "taken_for": "b", "png": header(8, 8)}
    (tmp_path / "mistakes.json").write_text(json.dumps({"mistakes": [entry] * 25}))
    with pytest.raises(FileError, match="25 mistakes, more than 24"):
        read_mistakes(tmp_path / "mistakes.json")
