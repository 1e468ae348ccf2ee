"""This machine: the name of its processor or GPU, and the folder of compiled programs."""

from __future__ import annotations

import contextlib
import os
import pathlib
import platform

import jax

from jaxevo.errors import InputError

MAX_COMPILED_BYTES = 2 << 30


def backend() -> str:
    """The platform on which JAX computes, such as `cpu`. Raises `InputError` where it has none."""
    try:
        return jax.default_backend()
    except (AssertionError, RuntimeError) as error:
        asked = jax.config.jax_platforms  # type: ignore[attr-defined]
        reason = f" ({error})" if str(error) else ""
        raise InputError(
            f"JAX_PLATFORMS={asked or ''} names no device that JAX finds here{reason}: unset it, "
            "set it to cpu, or install the JAX of that device (requirements-cuda.txt)"
        ) from None


def device_name() -> str:
    """Name of the processor or GPU that computes here, for the record."""
    device = jax.devices()[0]
    cpu = next(
        (line.split(":")[1].strip() for line in _cpu_info() if line.startswith("model name")),
        platform.machine(),
    )
    return f"{cpu}, {os.cpu_count()} cores" if device.platform == "cpu" else device.device_kind


def processor_flags() -> set[str]:
    """The extensions that the processor has, as Linux names them; empty elsewhere."""
    names = ("flags", "Features")  # of x86 and of ARM
    lines = (line.partition(":") for line in _cpu_info())
    found = (words for name, _, words in lines if name.strip() in names)
    return set(next(found, "").split())


def _cpu_info() -> list[str]:
    path = pathlib.Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def default_preset() -> str:
    """The preset that `auto` means here: quick on a CPU, else the paper's."""
    return "quick" if backend() == "cpu" else "paper"


def keep_compiled(folder: str) -> None:
    """Takes an earlier process's compiled programs from this folder, and keeps new ones there."""
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def compilation_cache() -> str | None:
    """The folder that `keep_compiled` was given, if it was."""
    return jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]


def drop_oldest_programs(folder: pathlib.Path, limit: int = MAX_COMPILED_BYTES) -> None:
    """Deletes the compiled programs longest unused until the others take `limit` bytes at most.

    JAX's own limit (`jax_compilation_cache_max_size`) keeps a second file for each program, and
    fails for good once a process was killed between writing the two.
    """
    programs = [
        (max(found.st_atime, found.st_mtime), found.st_size, path)
        for path, found in _programs(folder)
    ]
    total = sum(size for _, size, _ in programs)
    for _, size, path in sorted(programs):
        if total <= limit:
            break
        path.unlink(missing_ok=True)  # another process may do the same
        total -= size


def _programs(folder: pathlib.Path) -> list[tuple[pathlib.Path, os.stat_result]]:
    """The files that JAX has written."""
    found = []
    for path in folder.glob("*-cache"):
        with contextlib.suppress(FileNotFoundError):  # another process has deleted it
            if not path.is_symlink():
                found.append((path, path.stat()))
    return found
