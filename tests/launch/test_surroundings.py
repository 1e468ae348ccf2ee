"""Commands where the machine lacks something: a device, a home folder, a character, a reader."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
from builders_classifiers import fresh_classifier
from builders_data import make_images, make_labels, write_folder
from builders_runs import LAST, individual_record, table_records, write_run
from conftest import REPOSITORY

from jaxevo.__main__ import COMMANDS

# Runs the program as for a user whom the system does not know, as in many containers.
WITHOUT_HOME = """
import os, pwd, runpy, sys

def unknown(user):
    raise KeyError(user)

os.environ.pop("HOME", None)
os.environ.pop("XDG_CACHE_HOME", None)
pwd.getpwuid = pwd.getpwnam = unknown
sys.argv = ["jaxevo", *sys.argv[1:]]
runpy.run_module("jaxevo", run_name="__main__")
"""
# Prints what the path flags of a command make of `~/x`.
PATH_FLAGS = """
import importlib, json, sys
from jaxevo.commands.flags import PathParser
module = importlib.import_module(f"jaxevo.commands.{sys.argv[1]}")
names = [name for name in module.FLAGS if isinstance(module.FLAGS[name].parser, PathParser)]
module.FLAGS(["jaxevo", *(f"--{name}=~/x" for name in names)])
print(json.dumps({name: module.FLAGS[name].value for name in names}))
"""
SMALL = "--channels=2 --num_normal_cells=1 --max_nodes=2 --epochs=1 --final_epochs=1".split()


def python(
    environment: dict[str, str], *arguments: str, cwd: pathlib.Path
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment | {"PYTHONPATH": str(REPOSITORY)},
        cwd=cwd,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )


def refusal(done: subprocess.CompletedProcess[bytes]) -> str:
    """The one line of a command that was refused."""
    text = done.stderr.decode()
    assert done.returncode == 2 and text.startswith("error: ") and text.count("\n") == 1, text
    return text


# Devices


@pytest.mark.parametrize(
    "arguments",
    [
        "search --dry_run",
        "search --dry_run --preset=quick",
        "eval --model=small_cnn",
        "predict --weights=best scan.png",
        "compare",
        "reproduce --table=digits",
    ],
)
def test_a_device_that_is_not_here_is_named(arguments, tmp_path, launch_environment):
    environment = launch_environment | {"JAX_PLATFORMS": "cuda"}
    done = python(environment, "-m", "jaxevo", *arguments.split(), cwd=tmp_path)
    text = refusal(done)
    assert "JAX_PLATFORMS=cuda names no device that JAX finds here" in text
    assert "set it to cpu" in text and not any(tmp_path.iterdir())


def test_the_library_names_it_too(tmp_path, launch_environment):
    code = "import jaxevo\nfrom jaxevo.errors import InputError\n"
    code += "try: jaxevo.search(preset='quick')\nexcept InputError as error: print(error)"
    environment = launch_environment | {"JAX_PLATFORMS": "nothing"}
    done = python(environment, "-c", code, cwd=tmp_path)
    assert done.stdout.startswith(b"JAX_PLATFORMS=nothing names no device that JAX finds here (")


# The home folder


def test_without_a_home_folder_nothing_is_kept_there(tmp_path, launch_environment):
    command = ["predict", "--weights=none", "scan.png"]
    done = python(launch_environment, "-c", WITHOUT_HOME, *command, cwd=tmp_path)
    kept, refused = done.stderr.decode().splitlines()
    assert kept.startswith("no compilation cache (~/.cache: no home folder is known; set HOME")
    assert done.returncode == 2 and "none does not exist" in refused
    done = python(launch_environment, "-c", WITHOUT_HOME, "search", "--help", cwd=tmp_path)
    assert done.returncode == 0 and b"--compilation_cache_dir" in done.stdout


@pytest.mark.parametrize("place", ["--dataset=~/photos", "--dataset=mnist"])
def test_what_lies_in_the_home_folder_is_refused_without_one(place, tmp_path, launch_environment):
    environment = {k: v for k, v in launch_environment.items() if k != "JAXEVO_CACHE"}
    command = ["eval", "--genome=evoA.json", place]
    text = refusal(python(environment, "-c", WITHOUT_HOME, *command, cwd=tmp_path))
    assert "no home folder is known; set HOME, or give the path in full" in text


EVERYWHERE = {"workdir", "data_dir", "compilation_cache_dir"}


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("search", {"dataset", "profile"} | EVERYWHERE),
        ("compare", {"dataset"} | EVERYWHERE),
        ("reproduce", EVERYWHERE),
        ("predict", {"weights", "compilation_cache_dir"}),
        ("inspect", {"workdir", "genome", "export_best", "export_weights", "plot", "report"}),
        ("export", {"weights", "run", "genome", "output", "dataset"} | {*EVERYWHERE} - {"workdir"}),
        ("eval", {"genome", "weights", "dataset", "test_dataset", "save", "output"} | EVERYWHERE),
    ],
)
def test_a_flags_path_may_begin_with_the_home_folder(name, flags, tmp_path, launch_environment):
    assert name in COMMANDS
    environment = launch_environment | {"HOME": "/home/ada"}
    done = python(environment, "-c", PATH_FLAGS, name, cwd=tmp_path)
    assert json.loads(done.stdout) == dict.fromkeys(flags, "/home/ada/x"), done.stderr


def test_a_run_lies_in_the_home_folder(tmp_path, launch_environment):
    write_run(tmp_path / "run", table_records())
    environment = launch_environment | {"HOME": str(tmp_path)}
    command = ["-m", "jaxevo", "inspect", "--workdir=~/run", "--plot=~/of", "--export_best=~/b"]
    done = python(environment, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} >= {"run", "of", "b"}


# Characters

LATIN = {"PYTHONIOENCODING": "latin-1"}
PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A run, weights, and images, in folders whose names Latin-1 lacks."""
    folder = tmp_path_factory.mktemp("names")
    write_run(folder / "Ω", [*table_records(), individual_record(LAST)])
    fresh_classifier().save(folder / "weights")
    write_folder(folder / "łódź", make_images(40, (8, 8)), make_labels(40, 2), "01")
    return folder


@pytest.mark.parametrize(
    ("environment", "arguments", "words"),
    [
        (LATIN, ["inspect", "--workdir=Ω", "--id=3"], "POPULATION"),
        (PLAIN, ["inspect", "--workdir=Ω", "--id=3"], "POPULATION"),
        (LATIN, ["predict", "--weights=weights", "łódź/0/0000.png"], "0000.png"),
        (PLAIN, ["predict", "--weights=weights", "łódź/0/0000.png"], "0000.png"),
        (LATIN, ["eval", "--weights=weights", "--dataset=łódź"], "tested on"),
        (LATIN, ["search", "--dry_run", "--preset=quick", "--dataset=łódź", *SMALL], "estimate"),
        (LATIN, ["search", "--dataset=Ω/漢"], "does not exist"),
        (PLAIN, ["compare", "--dataset=Ω/漢"], "does not exist"),
    ],
)
def test_a_terminal_without_these_characters(
    environment, arguments, words, folder, launch_environment
):
    done = python(launch_environment | environment, "-m", "jaxevo", *arguments, cwd=folder)
    output = (done.stdout + done.stderr).decode("latin-1")
    assert "Traceback" not in output and words in output, output
    assert done.returncode == (2 if "exist" in words else 0)


# Readers


@pytest.mark.parametrize("arguments", ["search --help", "--help", "--version", "eval --help"])
def test_a_reader_that_takes_three_lines(arguments, tmp_path, launch_environment):
    command = f"{sys.executable} -m jaxevo {arguments} | head -3"
    environment = launch_environment | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}
    done = subprocess.run(["sh", "-c", command], env=environment, cwd=tmp_path, capture_output=True)
    assert done.stderr == b"" and done.stdout.count(b"\n") in (1, 3)


def test_a_reader_that_leaves_before_a_file_that_cannot_be_read(folder, launch_environment):
    images = ["łódź/0/0000.png"] * 300
    command = [sys.executable, "-m", "jaxevo", "predict", "--weights=weights", *images, "none.png"]
    (folder / "none.png").write_text("no image")
    process = subprocess.Popen(
        command,
        env=launch_environment | {"PYTHONPATH": str(REPOSITORY)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()
