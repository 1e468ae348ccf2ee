"""Classes by their names: another order is mapped, other names are refused unless they are mapped
by hand.
"""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from builders_data import data_error, make_images, make_labels, write_folder

from jaxevo.datasets import (
    ReadOptions,
    load_search_data,
    load_test_data,
    load_train_data,
    parse_class_map,
)
from jaxevo.datasets.class_names import map_classes

pytestmark = pytest.mark.usefixtures("offline")
WORDS = ("zero", "one", "two", "three")


def test_the_same_names_in_another_order() -> None:
    assert map_classes(("one", "three", "two", "zero"), WORDS, "x").tolist() == [1, 3, 2, 0]
    assert map_classes(("two",), WORDS, "x").tolist() == [2]


def test_other_names_are_refused_unless_mapped() -> None:
    message = data_error(lambda: map_classes(("Dog", "cat"), ("cat", "dog"), "pets"), "class Dog")
    assert "class_map=Dog=dog," in message
    renamed = {"Dog": "dog"}
    assert map_classes(("Dog", "cat"), ("cat", "dog"), "pets", class_map=renamed).tolist() == [1, 0]
    data_error(
        lambda: map_classes(("0", "1"), WORDS, "x"), "class 0", "zero", "class_map=0=...,1=..."
    )
    data_error(
        lambda: map_classes(("a", "b"), ("a", "b"), "x", class_map={"c": "a"}), "class_map names c"
    )
    data_error(
        lambda: map_classes(("a", "b"), ("a", "b"), "x", class_map={"a": "b"}), "two classes", "b"
    )


def test_class_maps_are_parsed() -> None:
    assert parse_class_map("10=0, Dog=dog") == {"10": "0", "Dog": "dog"}
    assert parse_class_map("") == {}
    for text in ("a", "a=", "=b", "a=b=c", "a=b,a=c"):
        data_error(lambda text=text: parse_class_map(text), "class_map=")


def test_npz_labels_from_1_to_10(tmp_path: pathlib.Path) -> None:
    """SVHN's way: 10 stands for zero."""
    pixels, digits = make_images(40, (8, 8)), make_labels(40)
    labels = np.where(digits == 0, 10, digits)
    path = str(tmp_path / "own.npz")
    np.savez(path, x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    ten = tuple("0123456789")
    data_error(lambda: load_test_data(path, class_names=ten), "class 10", "class_map=10=0")
    options = ReadOptions(class_map={"10": "0"})
    test = load_test_data(path, class_names=ten, options=options)
    np.testing.assert_array_equal(test.labels, digits)


def test_folders_in_another_order(tmp_path: pathlib.Path) -> None:
    pixels, labels = make_images(20, (5, 5)), np.sort(make_labels(20, 4))
    write_folder(tmp_path / "numbers" / "train", pixels, labels, "0123")
    write_folder(tmp_path / "words" / "train", pixels, labels, WORDS)
    for name in ("numbers", "words"):
        (tmp_path / name / "test").symlink_to(tmp_path / name / "train")
    words = str(tmp_path / "words")
    names = load_train_data(words)[1]
    assert names == ("one", "three", "two", "zero")
    test = load_test_data(words, class_names=WORDS)
    by_pixels = {image.tobytes(): label for image, label in zip(pixels, labels, strict=True)}
    assert [by_pixels[image.tobytes()] for image in test.images] == test.labels.tolist()
    data_error(
        lambda: load_test_data(str(tmp_path / "numbers"), class_names=WORDS), "class 0", "zero"
    )
    renamed = ReadOptions(class_map=dict(zip("0123", WORDS, strict=True)))
    test = load_test_data(str(tmp_path / "numbers"), class_names=WORDS, options=renamed)
    assert [by_pixels[image.tobytes()] for image in test.images] == test.labels.tolist()


def test_a_part_of_the_classes_can_be_tested(tmp_path: pathlib.Path) -> None:
    path = str(tmp_path / "own.npz")
    pixels, labels = make_images(40, (4, 4)), make_labels(40, 2) + 5
    np.savez(path, x_train=pixels, y_train=labels, x_test=pixels[:9], y_test=labels[:9])
    ten = tuple("0123456789")
    assert load_test_data(path, class_names=ten).labels.tolist() == labels[:9].tolist()
    np.savez(path, x_train=pixels, y_train=labels, x_test=pixels[:9], y_test=labels[:9] * 0 + 5)
    summary = load_search_data(path).summary
    assert summary and "no test images of class 6" in summary.notes


def test_a_network_has_its_names_made_printable() -> None:
    assert map_classes(["b", "a\u200cb"], ("a\\u200cb", "b"), "own").tolist() == [1, 0]
