"""Values of a JSON object from outside, each checked for its type and size as it is taken."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar

from jaxevo.errors import printable
from jaxevo.files import FileError

MAX_NUMBER = 1e15  # sums, means and quotients of larger ones may overflow

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class CheckedFields:
    """An object of a file; `where` names it in errors, which are `FileError`s."""

    where: str
    data: Mapping[str, Any]

    def error(self, reason: str) -> FileError:
        """The error that the object is damaged for this reason."""
        return FileError(f"{self.where}: {reason}; restore the file from a copy")

    def take(self, name: str, kind: type[T]) -> T:
        """A value of exactly this type.

        A number is not too large, and text is printable.
        """
        if name not in self.data:
            raise self.error(f"{name} is missing")
        value = self.data[name]
        if kind is float and type(value) is int and abs(value) < 1 << 53:
            value = float(value)
        if type(value) is not kind:
            raise self.error(f"{name} is {reprlib.repr(value)}, not of type {kind.__name__}")
        if isinstance(value, int | float) and not abs(value) <= MAX_NUMBER:
            raise self.error(f"{name} is {reprlib.repr(value)}, not a number up to {MAX_NUMBER:g}")
        return printable(value) if isinstance(value, str) else value

    def count(self, name: str, least: int = 0) -> int:
        """A whole number that is not below the least."""
        value = self.take(name, int)
        if value < least:
            raise self.error(f"{name} is {value}, which is below {least}")
        return value

    def optional(self, name: str, kind: type[T]) -> T | None:
        """A value as `take` gives it, or None for a null."""
        return None if name in self.data and self.data[name] is None else self.take(name, kind)

    def items(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """The values of a list."""
        listed = dict(enumerate(self.take(name, list)))
        inner = CheckedFields(self.where, {f"{name}[{k}]": value for k, value in listed.items()})
        return tuple(inner.take(key, kind) for key in inner.data)

    def inner(self, name: str) -> CheckedFields:
        """An object within."""
        return CheckedFields(f"{self.where}, {name}", self.take(name, dict))
