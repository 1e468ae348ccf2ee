"""Each program of examples/ runs, with the smallest settings."""

from __future__ import annotations

import pytest
from conftest import REPOSITORY
from launching import launch

EXAMPLES = {
    "search_digits.py": (["--workdir={folder}/run"], "test accuracy"),
    "own_arrays.py": (["--epochs=1"], "unseen images are right"),
    "own_fitness.py": (["--generations=3"], "parameters"),
}


def test_every_example_is_run():
    assert {path.name for path in (REPOSITORY / "examples").glob("*.py")} == EXAMPLES.keys()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name, tmp_path, launch_environment):
    flags, expected = EXAMPLES[name]
    arguments = [flag.format(folder=tmp_path) for flag in flags]
    outcome = launch(
        f"examples/{name}", *arguments, environment=launch_environment, folder=tmp_path
    )
    assert outcome.returncode == 0, outcome.stderr
    assert expected in outcome.stdout
