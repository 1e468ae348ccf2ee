"""Compiled programs whose compilation is timed apart from their use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from jaxevo.stopwatch import Stopwatch


class Program:
    """A jitted function, compiled at its first call.

    Its seconds of compiling go to the stopwatch's part `compile`.
    """

    def __init__(
        self, function: Callable[..., Any], donate_argnums: tuple[int, ...], stopwatch: Stopwatch
    ):
        self._jitted = jax.jit(function, donate_argnums=donate_argnums)
        self._compiled: Callable[..., Any] | None = None
        self._stopwatch = stopwatch

    def compile(self, *args: Any) -> Callable[..., Any]:
        """The program for arguments of these shapes; compiles it at the first call."""
        if self._compiled is None:
            with self._stopwatch.part("compile"):
                self._compiled = self._jitted.lower(*args).compile()
        return self._compiled

    def __call__(self, *args: Any) -> Any:
        return self.compile(*args)(*args)
