"""Versions of Python and of the packages that decide a run's results."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping
from typing import Any

from jaxevo.errors import printable

_PACKAGES = (
    "jaxevo",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "orbax-checkpoint",
    "tensorflow-datasets",
    "numpy",
)


def versions() -> dict[str, str]:
    """The versions here, by name."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def changed_versions(document: Mapping[str, Any]) -> list[str]:
    """Versions other than here with which a run was begun, from its document's `versions`."""
    began = document.get("versions")
    if not isinstance(began, dict):
        return []
    now = versions()
    return [
        f"{name} {printable(str(began[name]))}, now {now[name]}"
        for name in now
        if began.get(name, now[name]) != now[name]
    ]
