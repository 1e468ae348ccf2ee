"""`python -m jaxevo` and its commands' help: what is listed, what is refused, and a reader that
leaves early.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest
from launching import launch

import jaxevo
from jaxevo.__main__ import COMMANDS

# Commands whose module is there.
PRESENT = [name for name in COMMANDS if importlib.util.find_spec(f"jaxevo.commands.{name}")]
# A flag that each has.
A_FLAG = {
    **{"search": "--num_generations", "eval": "--test_dataset", "inspect": "--export_best"},
    **{"compare": "--strategies", "reproduce": "--budget", "predict": "--weights"},
    **{"watch": "--terminal", "export": "--output"},
}


def program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return launch("jaxevo", *arguments, environment=dict(os.environ))


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",), ("help",)])
def test_without_a_command_it_lists_them(arguments: tuple[str, ...]):
    done = program(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[0] == "usage: jaxevo COMMAND --flag=value ..."
    for name, text in COMMANDS.items():
        assert f"{name} {text}" in lines


def test_its_version():
    done = program("--version")
    assert (done.returncode, done.stdout) == (0, f"jaxevo {jaxevo.__version__}\n")


def test_an_unknown_command_is_refused_with_those_that_are_known():
    done = program("serch", "--dataset=digits")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: 'serch' is no command; usage: jaxevo COMMAND")
    assert all(name in done.stderr for name in COMMANDS)


@pytest.mark.parametrize("name", PRESENT)
def test_help_of_a_command_is_its_docstring_and_its_flags(name: str):
    done = program(name, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert A_FLAG[name] in done.stdout
    # Not imported, as each command's module defines its flags for a process of its own.
    spec = importlib.util.find_spec(f"jaxevo.commands.{name}")
    assert spec is not None and spec.origin is not None
    words = ast.get_docstring(ast.parse(pathlib.Path(spec.origin).read_text()), clean=False)
    assert words is not None and done.stdout.startswith(words.strip())
    # Its examples can be copied, each from a line of its own.
    examples = [line for line in words.splitlines() if "python " in line]
    assert examples
    program_or_launcher = r" *python (-m jaxevo \w+|launch/\w+\.py)( .+)?"
    assert all(re.fullmatch(program_or_launcher, line) for line in examples)
    assert "\nflags:\n" in done.stdout


@pytest.mark.parametrize("name", PRESENT)
def test_a_wrong_flag_is_refused_in_one_line(name: str):
    done = program(name, "--no_such_flag=1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert "no_such_flag" in done.stderr


@pytest.mark.parametrize("arguments", ["search --help", "inspect --genome=evoA.json"])
def test_a_reader_that_leaves_early_causes_no_traceback(arguments: str):
    command = [sys.executable, "-m", "jaxevo", *arguments.split()]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()  # as `head -1` does once it has its line
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() in (0, 1)  # 1 is rich's
