"""Tasks of searches are refused before anything is written; `tests/test_api.py` has the rest."""

import pytest

from jaxevo.errors import InputError
from jaxevo.run.prepare import make_task


def test_a_folder_that_is_no_run_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "best.json").write_text("mine")
    with pytest.raises(InputError, match=r"has best\.json but no config\.json, so it is no run"):
        make_task("digits", workdir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["best.json"]
