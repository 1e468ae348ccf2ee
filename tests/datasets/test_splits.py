"""Who sees which image: the splits' promises."""

from __future__ import annotations

import math
import pathlib

import numpy as np
import pytest
from builders_data import data_error, keys, make_images

from jaxevo.datasets import SearchData, load_search_data, load_test_data, load_train_data, splits

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def unique(tmp_path: pathlib.Path) -> str:
    """An .npz file of 400 different images in 4 unequal classes."""
    labels = np.repeat(np.arange(4), [200, 100, 60, 40])
    pixels = make_images(400, (4, 4))
    assert len(set(map(bytes, pixels))) == 400
    np.savez(
        tmp_path / "unique.npz",
        x_train=pixels,
        y_train=labels,
        x_test=255 - pixels[:40],
        y_test=labels[:40],
    )
    return str(tmp_path / "unique.npz")


def test_splits_are_disjoint_stratified_and_complete(unique: str) -> None:
    data = load_search_data(unique, validation_fraction=0.2, seed=3)
    assert isinstance(data, SearchData) and data.num_classes == 4 and data.image_shape == (4, 4, 1)
    train, validation, test = keys(data.train), keys(data.validation), keys(load_test_data(unique))
    assert len(train) + len(validation) == 400 and not set(train) & set(validation)
    assert set(train) | set(validation) == set(keys(load_train_data(unique)[0]))
    assert not set(test) & (set(train) | set(validation))
    assert np.bincount(data.train.labels).tolist() == [160, 80, 48, 32]
    assert np.bincount(data.validation.labels).tolist() == [40, 20, 12, 8]


def test_seed_decides_the_split(unique: str) -> None:
    first, again, other = (
        load_search_data(unique, seed=seed, train_examples=90) for seed in (1, 1, 2**40)
    )
    assert keys(first.train) == keys(again.train) and keys(first.validation) == keys(
        again.validation
    )
    assert keys(first.train) != keys(other.train) and keys(first.validation) != keys(
        other.validation
    )


def test_validation_does_not_depend_on_train_examples(unique: str) -> None:
    whole = load_search_data(unique, seed=5)
    smaller: set[bytes] = set()
    for size in (4, 37, 359, 360):
        part = load_search_data(unique, seed=5, train_examples=size)
        assert keys(part.validation) == keys(whole.validation)
        chosen = set(keys(part.train))
        assert len(chosen) == size and smaller <= chosen <= set(keys(whole.train))
        assert (
            np.abs(np.bincount(part.train.labels) - size * np.array([0.5, 0.25, 0.15, 0.1])).max()
            < 2
        )
        smaller = chosen


def test_the_fixed_test_part_does_not_depend_on_the_seed() -> None:
    test = set(keys(load_test_data("digits")))
    searched = [load_search_data("digits", seed=seed) for seed in (0, 1)]
    for data in searched:
        assert len(data.train) + len(data.validation) == 1437
        assert not test & set(keys(data.train)) and not test & set(keys(data.validation))


def test_impossible_splits(unique: str) -> None:
    data_error(
        lambda: load_search_data(unique, train_examples=361), "train_examples=361", "360 images"
    )
    data_error(lambda: load_search_data(unique, train_examples=3), "train_examples=3", "4 classes")
    data_error(lambda: load_search_data(unique, train_examples=-1), "train_examples=-1")
    data_error(lambda: load_search_data(unique, seed=-1), "seed=-1")
    data_error(lambda: load_search_data(unique, validation_fraction=1.0), "validation_fraction=1.0")
    data_error(
        lambda: load_search_data(unique, validation_fraction=0.001), unique, "0.001", "4 classes"
    )
    data_error(lambda: load_search_data(unique, image_size=-1), "image_size=-1")
    data_error(lambda: load_search_data(unique, image_size=10**9), "image_size")
    data_error(lambda: load_search_data(unique, resize="squash"), "resize=squash", "mnist_box")
    data_error(
        lambda: splits.split_off(np.array([0, 0, 0, 1]), 0.5, 0, what="the part"),
        "class 1",
        "fewer than 2",
    )
    data_error(
        lambda: splits.split_off(np.array([], np.int32), 0.5, 0, what="the part"), "the part"
    )


@pytest.mark.parametrize(
    ("counts", "fraction"), [((100, 50, 3), 0.8), ((1000, 1000, 2, 2), 0.1), ((90, 2), 0.9)]
)
def test_every_class_is_on_both_sides(counts: tuple[int, ...], fraction: float) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    for seed in range(20):
        rest, off = splits.split_off(labels, fraction, seed, what="the part")
        assert sorted([*rest, *off]) == list(range(len(labels)))
        assert len(off) == math.ceil(len(labels) * fraction)
        assert set(labels[rest]) == set(labels[off]) == set(labels)
        assert list(rest) == sorted(rest) and list(off) == sorted(off)


def test_a_class_of_one_image_is_refused_by_its_name() -> None:
    labels = np.array([0] * 9 + [1])
    data_error(
        lambda: splits.split_off(labels, 0.5, 0, what="the part", class_names=("cat", "dog")),
        "class dog",
        "fewer than 2",
    )
