"""Finds a C++ compiler and builds the native kernels' library with it.

The compiler is `CXX` where that is set, else the first of c++, g++ and clang++, else that of the
package `ziglang` where it is installed. Other compilers lack the vector extensions that the kernels
are written with.
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

# A switch that lacks an operation would compute nothing for it without a word: an error.
_FLAGS = "-std=c++17 -O3 -fPIC -fvisibility=hidden -pthread -Wno-psabi -Werror=switch".split()
# Products and sums may become one instruction; errno and traps of arithmetic are not read.
_ARITHMETIC = "-ffp-contract=fast -fno-math-errno -fno-trapping-math".split()
_TIMEOUT = 600  # seconds that one file may take


class Build(NamedTuple):
    """The kernels for one instruction set."""

    name: str
    lanes: int  # floats of a vector
    flags: tuple[str, ...]

    def definitions(self) -> list[str]:
        """How `cell.cc` is told which build it is."""
        return [f"-DJAXEVO_BUILD={self.name}", f"-DJAXEVO_LANES={self.lanes}"]


_GENERIC = Build("generic", 4, ())
# `select.cc` asks the processor for the same features.
_X86 = (
    Build("avx2", 8, ("-mavx2", "-mfma")),
    Build(
        "avx512",
        16,
        ("-mavx2", "-mfma", "-mprefer-vector-width=512")
        + tuple(f"-mavx512{part}" for part in ("f", "vl", "dq", "bw")),
    ),
)


def find_compiler() -> list[str] | None:
    """The command of a C++ compiler, or None."""
    if chosen := os.environ.get("CXX"):
        command = shlex.split(chosen)
        return command if shutil.which(command[0]) else None
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "c++"]
    return None


def xla_headers() -> pathlib.Path:
    """The folder of the headers of XLA's custom calls, which jaxlib brings."""
    spec = importlib.util.find_spec("jaxlib")
    if spec is None or spec.origin is None:
        raise RuntimeError("jaxlib is not installed")
    return pathlib.Path(spec.origin).parent / "include"


def builds() -> tuple[list[Build], list[str]]:
    """The builds for this machine's architecture, and how `select.cc` is told of them."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return [_GENERIC, *_X86], ["-DJAXEVO_X86"]
    return [_GENERIC], []


def build_kernels(sources: pathlib.Path, library: pathlib.Path) -> None:
    """Compiles `sources` into `library`. Raises `RuntimeError` or `OSError` where it fails."""
    compiler = find_compiler()
    if compiler is None:
        raise RuntimeError("there is no C++ compiler")
    each_build, definitions = builds()
    commands = {
        "select": ["select.cc", *definitions],
        "handlers": ["handlers.cc", "-isystem", str(xla_headers())],
    }
    for build in each_build:
        commands[build.name] = ["cell.cc", *_ARITHMETIC, *build.flags, *build.definitions()]
    with tempfile.TemporaryDirectory() as folder:
        objects = [str(pathlib.Path(folder) / f"{name}.o") for name in commands]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            compiling = [
                threads.submit(_run, [*compiler, *_FLAGS, "-c", *command, "-o", made], sources)
                for command, made in zip(commands.values(), objects, strict=True)
            ]
            for each in compiling:
                each.result()
        library.parent.mkdir(parents=True, exist_ok=True)
        _run([*compiler, "-shared", "-pthread", "-o", str(library.absolute()), *objects], sources)


def _run(command: list[str], folder: pathlib.Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{shlex.join(command)} took more than {_TIMEOUT} seconds") from error
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")
