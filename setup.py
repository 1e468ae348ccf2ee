"""Builds the native kernels with the package; `pyproject.toml` has everything else.

Where they cannot be built the package is installed without them, and computes in JAX alone.
"""

from __future__ import annotations

import os
import pathlib

import compiler  # in `building`, which the build backend puts on the path
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_SOURCES = pathlib.Path("jaxevo/networks/kernels")


class BuildKernels(build_ext):
    """Makes one shared library for all instruction sets, which any version of Python can load."""

    def get_ext_filename(self, fullname: str) -> str:
        return f"{fullname.replace('.', os.sep)}.so"

    def build_extension(self, ext: Extension) -> None:
        if os.environ.get("JAXEVO_NATIVE") == "0":
            return
        try:
            compiler.build_kernels(_SOURCES, pathlib.Path(self.get_ext_fullpath(ext.name)))
        except (RuntimeError, OSError) as error:
            self.warn(f"no native kernels, so the universal engine will be used: {error}")


def _files(*endings: str) -> list[str]:
    return sorted(str(path) for ending in endings for path in _SOURCES.glob(f"*{ending}"))


setup(
    ext_modules=[
        Extension("jaxevo.networks._kernels", _files(".cc"), depends=_files(".h"), optional=True)
    ],
    cmdclass={"build_ext": BuildKernels},
)
