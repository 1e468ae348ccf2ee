"""Image files classified: the same pixels as training images have, and rows in every form."""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np
import pytest
from PIL import Image

from jaxevo import predictions
from jaxevo.datasets import InputForm, load_training_data
from jaxevo.datasets.image_files import find_images, read_image
from jaxevo.errors import InputError
from jaxevo.predictions import (
    Prediction,
    format_predictions,
    list_files,
    predict_files,
    predict_lines,
)

NAMES = ("dark", "bright")


@dataclasses.dataclass(frozen=True)
class Brightness:
    """Stands for a trained network: the brighter an image, the likelier the second class."""

    image_shape: tuple[int, int, int] = (4, 4, 1)
    class_names: tuple[str, ...] = NAMES
    form: InputForm = InputForm(4, 4, 1)

    def predict_inputs(self, images: np.ndarray) -> np.ndarray:
        assert images.dtype == np.uint8 and images.shape[1:] == self.image_shape
        bright = (images.mean((1, 2, 3)) / 255).astype(np.float32)
        return np.stack([1 - bright, bright], axis=1)


CLASSIFIER: Any = Brightness()


def save(path: pathlib.Path, grey: int = 0, size: tuple[int, int] = (4, 4)) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full(size, grey, np.uint8)).save(path)
    return path


# Rows


def test_rows_by_hand(tmp_path):
    # 51 / 255 = 0.2 and 204 / 255 = 0.8; sizes differ from the network's.
    dark = save(tmp_path / "a.png", 51, (4, 4))
    bright = save(tmp_path / "b.bmp", 204, (9, 7))
    first, second = predict_files(CLASSIFIER, [dark, bright])
    assert (first.path, first.class_name) == (dark, "dark")
    assert first.probabilities == pytest.approx((0.8, 0.2))
    assert first.probability == first.probabilities[0]
    assert (second.path, second.class_name) == (bright, "bright")
    assert second.probabilities == pytest.approx((0.2, 0.8))
    assert second.probability == second.probabilities[1]


def test_more_files_than_are_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(predictions, "_BATCH", 2)
    files = [save(tmp_path / f"{k}.png", 50 * k) for k in range(5)]
    rows = list(predict_files(CLASSIFIER, files))
    assert [row.path for row in rows] == files
    assert [row.class_name for row in rows] == ["dark"] * 3 + ["bright"] * 2


def test_files_before_a_damaged_one_are_predicted(tmp_path):
    files = [save(tmp_path / f"{k}.png", 50 * k) for k in range(5)]
    files[3].write_bytes(b"no image")
    rows = predict_files(CLASSIFIER, files)
    assert [next(rows).path for _ in range(3)] == files[:3]
    with pytest.raises(InputError, match=r"3\.png cannot be read"):
        next(rows)
    with pytest.raises(InputError, match=r"3\.png cannot be read"):
        list(predict_files(CLASSIFIER, files[3:]))


def test_a_list_of_json_that_a_damaged_file_ends_is_whole(tmp_path):
    files = [save(tmp_path / "a.png"), tmp_path / "b.png"]
    files[1].write_bytes(b"no image")
    for given, number in ((files, 1), (files[1:], 0)):
        lines, found = predict_lines(CLASSIFIER, given, "json"), []
        with pytest.raises(InputError, match=r"b\.png cannot be read"):
            for line in lines:
                found.append(line)
        assert len(json.loads("".join(found))) == number


def test_files_of_another_range_are_refused(tmp_path):
    """As they are among training and test images."""
    fractions = tmp_path / "fractions.tif"
    Image.fromarray(np.linspace(0, 1, 16, dtype=np.float32).reshape(4, 4)).save(fractions)
    with pytest.raises(InputError, match="where the training images' range is 0 to 255"):
        list(predict_files(CLASSIFIER, [fractions]))
    dark = [save(tmp_path / f"{k}.png", k % 10) for k in range(40)]  # bytes may be as dark as that
    assert [row.class_name for row in predict_files(CLASSIFIER, dark)] == ["dark"] * 40


@pytest.mark.parametrize("method", ["stretch", "mnist_box"])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_is_read_as_a_training_image(tmp_path, method, channels):
    rng = np.random.default_rng(0)
    for name in ("train/a/0", "train/a/1", "train/b/0", "test/a/0", "test/b/0"):
        pixels = rng.integers(0, 256, (9, 7, channels), dtype=np.uint8)
        path = tmp_path / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels.squeeze()).save(path)
    data = load_training_data(str(tmp_path), image_size=6, resize=method)
    found = [read_image(path, data.form) for path in find_images(tmp_path / "train")]
    np.testing.assert_array_equal(np.stack(found), data.images.images)


def test_colours_and_greys_become_what_the_network_takes(tmp_path):
    grey = save(tmp_path / "grey.png", 100)
    colour = tmp_path / "colour.png"
    Image.fromarray(np.full((4, 4, 3), (200, 100, 0), np.uint8)).save(colour)
    assert read_image(grey, InputForm(4, 4, 3)).tolist() == [[[100] * 3] * 4] * 4
    # 0.299 * 200 + 0.587 * 100 = 118.5, to even
    assert read_image(colour, InputForm(4, 4, 1)).tolist() == [[[118]] * 4] * 4
    assert read_image(colour, InputForm(4, 4, 3)).tolist() == [[[200, 100, 0]] * 4] * 4


# Files


def test_files_and_folders_in_order(tmp_path):
    alone = save(tmp_path / "z.png")
    inside = [save(tmp_path / "in" / name) for name in ("a/2.png", "a/b/1.JPG", "c.png")]
    save(tmp_path / "in" / ".hidden.png")
    save(tmp_path / "in" / ".cache" / "x.png")
    (tmp_path / "in" / "notes.txt").write_text("no image")
    (tmp_path / "in" / "linked").symlink_to(tmp_path)  # a link to a folder is not followed
    (tmp_path / "in" / "d.png").symlink_to(inside[0])
    expected = [alone, *inside, tmp_path / "in" / "d.png", alone]
    assert list_files([alone, str(tmp_path / "in"), alone]) == expected


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="^no image is named: give image files or folders of them"):
        list_files([])
    with pytest.raises(InputError, match="/none.png does not exist: give image files or folders"):
        list_files([tmp_path / "none.png"])
    with pytest.raises(InputError, match=r" has no images \(.apng, .*\): add some$"):
        list_files([tmp_path])
    with pytest.raises(InputError, match="an empty path is given"):
        list_files([""])


def refusal(paths: list[pathlib.Path]) -> str:
    with pytest.raises(InputError) as caught:
        list(predict_lines(CLASSIFIER, paths))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_links_out_of_the_folder_are_refused(tmp_path):
    secret = save(tmp_path / "secret.png")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.png").symlink_to(secret)
    assert f"a.png is a link that leads out of {folder}" in refusal([folder])
    assert list(predict_lines(CLASSIFIER, [folder / "a.png"]))  # named by its own name it is meant


def test_what_is_no_image_is_refused(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(save(tmp_path / "whole.png").read_bytes()[:40])
    assert refusal([broken]).startswith(f"{broken} cannot be read as an image (")
    text = tmp_path / "text.png"
    text.write_text("no image")
    assert refusal([text]).endswith("replace or remove it")
    pipe = tmp_path / "pipe.png"
    os.mkfifo(pipe)
    assert refusal([pipe]) == f"{pipe} is no regular file: replace or remove it"
    assert refusal([tmp_path]) == f"{pipe} is no regular file: replace or remove it"
    dangling = tmp_path / "dangling.png"
    dangling.symlink_to(tmp_path / "nothing")
    assert refusal([dangling]) == f"{dangling} is no regular file: replace or remove it"


# Forms

ROWS = [
    Prediction(pathlib.Path("in/a.png"), "dark", 0.75, (0.75, 0.25)),
    Prediction(pathlib.Path('in/b, "c"\x1b.png'), "bright", 2 / 3, (1 / 3, 2 / 3)),
]


def test_as_text():
    assert list(format_predictions(ROWS, NAMES, "text")) == [
        "in/a.png  dark  75.00%",
        'in/b, "c"\\x1b.png  bright  66.67%',
    ]


def test_as_csv():
    lines = list(format_predictions(ROWS, NAMES, "csv"))
    assert lines == [
        "path,class,probability,p_dark,p_bright",
        "in/a.png,dark,0.750000,0.750000,0.250000",
        '"in/b, ""c""\\x1b.png",bright,0.666667,0.333333,0.666667',
    ]
    assert [row["p_bright"] for row in csv.DictReader(lines)] == ["0.250000", "0.666667"]


def test_as_json():
    lines = list(format_predictions(ROWS, NAMES, "json"))
    assert json.loads("\n".join(lines)) == [
        {
            "path": "in/a.png",
            "class": "dark",
            "probability": 0.75,
            "probabilities": {"dark": 0.75, "bright": 0.25},
        },
        {
            "path": 'in/b, "c"\x1b.png',
            "class": "bright",
            "probability": 0.666667,
            "probabilities": {"dark": 0.333333, "bright": 0.666667},
        },
    ]
    assert "".join(lines).isprintable()
    assert json.loads("".join(format_predictions([], NAMES, "json"))) == []


def test_lines_of_a_folder(tmp_path):
    save(tmp_path / "a.png", 51)
    assert list(predict_lines(CLASSIFIER, [tmp_path])) == [f"{tmp_path}/a.png  dark  80.00%"]
    (row,) = json.loads("".join(predict_lines(CLASSIFIER, [tmp_path], "json")))
    assert row["probabilities"] == {"dark": 0.8, "bright": 0.2}
    with pytest.raises(
        InputError, match="^format=xml is not known: choose one of text, csv, json$"
    ):
        predict_lines(CLASSIFIER, [tmp_path], "xml")
