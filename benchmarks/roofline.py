"""How near a step comes to what the processor can compute and its memory can carry.

Both are measured on the cores that this process may use: multiply-adds a second of a large product
of float32 matrices in NumPy's BLAS, and bytes a second of copying an array that no cache holds.
"""

from __future__ import annotations

import concurrent.futures
import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from measuring import BATCH

from jaxevo.config import NetworkConfig
from jaxevo.search_space.genome import Genome

_SIDE = 2048  # of the matrices
_BYTES = 1 << 28  # of the array
_REPEATS = 5
# How often a step at least carries each state of a cell: written and read in the forward pass, read
# in the backward pass, and its gradient written and read there.
_PASSES = 5


class Peaks(NamedTuple):
    """What the cores in use can do in a second."""

    multiply_adds: float
    bytes: float


def measure_peaks() -> Peaks:
    """The best of some repeats, in a few seconds."""
    a, b = (np.random.default_rng(k).random((_SIDE, _SIDE), np.float32) for k in range(2))
    products = _SIDE**3 / _least(lambda: a @ b)
    # Each core copies its part, as one alone does not use all of the memory's width.
    cores = len(os.sched_getaffinity(0))
    parts = [np.zeros(_BYTES // cores, np.uint8) for _ in range(cores)]
    copies = [np.ones_like(part) for part in parts]
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        seconds = _least(lambda: list(pool.map(np.copyto, copies, parts)))
    return Peaks(products, 2 * sum(part.nbytes for part in parts) / seconds)


def least_traffic(genome: Genome, config: NetworkConfig, size: int) -> int:
    """Bytes that a training step carries at least, were there no cache between two passes.

    Images are squares of this side.
    """
    values = 0
    for kind, channels in config.stack():
        cell = genome.cell("reduction" if kind == "reduction" else "normal")
        values += channels * (1 + 2 * cell.num_nodes) * size * size
        size //= 2 if kind == "reduction" else 1
    return 4 * BATCH * _PASSES * values


def _least(work: Callable[[], object]) -> float:
    """Seconds of the fastest repeat."""
    seconds = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
