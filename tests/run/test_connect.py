"""A cluster is joined only where that is safe, and its absence is told in a sentence."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jaxevo.errors import InputError
from jaxevo.run.connect import check_token

WITHOUT_RAY = """
import importlib.util
import sys

known = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "ray" else known(name)
from jaxevo.commands import search

search.start(["search", "--preset=quick", "--cluster=local", "--workdir=" + sys.argv[1]])
"""


def test_without_the_extra_a_sentence_names_it(tmp_path, launch_environment):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAY, str(tmp_path / "run")],
        env=launch_environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
    assert "needs the package ray" in done.stderr and "pip install '.[ray]'" in done.stderr


@pytest.mark.parametrize("mode", [None, "disabled"])
def test_nothing_beyond_this_machine_without_a_token(monkeypatch, mode):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    with pytest.raises(InputError, match="10.0.0.1 is not this machine.*RAY_AUTH_MODE=token"):
        check_token("10.0.0.1")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    check_token("10.0.0.1")
