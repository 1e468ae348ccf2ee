"""Programs of equal constants are compiled once in a process, and not all are kept."""

from __future__ import annotations

import numpy as np
import pytest

from jaxevo.stopwatch import Stopwatch
from jaxevo.training.programs import Program


@pytest.fixture
def traced():
    """A function of two constants and an argument, and what it was traced for."""
    seen: list[tuple] = []

    def scaled(factor: int, offset: int, x):
        seen.append((factor, offset, x.shape))
        return factor * x + offset

    return scaled, seen


def program(function, *constants: int) -> Program:
    return Program(function, constants, (), stopwatch=Stopwatch())


def test_another_program_of_the_same_constants_compiles_nothing(traced):
    function, seen = traced
    x = np.ones(3, np.float32)
    for _ in range(3):
        np.testing.assert_array_equal(program(function, 2, 1)(x), 2 * x + 1)
    assert seen == [(2, 1, (3,))]


def test_other_constants_and_other_shapes_have_programs_of_their_own(traced):
    function, seen = traced
    for factor in (2, 3):
        for length in (3, 4):
            x = np.arange(length, dtype=np.float32)
            np.testing.assert_array_equal(program(function, factor, 1)(x), factor * x + 1)
    assert seen == [(factor, 1, (length,)) for factor in (2, 3) for length in (3, 4)]


def test_only_the_last_programs_are_kept(traced):
    function, seen = traced
    x = np.ones(3, np.float32)
    for factor in [*range(40), 39, 0]:
        program(function, factor, 0)(x)
    assert [factor for factor, _, _ in seen] == [*range(40), 0]
