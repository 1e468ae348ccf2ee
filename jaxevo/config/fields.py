"""Fields of configurations: their help texts, their checks, and their names as flags.

A configuration is a frozen dataclass whose fields are settings or further configurations. Each
setting has a flag name of its own; those of the final training begin with `final_`.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import numbers
import typing
from collections.abc import Iterable, Mapping
from typing import Any

from jaxevo.errors import InputError


def setting(default: Any, help_text: str, choices: tuple[str, ...] = ()) -> Any:
    """A field with its default, its help text, and its possible values, if they are few."""
    metadata = {"help": help_text, "choices": choices}
    return dataclasses.field(default=default, metadata=metadata)


def check(condition: bool, name: str, value: Any, *, rule: str) -> None:
    """Raises `InputError` naming setting, value and rule, unless the condition holds."""
    if not condition:
        raise InputError(f"{name}={value} is not possible: {rule}")


def check_probabilities(config: Any, *names: str) -> None:
    """Each of these settings lies in [0, 1]."""
    for name in names:
        value = getattr(config, name)
        check(0 <= value <= 1, name, value, rule="a probability lies between 0 and 1")


def check_below_one(config: Any, *names: str) -> None:
    """Each of these settings lies in [0, 1)."""
    for name in names:
        value = getattr(config, name)
        check(0 <= value < 1, name, value, rule="it lies in [0, 1)")


def check_at_least(config: Any, bound: float, *names: str) -> None:
    """Each of these settings is at least the bound."""
    for name in names:
        value = getattr(config, name)
        check(value >= bound, name, value, rule=f"the smallest value is {bound}")


def check_at_most(config: Any, bound: float, *names: str) -> None:
    """Each of these settings is at most the bound."""
    for name in names:
        value = getattr(config, name)
        check(value <= bound, name, value, rule=f"the largest value is {bound}")


def check_choice(config: Any, name: str) -> None:
    """The setting is one of its choices."""
    choices = next(f for f in dataclasses.fields(config) if f.name == name).metadata["choices"]
    value = getattr(config, name)
    check(value in choices, name, value, rule=f"choose one of {', '.join(choices)}")


def check_known(what: str, name: str, known: Iterable[str]) -> None:
    """Raises `InputError` unless a name is one of those known."""
    if name not in known:
        raise InputError(f"{what}={name} is not known; choose one of {', '.join(known)}")


def leaf_fields(cls: type) -> dict[str, tuple[tuple[str, ...], dataclasses.Field]]:
    """Flag name -> (path of attribute names, field) for all fields of a configuration.

    Fields of configurations inside it are included.
    """
    hints = typing.get_type_hints(cls)
    leaves: dict[str, tuple[tuple[str, ...], dataclasses.Field]] = {}
    for field in dataclasses.fields(cls):
        inner = hints[field.name]
        if dataclasses.is_dataclass(inner):
            for name, (path, leaf) in leaf_fields(inner).items():  # type: ignore[arg-type]
                leaves[_prefix(field.name) + name] = ((field.name, *path), leaf)
        else:
            leaves[field.name] = ((field.name,), field)
    return leaves


def _prefix(group: str) -> str:
    """What flag names of a configuration's part begin with."""
    return "final_" if group == "final_training" else ""


def flatten(config: Any) -> dict[str, Any]:
    """All settings of a configuration by flag name."""
    return {name: _get(config, path) for name, (path, _) in leaf_fields(type(config)).items()}


def replace(config: Any, values: Mapping[str, Any]) -> Any:
    """A copy with the settings of these flag names replaced, checked as a whole.

    Raises `InputError`.
    """
    leaves = leaf_fields(type(config))
    groups: dict[str, dict[str, Any]] = {}
    own: dict[str, Any] = {}
    for name, value in values.items():
        if name not in leaves:
            raise unknown_setting(name, leaves)
        path, leaf = leaves[name]
        value = _of_type(name, value, type(leaf.default))
        if len(path) == 1:
            own[path[0]] = value
        else:
            groups.setdefault(path[0], {})[leaf.name] = value
    for group, inner in groups.items():
        try:
            own[group] = dataclasses.replace(getattr(config, group), **inner)
        except InputError as error:
            # It begins with the setting's name, which is the flag's but for this.
            raise InputError(f"{_prefix(group)}{error}") from None
    return dataclasses.replace(config, **own)


def unknown_setting(name: str, known: Iterable[str]) -> InputError:
    """The error of a setting that is not there, which names one that is written alike."""
    alike = difflib.get_close_matches(name, known, 1)
    remedy = f"is {alike[0]} meant?" if alike else "none here is written like it"
    return InputError(f"unknown setting {name!r}: {remedy}")


def _of_type(name: str, value: Any, kind: type) -> Any:
    """The value as a setting's own type. Raises `InputError` for one of another type."""
    rules = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    numbers_of = {int: numbers.Integral, float: numbers.Real}
    if isinstance(value, numbers_of.get(kind, kind)) and isinstance(value, bool) == (kind is bool):
        check(kind is not float or math.isfinite(value), name, value, rule="it is a finite number")
        return kind(value)
    raise InputError(f"{name}={value!r} is not possible: it is {rules[kind]}")


def _get(config: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        config = getattr(config, name)
    return config
