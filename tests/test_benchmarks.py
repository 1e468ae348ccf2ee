"""Benchmarks can be started: what they import of the package is there, and help is shown."""

from __future__ import annotations

import subprocess
import sys

from conftest import REPOSITORY

FOLDER = REPOSITORY / "benchmarks"
NEEDS_TORCH = "torch_network.py"
# Each script is run under another name than `__main__`, so that it imports and does nothing else.
START_ALL = """
import pathlib, runpy, sys
sys.path.insert(0, sys.argv[1])
for script in sys.argv[2:]:
    print(script, "main" in runpy.run_path(f"{sys.argv[1]}/{script}", run_name="imported"))
"""


def test_every_script_can_be_started(launch_environment):
    scripts = sorted(path.name for path in FOLDER.glob("*.py") if path.name != NEEDS_TORCH)
    command = [sys.executable, "-c", START_ALL, str(FOLDER), *scripts]
    done = subprocess.run(command, env=launch_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    started = dict(line.split() for line in done.stdout.splitlines())
    assert list(started) == scripts
    parts = {name for name, has_main in started.items() if has_main == "False"}
    assert parts == {
        "curves.py",
        "measuring.py",
        "plain.py",
        "roofline.py",
    }  # which the others import


def test_every_script_is_in_the_table():
    text = (FOLDER / "README.md").read_text()
    parts = ("curves.py", "measuring.py", "plain.py", "roofline.py", NEEDS_TORCH)
    scripts = {path.name for path in FOLDER.glob("*.py")} - {*parts}
    assert {name for name in scripts if f"`{name}`" not in text} == set()
