"""The command from outside: each format, and one line for what cannot be."""

import os
import pathlib

import pytest
from builders_classifiers import fresh_classifier
from builders_runs import table_records, write_run
from launching import launch

import jaxevo
from jaxevo.search_space import genome_files


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("exports")
    write_run(folder / "run", table_records())
    write_run(folder / "empty", [])
    fresh_classifier().save(folder / "best")
    (folder / "there").write_text("")
    return folder


def export(folder: pathlib.Path, *arguments: str) -> tuple[int, str, str]:
    done = launch("jaxevo", "export", *arguments, environment=dict(os.environ), folder=folder)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("source", "format", "needed"),
    [
        ("run=run", "csv", ""),
        ("run=run", "parquet", ""),
        ("run=run", "optuna", "optuna"),
        ("run=run", "tensorboard", "tensorboardX"),
        ("genome=evoA.json", "darts", ""),
        ("weights=best", "zip", ""),
    ],
)
def test_each_format(folder, source: str, format: str, needed: str):
    if needed:
        pytest.importorskip(needed, reason="the extra `export` is not installed")
    done = export(folder, f"--{source}", f"--format={format}", f"--output=of_{format}")
    assert done == (0, f"wrote of_{format}\n", "")
    assert (folder / f"of_{format}").exists()


def test_what_is_written_can_be_read(folder):
    assert export(folder, "--genome=evoB", "--format=darts", "--output=evoB.txt")[0] == 0
    expected = genome_files.find("evoB.json")[0]
    assert genome_files.find(str(folder / "evoB.txt"))[0] == expected
    assert export(folder, "--weights=best", "--format=zip", "--output=best.zip")[0] == 0
    assert jaxevo.load(folder / "best.zip").class_names == tuple("0123456789")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--format=csv --output=o", "give one of --weights=..., --run=..., --genome=..."),
        ("--run=run --genome=evoA --format=csv --output=o", "give one of --weights=..., --run"),
        ("--run=run --output=o", "with --run give --format=csv|parquet|optuna|tensorboard"),
        ("--run=run --format=darts --output=o", "with --run give --format=csv|parquet|optuna"),
        ("--run=run --format=csv", "give --output=..., the name of a new file"),
        ("--run=run --format=csv --output=there", "--output=there exists already"),
        ("--run=run --format=csv --output=no/o", "--output=no/o: its folder does not exist"),
        ("--run=run --format=csv --output=new/", "--output=new/ is a folder; give the name of a"),
        ("--run=empty --format=csv --output=o", "empty has no candidate yet"),
        ("--run=nothing --format=csv --output=o", "nothing/config.json does not exist"),
        ("--weights=run --format=zip --output=o", "run holds no checkpoint of this program"),
        ("--genome=none --format=darts --output=o", "genome 'none' is neither a file"),
    ],
)
def test_what_cannot_be_is_one_line(folder, arguments: str, problem: str):
    code, out, err = export(folder, *arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert problem in err
    assert not (folder / "o").exists()
