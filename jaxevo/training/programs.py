"""Compiled programs, shared within a process; their compilation is timed apart from their use."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import jax

from jaxevo.stopwatch import Stopwatch

# Functions whose programs a process keeps; a search has six. Each takes memory and memory maps, of
# which thousands exhaust the process.
_KEPT = 16


@functools.lru_cache(_KEPT)
def jitted(
    function: Callable[..., Any],
    constants: tuple[Hashable, ...],
    donate_argnums: tuple[int, ...] = (),
) -> Any:
    """The jitted function of these constants, the same for equal ones.

    By it JAX finds the programs again that it has compiled in this process.
    """
    return jax.jit(functools.partial(function, *constants), donate_argnums=donate_argnums)


class Program:
    """A jitted function, compiled at its first call, and once for all with the same constants.

    Args:
        function: Takes the constants, then the arguments of a call.
        constants: What is part of the program.
        donate_argnums: Which arguments of a call are given up to the device.
        stopwatch: Is told the seconds of compiling, as its part `compile`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        constants: tuple[Hashable, ...],
        donate_argnums: tuple[int, ...],
        *,
        stopwatch: Stopwatch,
    ):
        self._jitted = jitted(function, constants, donate_argnums)
        self._compiled: Any = None
        self._stopwatch = stopwatch

    def compile(self, *args: Any) -> Callable[..., Any]:
        """The program for arguments of these shapes; compiles it at the first call."""
        if self._compiled is None:
            with self._stopwatch.part("compile"):
                self._compiled = self._jitted.lower(*args).compile()
        return self._compiled

    def __call__(self, *args: Any) -> Any:
        return self.compile(*args)(*args)
