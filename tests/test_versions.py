"""What a run was made with is recorded, and what has changed since then is said."""

from __future__ import annotations

import pathlib
import tomllib

from jaxevo.versions import changed_versions, versions


def test_versions_are_of_everything_that_matters():
    found = versions()
    assert {"python", "jaxevo", "jax", "flax", "numpy"} <= found.keys()
    assert "not installed" not in found.values()
    # What is installed is this version: else runs would be recorded as another one's.
    project = pathlib.Path(__file__).parents[1] / "pyproject.toml"
    assert found["jaxevo"] == tomllib.loads(project.read_text())["project"]["version"]


def test_versions_that_changed_since_a_run_began():
    now = versions()
    unchanged = ({"versions": now}, {"versions": None}, {})
    assert all(changed_versions(document) == [] for document in unchanged)
    began = now | {"jax": "0.1\n", "forgotten": "1"}
    assert changed_versions({"versions": began}) == [f"jax 0.1\\n, now {now['jax']}"]
