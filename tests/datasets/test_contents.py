"""Images that are known again by their pixels."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jaxevo.datasets import Content, Images
from jaxevo.datasets.contents import _SKETCH


def images(number: int, seed: int = 0) -> Images:
    pixels = np.random.default_rng(seed).integers(0, 256, (number, 3, 4, 1), np.uint8)
    return Images(pixels, np.zeros(number, np.int32))


def mixed(*parts: Images) -> Images:
    pixels = np.concatenate([part.images for part in parts])
    return Images(pixels, np.zeros(len(pixels), np.int32))


def test_the_order_changes_nothing():
    one = images(40)
    assert Content.of(one.take(np.random.default_rng(1).permutation(40))) == Content.of(one)
    assert Content.of(one.take(np.arange(39))).digest != Content.of(one).digest


def test_of_few_training_images_every_test_image_is_told():
    content = Content.of(images(60))
    tests = mixed(images(60).take(np.arange(7)), images(30, seed=1))
    assert content.count_known(tests) == (7, 37)
    assert content.count_known(images(30, seed=1)) == (0, 30)


def test_of_many_a_sample_of_test_images_is_told():
    content = Content.of(images(5000))
    tests = mixed(images(5000).take(np.arange(600)), images(1400, seed=1))
    known, checked = content.count_known(tests)
    # A test image can be told with probability 512 / 5000: 205 of 2,000, with a deviation of 13.6.
    assert 137 < checked < 273
    # Three in ten are known; five standard deviations of 205 draws are 0.16.
    assert abs(known / checked - 0.3) < 0.16
    assert content.count_known(images(1400, seed=1))[0] == 0


def test_a_content_is_read_back():
    for number in (1, 60, _SKETCH, 2 * _SKETCH):
        content = Content.of(images(number))
        assert len(content.sketch) == min(number, _SKETCH)
        assert Content.from_json(json.loads(json.dumps(content.to_json()))) == content


def test_earlier_versions_kept_less():
    assert Content.from_json({}) == Content()
    older = Content.from_json({"content": "ab"})
    assert older == Content("ab") and older.count_known(images(5)) == (0, 0)


@pytest.mark.parametrize("sketch", ["12", "zz" * 8, "-" * 16, [1], "00" * 8 * (_SKETCH + 1)])
def test_another_form_is_refused(sketch: object):
    with pytest.raises(ValueError):
        Content.from_json({"content": "ab", "sketch": sketch})
