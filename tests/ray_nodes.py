"""Nodes of a Ray cluster as processes of this machine, each of which may be killed, and drivers."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import psutil
from conftest import REPOSITORY

_STORE = str(100 << 20)  # bytes; what there is by default would be a third of the memory


class RayNodes:
    """A head without room for candidates, and nodes that join it.

    Args:
        environment: Of all processes; a token is put into it.
    """

    def __init__(self, environment: Mapping[str, str]):
        self.folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets need a short path
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        self.environment = {**environment, **token, "PYTHONPATH": str(REPOSITORY / "tests")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._begun: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}  # how
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        head = ["--head", f"--port={port}", "--num-cpus=0", f"--temp-dir={self.folder}"]
        head += ["--include-dashboard=false"]
        self._start("head", *head)
        self.until_joined("head")

    def until_joined(self, name: str) -> None:
        """Waits until a node says that it has joined."""
        while b"Ray runtime started" not in pathlib.Path(self.folder, f"{name}.log").read_bytes():
            self.check()
            time.sleep(0.05)

    def check(self) -> None:
        """No node has ended that was not killed.

        One that did not start within Ray's half minute, on a busy machine, is started again.
        """
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                said = pathlib.Path(self.folder, f"{name}.log").read_text()
                assert "timed out during startup" in said, said[-2000:]
                self._start(name, *self._begun[name][0], **self._begun[name][1])

    def _start(self, name: str, *flags: str, **environment: str) -> None:
        self._begun[name] = (flags, environment)
        program = [str(pathlib.Path(sys.executable).parent / "ray"), "start", "--block"]
        size = [f"--node-name={name}", f"--object-store-memory={_STORE}", "--disable-usage-stats"]
        with pathlib.Path(self.folder, f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [*program, *flags, *size],
                env=self.environment | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def join(self, name: str, **environment: str) -> None:
        """Begins a node with room for one candidate; it joins in a few seconds."""
        self._start(name, f"--address={self.address}", "--num-cpus=1", **environment)

    def _raylets(self, name: str) -> list[psutil.Process]:
        started = psutil.Process(self.processes[name].pid).children(recursive=True)
        return [process for process in started if process.name() == "raylet"]

    def kill(self, name: str) -> None:
        """Kills a node that has joined, as if its machine were gone: its raylet, and the rest."""
        (raylet,) = self._raylets(name)
        raylet.kill()
        self._end(name)

    def _end(self, name: str) -> None:
        process = self.processes.pop(name)
        with contextlib.suppress(psutil.NoSuchProcess):
            whole = psutil.Process(process.pid).children(recursive=True)
            for each in whole:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
        process.kill()
        process.wait()

    def close(self) -> None:
        """Ends all nodes, the head last."""
        for name in [*(name for name in self.processes if name != "head"), "head"]:
            self._end(name)
        shutil.rmtree(self.folder, ignore_errors=True)

    def drive(self, path: pathlib.Path, attempts: pathlib.Path, **plan: Any) -> Driver:
        """Begins a search by the table on these nodes."""
        attempts.mkdir(exist_ok=True)
        return Driver(self, path, cluster=self.address, attempts=str(attempts), **plan)


class Driver:
    """A process of `cluster_driver.py`, with what it says."""

    def __init__(self, nodes: RayNodes, path: pathlib.Path, **plan: Any):
        self.nodes, self.path = nodes, path
        path.mkdir(exist_ok=True)
        self._output = path / "output"
        script = str(REPOSITORY / "tests" / "cluster_driver.py")
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, script, str(path), json.dumps(plan)],
                env=nodes.environment,
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def lines(self) -> int:
        """Lines of the history."""
        history = self.path / "run" / "history.jsonl"
        return history.read_bytes().count(b"\n") if history.exists() else 0

    def until(self, lines: int = 0, said: str = "") -> None:
        """Waits until the history has so many lines, and these words were said."""
        while self.lines < lines or said not in self.output:
            assert self.process.poll() is None, self.output
            self.nodes.check()
            time.sleep(0.02)

    def end(self) -> str:
        """Waits for its end; returns the winner, as it is told in the last line."""
        assert self.process.wait() == 0, self.output
        return self.output.splitlines()[-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def memory(self) -> int:
        """Resident MiB."""
        return psutil.Process(self.process.pid).memory_info().rss >> 20


def environment_of(launch_environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of nodes, without what would reach another cluster."""
    kept = {name: value for name, value in launch_environment.items() if name[:4] != "RAY_"}
    return kept | {"TMPDIR": os.environ.get("TMPDIR", "/tmp")}
