"""Counts of classes: as counted by hand, written and read back, and refused where damaged."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from jaxevo.files import FileError
from jaxevo.run.confusion import MAX_CLASSES, Confusion

NAMES = ("cat", "dog", 'a "b", c', "=1+1")
LABELS = np.array([0, 0, 0, 1, 1, 3])
PREDICTED = np.array([0, 1, 1, 1, 0, 3])
COUNTS = [[1, 2, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


@pytest.fixture
def confusion() -> Confusion:
    return Confusion.of(LABELS, PREDICTED, NAMES)


def test_rows_are_classes_and_columns_what_they_are_taken_for(confusion):
    assert confusion.counts.tolist() == COUNTS
    assert confusion.images.tolist() == [3, 2, 0, 1]
    assert confusion.accuracies == [1 / 3, 0.5, None, 1.0]


def test_each_class_counts_alike_in_balanced_accuracy(confusion):
    with pytest.warns(UserWarning, match="y_pred"):  # a class without images
        theirs = balanced_accuracy_score(LABELS, np.array([0, 1, 2, 1, 0, 3]))
    assert Confusion.of(LABELS, np.array([0, 1, 2, 1, 0, 3]), NAMES).balanced_accuracy == theirs
    assert confusion.balanced_accuracy == (1 / 3 + 0.5 + 1) / 3


def test_mistakes_come_by_their_number_and_then_by_class(confusion):
    assert confusion.mistakes() == [(0, 1, 2), (1, 0, 1)]
    assert Confusion(("a",), np.array([[7]])).mistakes() == []


def test_a_table_is_read_back_as_it_was_written(confusion, tmp_path: pathlib.Path):
    confusion.write(tmp_path / "confusion.csv")
    first, *_ = (tmp_path / "confusion.csv").read_text().splitlines()
    assert first == 'class,cat,dog,"a ""b"", c",=1+1'
    read = Confusion.read(tmp_path / "confusion.csv")
    assert read is not None and read.class_names == NAMES
    assert read.counts.tolist() == COUNTS and read.accuracies == confusion.accuracies


def test_where_there_is_no_file_there_is_no_table(tmp_path):
    assert Confusion.read(tmp_path / "confusion.csv") is None


MANY = "class," + ",".join(map(str, range(MAX_CLASSES + 1)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class\n",
        "class,a\n",
        "class,a\na\n",
        "class,a\nb,1\n",
        "kind,a\na,1\n",
        "class,a\na,1,2\n",
        "class,a,b\na,1,2\n",
        "class,a,b\na,1,2\nb,1\n",
        "class,a\na,-1\n",
        "class,a\na,1.5\n",
        "class,a\na,x\n",
        f"class,a\na,{10**30}\n",
        f"class,a\na,{10**12}\n",
        "class,a\na,1\n\n",
        f"{MANY}\n0,1\n",
        'class,"a\n',
    ],
)
def test_what_is_no_table_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "confusion.csv"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        Confusion.read(path)
    assert str(path) in str(caught.value) and "restore it from a copy" in str(caught.value)


def test_what_is_no_text_or_very_large_is_refused(tmp_path):
    path = tmp_path / "confusion.csv"
    path.write_bytes(b"class,\xff\n")
    with pytest.raises(FileError, match="is damaged"):
        Confusion.read(path)
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(FileError, match="another kind of file"):
        Confusion.read(path)


def test_names_of_a_stranger_cannot_control_the_terminal(tmp_path):
    path = tmp_path / "confusion.csv"
    path.write_text("class,\x1b[31mred\n\x1b[31mred,1\n")
    read = Confusion.read(path)
    assert read is not None and read.class_names == ("\\x1b[31mred",)
