"""A folder of trainings belongs to one training with its settings."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Mapping
from typing import Any

from jaxevo.config import NetworkConfig, TrainingConfig
from jaxevo.config.presets import complete
from jaxevo.datasets import Images
from jaxevo.errors import InputError
from jaxevo.files import check_weights_place, read_json, write_json
from jaxevo.networks.baselines import Architecture, describe
from jaxevo.run.workdir import TRAINING, Workdir
from jaxevo.seeds import STREAMS


def claim_training(
    folder: pathlib.Path,
    model: Architecture,
    images: Images,
    *,
    network: NetworkConfig,
    training: TrainingConfig,
    **others: Any,
) -> None:
    """Claims the folder for the training of a model on these images, as `claim_folder` does."""
    used = {"network": dataclasses.asdict(network), "training": dataclasses.asdict(training)}
    claim_folder(folder, describe(model) | used | {"images": images.digest()} | others)


def check_no_search(folder: pathlib.Path) -> None:
    """Raises `InputError` for the folder of a search, whose files would be lost."""
    if Workdir(folder).config.exists():
        raise InputError(f"{folder} is the folder of a search; give another --workdir")


def claim_folder(folder: pathlib.Path, settings: Mapping[str, Any]) -> None:
    """Claims the folder for this training, or checks that it already belongs to it.

    Raises `InputError`.
    """
    if folder.is_symlink():
        raise InputError(f"{folder} is a link; give another --workdir")
    check_no_search(folder)
    check_weights_place(folder)
    folder.mkdir(parents=True, exist_ok=True)
    settings = {**settings, "streams": STREAMS}
    document = folder / TRAINING
    if not document.exists():
        if found := [*folder.glob("seed*"), *folder.glob("weights")]:
            raise InputError(
                f"{folder} has {found[0].name} and no {TRAINING}, so nothing tells of which "
                "training it is; give another --workdir"
            )
        write_json(document, settings)
    elif _completed(read_json(document)) != json.loads(json.dumps(settings)):
        raise InputError(
            f"{folder} holds another training (see {document}); give another --workdir"
        )


def _completed(stored: Any) -> Any:
    """What claimed a folder, with the network's newer settings where an earlier version did."""
    if not isinstance(stored, dict) or not isinstance(stored.get("network"), dict):
        return stored
    known = {field.name for field in dataclasses.fields(NetworkConfig)}
    newer = {name: value for name, value in complete({}).items() if name in known}
    return stored | {"network": newer | stored["network"]}
