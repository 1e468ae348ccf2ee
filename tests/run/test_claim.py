"""Folders of evaluations. (`tests/launch/test_eval.py` has the trainings.)"""

from __future__ import annotations

import dataclasses
import json
import pathlib

import pytest

from jaxevo.config import NetworkConfig
from jaxevo.errors import InputError
from jaxevo.run.claim import claim_folder


def settings(**network: object) -> dict[str, object]:
    return {"train_images": 3, "network": dataclasses.asdict(NetworkConfig()) | network}


def test_a_training_of_an_earlier_version_goes_on(tmp_path: pathlib.Path):
    claim_folder(tmp_path / "own", settings())
    # Version 0.8 did not know this setting.
    document = tmp_path / "own" / "training.json"
    stored = json.loads(document.read_text())
    del stored["network"]["output_relu"]
    document.write_text(json.dumps(stored))
    claim_folder(tmp_path / "own", settings())
    for other in ({"output_relu": True}, {"channels": 3}):
        with pytest.raises(InputError, match="own holds another training"):
            claim_folder(tmp_path / "own", settings(**other))


@pytest.mark.parametrize("name", ["seed0", "weights"])
def test_what_an_unknown_training_or_a_person_left_is_refused(tmp_path: pathlib.Path, name: str):
    """`jaxevo.train` of before version 0.11 left checkpoints alone."""
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=f"has {name} and no training.json, so nothing tells"):
        claim_folder(tmp_path, settings())
    assert not (tmp_path / "training.json").exists()


@pytest.mark.parametrize("text", ["[]", "{}", '{"network": 1}'])
def test_another_document_is_another_training(tmp_path: pathlib.Path, text: str):
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(InputError, match="holds another training"):
        claim_folder(tmp_path, settings())
