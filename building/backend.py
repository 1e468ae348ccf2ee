"""The build backend: setuptools, and where there is a compiler jaxlib, for its headers.

`JAXEVO_COMPILER=zig` adds the package `ziglang`, a C++ compiler that needs nothing on the machine
but a download of 100 MB and minutes. `JAXEVO_NATIVE=0` builds no kernels.
"""

from __future__ import annotations

import os

import compiler
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

_JAXLIB = "jaxlib>=0.10,<0.11"


def _for_kernels() -> list[str]:
    if os.environ.get("JAXEVO_NATIVE") == "0":
        return []
    if os.environ.get("JAXEVO_COMPILER") == "zig":
        return [_JAXLIB, "ziglang"]
    return [_JAXLIB] if compiler.find_compiler() else []


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
    """What building a wheel needs beside setuptools."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_for_kernels()]


def get_requires_for_build_editable(config_settings=None) -> list[str]:
    """What an editable installation needs beside setuptools."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_for_kernels()]
