"""Fronts, crowding, knee and hypervolume, by hand and against definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from jaxevo.strategies.dominance import (
    crowded_order,
    crowding,
    dominates,
    fronts,
    gains,
    hypervolume,
    knee,
)


def test_dominance_by_hand():
    assert dominates((0.9, 10), (0.8, 10)) and dominates((0.9, 10), (0.9, 11))
    assert not dominates((0.9, 10), (0.9, 10))
    assert not dominates((0.9, 10), (0.8, 9)) and not dominates((0.8, 9), (0.9, 10))


def test_fronts_are_what_the_definition_says():
    rng = np.random.default_rng(0)
    for _ in range(200):
        points = [(int(f) / 5, float(c)) for f, c in rng.integers(0, 6, (rng.integers(1, 25), 2))]
        left, expected = set(range(len(points))), []
        while left:
            best = {
                k for k in left if not any(dominates(points[other], points[k]) for other in left)
            }
            expected.append(best)
            left -= best
        found = fronts(points)
        assert [set(front) for front in found] == expected
        for front in found:
            assert [points[k][1] for k in front] == sorted(points[k][1] for k in front)


def test_crowding_by_hand():
    # Costs e^0 - 1, e^1 - 1, ...: their logarithms, after adding 1, are 0, 1, 3 and 4.
    points = [(f, math.exp(c) - 1) for f, c in ((0.1, 0), (0.3, 1), (0.4, 3), (0.9, 4))]
    distances = crowding(points)
    assert distances[0] == distances[3] == math.inf
    assert distances[1] == pytest.approx(0.3 / 0.8 + 3 / 4)
    assert distances[2] == pytest.approx(0.6 / 0.8 + 3 / 4)
    # The fittest first, then the other end, then the least crowded; dominated points come last.
    assert crowded_order([*points, (0.05, 5.0)]) == [3, 0, 2, 1, 4]


def test_equal_points_are_ordered_by_their_places():
    assert crowded_order([(0.5, 3.0)] * 4) == crowded_order([(0.5, 3.0)] * 4)
    assert sorted(crowded_order([(0.5, 3.0)] * 4)) == [0, 1, 2, 3]


def test_the_knee_lies_farthest_above_the_line_between_the_ends():
    points = [(f, math.exp(c) - 1) for f, c in ((0.0, 0), (0.3, 1), (0.8, 2), (0.9, 3), (1.0, 4))]
    assert knee(points) == 2
    assert knee(points[:1]) == 0


def test_the_hypervolume_is_the_area_below_the_staircase():
    reference = math.exp(4) - 1
    points = [(0.5, math.exp(1) - 1), (0.9, math.exp(3) - 1)]
    assert hypervolume(points, reference) == pytest.approx((0.5 * 2 + 0.9 * 1) / 4)
    assert hypervolume([], reference) == 0 and hypervolume([(1.0, 0.0)], reference) == 1
    # A dominated point adds nothing, and the order makes no difference.
    more = [*points, (0.4, math.exp(2) - 1)]
    assert hypervolume(more[::-1], reference) == hypervolume(points, reference)
    # Monte Carlo, on random points.
    rng = np.random.default_rng(0)
    points = [
        (float(f), float(c)) for f, c in zip(rng.random(20), rng.integers(1, 50, 20), strict=True)
    ]
    fitness, cost = rng.random(20_000), np.exp(4 * rng.random(20_000)) - 1
    below = [any(f >= y and c <= x for f, c in points) for y, x in zip(fitness, cost, strict=True)]
    # Five standard deviations of the share are 0.018 at most.
    assert hypervolume(points, reference) == pytest.approx(np.mean(below), abs=0.018)


def test_gains_by_hand():
    # Costs are such that the logarithms of cost + 1 are 0, 1, 2 and 3.
    costs = [math.exp(k) - 1 for k in range(4)]
    front = [(0.5, costs[1]), (0.7, costs[2]), (0.4, costs[2])]
    points = [
        (0.6, costs[1]),  # raises 0.5 to 0.6 until cost 2
        (0.8, costs[1]),  # 0.3 until cost 2, then 0.1 until 3
        (0.6, costs[2]),  # lacks 0.1
        (0.9, costs[3]),  # raises nothing before the highest cost of all
        (0.6, costs[0]),  # cheaper than all: 0.1 until 1, where it is compared with 0.5, and 0.1
        (0.5, costs[1]),  # equal to a known one
    ]
    assert gains(points, front) == pytest.approx([0.1, 0.4, -0.1, 0.0, 0.2, 0.0])


def test_gains_are_differences_of_hypervolumes():
    rng = np.random.default_rng(1)
    for _ in range(200):
        others = [
            (float(f), float(c)) for f, c in zip(rng.random(9), rng.integers(5, 99, 9), strict=True)
        ]
        others.append((0.0, 1.0))  # so that no point is cheaper than all
        others.append((0.0, 100.0))
        point = (float(rng.random()), float(rng.integers(5, 99)))
        (found,) = gains([point], others)
        more = hypervolume([*others, point], 100) - hypervolume(others, 100)
        assert max(found, 0) == pytest.approx(more * math.log(101), abs=1e-12)
        assert (found > 0) == (more > 1e-12)
