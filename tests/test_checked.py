"""Each value from outside is taken only with its type, and what is wrong is said with its place."""

from __future__ import annotations

from typing import Any

import pytest

from jaxevo.checked import MAX_NUMBER, CheckedFields
from jaxevo.files import FileError


def fields(**values: Any) -> CheckedFields:
    return CheckedFields("a.json", values)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1, int),
        (True, bool),
        (0.5, float),
        (MAX_NUMBER, float),
        ("é", str),
        ([1], list),
        ({}, dict),
    ],
)
def test_values_of_their_type_are_taken_as_they_are(value: Any, kind: type):
    taken = fields(x=value).take("x", kind)
    assert taken == value and type(taken) is kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, int),
        (1, bool),
        (1.0, int),
        (None, int),
        ("1", float),
        (True, float),
        (1 << 53, float),
        ((1,), list),
    ],
)
def test_values_of_another_type_are_refused(value: Any, kind: type):
    words = rf"^a\.json: x is .*, not of type {kind.__name__}; restore the file from a copy$"
    with pytest.raises(FileError, match=words):
        fields(x=value).take("x", kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (float("nan"), float),
        (float("inf"), float),
        (1.1 * MAX_NUMBER, float),
        (10**16, int),
        (-(10**400), int),
    ],
)
def test_numbers_beyond_arithmetic_are_refused(value: Any, kind: type):
    with pytest.raises(FileError, match=r"^a\.json: x is .*, not a number up to 1e\+15; restore"):
        fields(x=value).take("x", kind)


def test_counts_have_a_least():
    assert fields(x=0).count("x") == 0 and fields(x=1).count("x", least=1) == 1
    for value, least in ((-1, 0), (0, 1)):
        with pytest.raises(FileError, match=f"x is {value}, which is below {least}"):
            fields(x=value).count("x", least=least)
    with pytest.raises(FileError, match=r"x is 1\.0, not of type int"):
        fields(x=1.0).count("x")


def test_a_whole_number_is_taken_where_a_measured_one_is_wanted():
    taken = fields(x=3).take("x", float)
    assert taken == 3.0 and type(taken) is float


def test_what_a_terminal_would_obey_is_escaped():
    assert fields(x="\x1b[31mred\n").take("x", str) == "\\x1b[31mred\\n"


def test_long_values_are_told_in_short():
    with pytest.raises(FileError) as caught:
        fields(x="9" * 10_000).take("x", int)
    assert len(str(caught.value)) < 200


def test_optional_is_a_null_not_a_value_that_is_missing():
    assert fields(x=None).optional("x", int) is None
    assert fields(x=3).optional("x", int) == 3
    with pytest.raises(FileError, match="x is missing"):
        fields().optional("x", int)


def test_items_and_inner_objects_are_named_by_their_place():
    assert fields(x=[1, 2]).items("x", int) == (1, 2)
    with pytest.raises(FileError, match=r"a\.json: x\[1\] is 'two', not of type int"):
        fields(x=[1, "two"]).items("x", int)
    inner = fields(x={"y": 1}).inner("x")
    assert inner.take("y", int) == 1
    with pytest.raises(FileError, match=r"a\.json, x: z is missing"):
        inner.take("z", int)
