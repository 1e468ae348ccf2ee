"""Packages that only some uses need: the extras of `pyproject.toml`."""

from __future__ import annotations

import importlib.util

from jaxevo.errors import InputError


def need(package: str, extra: str) -> None:
    """Raises `InputError` if a package of an extra is not installed."""
    if importlib.util.find_spec(package) is None:
        raise InputError(
            f"this needs the package {package}, which is not installed: pip install {package}, or "
            f"in the clone pip install '.[{extra}]'"
        )
