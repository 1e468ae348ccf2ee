"""Two objectives: a fitness that is maximised and a cost that is minimised.

A point dominates another if it is no worse in both and better in one (Deb et al. 2002, *A fast and
elitist multiobjective genetic algorithm: NSGA-II*). Points are `(fitness, cost)`; `M` is their
number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

Point = tuple[float, float]  # fitness, cost


def dominates(one: Point, other: Point) -> bool:
    """True if `one` is no worse in both objectives and better in one."""
    return one[0] >= other[0] and one[1] <= other[1] and one != other


def fronts(points: Sequence[Point]) -> list[list[int]]:
    """Places of the points that nothing dominates, then of those that only these do, and so on.

    Within a front the cheapest comes first.
    """
    # By cost and, of equal cost, the fittest first: so no point is dominated by a later one.
    order = sorted(range(len(points)), key=lambda k: (points[k][1], -points[k][0]))
    found: list[list[int]] = []
    for place in order:
        for front in found:
            if not any(dominates(points[other], points[place]) for other in front):
                front.append(place)
                break
        else:
            found.append([place])
    return found


def crowding(points: Sequence[Point]) -> list[float]:
    """How far apart the neighbours of each point of a front are; infinite at its ends.

    The cost counts by its logarithm, since a front spans orders of magnitude.
    """
    distances = [0.0] * len(points)
    columns = ([point[0] for point in points], [math.log(point[1] + 1) for point in points])
    for column in columns:
        order = sorted(range(len(points)), key=lambda k: (column[k], k))
        spread = column[order[-1]] - column[order[0]] or 1.0
        distances[order[0]] = distances[order[-1]] = math.inf
        for before, place, after in zip(order, order[1:], order[2:], strict=False):
            distances[place] += (column[after] - column[before]) / spread
    return distances


def crowded_order(points: Sequence[Point]) -> list[int]:
    """Places of the points, the best first: by front, then the least crowded, then the fittest.

    Of all points the fittest comes first.
    """
    order = []
    for front in fronts(points):
        distances = crowding([points[place] for place in front])
        ranked = sorted(
            zip(front, distances, strict=True),
            key=lambda pair: (-pair[1], -points[pair[0]][0], pair[0]),
        )
        order += [place for place, _ in ranked]
    return order


def knee(points: Sequence[Point]) -> int:
    """Place of the point of a front beyond which more cost buys little more fitness.

    It lies the farthest above the line between the front's ends, the cost by its logarithm.
    """
    fitness = np.array([point[0] for point in points])
    cost = np.log([point[1] + 1 for point in points])
    cheapest, dearest = cost.argmin(), cost.argmax()
    span = cost[dearest] - cost[cheapest] or 1.0
    slope = (fitness[dearest] - fitness[cheapest]) / span
    return int((fitness - fitness[cheapest] - slope * (cost - cost[cheapest])).argmax())


def hypervolume(points: Sequence[Point], most: float) -> float:
    """The area that points dominate: of fitness above 0 and of the logarithm of cost below `most`.

    It is 1 where a point of fitness 1 costs nothing.
    """
    area, best, low = 0.0, 0.0, 0.0
    reference = math.log(most + 1)
    for fitness, cost in sorted(points, key=lambda point: (point[1], -point[0])):
        if fitness > best and cost < most:
            here = math.log(cost + 1)
            area += best * (here - low)
            best, low = fitness, here
    return (area + best * (reference - low)) / reference


def gains(points: Sequence[Point], others: Sequence[Point]) -> np.ndarray:
    """By how much each point would raise the front of the others.

    It is the area between the two fronts, of fitness and of the logarithm of cost, up to the
    highest cost of all; so the dearest point of all gains 0 where it is fitter than the others.
    What is less fit than the front at its cost has the (negative) fitness that it lacks; a point
    cheaper than all others is compared with the cheapest of them.
    """
    costs = np.log([cost + 1 for _, cost in others])
    order = np.argsort(costs, kind="stable")
    costs = costs[order]
    front = np.maximum.accumulate(np.array([fitness for fitness, _ in others])[order])
    own_costs = np.log([cost + 1 for _, cost in points])
    most = max(costs[-1], own_costs.max())
    found = []
    for (fitness, _), cost in zip(points, own_costs, strict=True):
        # What the others reach at this cost, and at each higher one. Cheaper than all of them, it
        # is compared with the cheapest.
        dearer = int(np.searchsorted(costs, cost, side="right"))
        levels = front[max(dearer - 1, 0) :] if dearer else np.array([front[0], *front])
        lacking = fitness - levels[0]
        widths = np.diff([cost, *costs[dearer:], most])
        found.append(lacking if lacking <= 0 else np.maximum(fitness - levels, 0) @ widths)
    return np.array(found)
