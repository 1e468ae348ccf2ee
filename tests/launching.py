"""Programs started as a person starts them, but from a process that has their libraries already.

Importing JAX and what belongs to it takes seconds of each start. A server imports them once, and
each program is a fork of it, with arguments, folder, environment and streams of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile

from conftest import REPOSITORY

LIBRARIES = [
    *("jax", "flax.nnx", "optax", "orbax.checkpoint.v1", "matplotlib.figure", "sklearn.datasets"),
    *("jaxevo.api", "jaxevo.experiments.evaluation", "jaxevo.reports.charts"),
]
TIMEOUT = 600  # seconds


def launch(
    program: str,
    *arguments: str,
    environment: dict[str, str],
    folder: pathlib.Path | None = None,
    without_jax: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs a program to its end, without input.

    Args:
        program: A script's path from the repository's root, or a module.
        arguments: The command line after it.
        environment: All of the environment.
        folder: The working folder.
        without_jax: Lets every import of JAX fail.
    """
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(LIBRARIES)
    with tempfile.TemporaryDirectory() as streams:
        out, error = (pathlib.Path(streams) / name for name in ("out", "error"))
        place = (str(folder or pathlib.Path.cwd()), str(out), str(error))
        command = (program, *arguments)
        process = server.Process(target=_run, args=(command, environment, place, without_jax))
        process.start()
        process.join(TIMEOUT)
        assert process.exitcode is not None, f"{command} takes longer than {TIMEOUT} s"
        texts = (path.read_text("utf-8") for path in (out, error))
        return subprocess.CompletedProcess(command, process.exitcode, *texts)


def _run(
    command: tuple[str, ...],
    environment: dict[str, str],
    place: tuple[str, str, str],
    without_jax: bool,
) -> None:
    """The life of a program, in a process of its own."""
    folder, out, error = place
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in enumerate((os.devnull, out, error)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    if without_jax:
        # What has imported JAX is imported anew, if it is needed.
        for name in [name for name in sys.modules if name.split(".")[0] in ("jax", "jaxevo")]:
            del sys.modules[name]
        sys.modules["jax"] = None  # type: ignore[assignment]
    # As Python starts a script or a module.
    program, *arguments = command
    script = REPOSITORY / program
    sys.argv = [str(script), *arguments]
    if script.suffix == ".py":
        sys.path.insert(0, str(script.parent))
        runpy.run_path(str(script), run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
