"""The preset quick before a new run: when the machine is measured, and what a run keeps."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np
import pytest

from jaxevo.config import SearchConfig, flatten, replace
from jaxevo.config.presets import preset
from jaxevo.datasets import open_dataset
from jaxevo.datasets.dataset import Dataset
from jaxevo.run.fitted import Fitted, fit_to_machine
from jaxevo.run.workdir import Workdir


def data_of(side: int, number: int, channels: int = 3) -> Dataset:
    images = np.zeros((number, side, side, channels), np.uint8)
    images[:, 0] = 255
    return open_dataset((images, np.arange(number) % 10), None)


def fit(data: Dataset, path: pathlib.Path, rate: float | None, **given: Any) -> Fitted:
    """The preset's settings and those given, fitted to a machine of this rate; None: unmeasured."""

    def measure(config: SearchConfig) -> float:
        assert rate is not None
        return rate

    config = replace(SearchConfig(), preset("quick", len(data.train)) | given)
    return fit_to_machine(config, data, Workdir(path), given=given, measure=measure)


def test_small_data_are_not_measured_and_keep_the_preset(tmp_path):
    data = data_of(8, 1437, channels=1)
    fitted = fit(data, tmp_path, None)
    assert fitted == Fitted(replace(SearchConfig(), preset("quick", len(data.train))))
    # A short search is not measured either, however large the images.
    short = {"num_generations": 0, "epochs": 1, "final_epochs": 1, "channels": 2}
    assert fit(data_of(64, 300), tmp_path, None, **short).chosen == {}


@pytest.mark.parametrize(("rate", "side"), [(1e9, 32), (1e11, 0)])
def test_photos_are_fitted_to_the_rate_of_the_machine(tmp_path, rate, side):
    fitted = fit(data_of(64, 2000), tmp_path, rate)
    assert fitted.config.data.image_size == fitted.chosen.get("image_size", 0) == side
    assert bool(fitted.description) == bool(side)
    settings = flatten(fitted.config)
    assert all(settings[name] == value for name, value in fitted.chosen.items())


def test_given_settings_stay(tmp_path):
    data = data_of(64, 2000)
    fitted = fit(data, tmp_path, 1e9, image_size=48, channels=8)
    assert fitted.config.data.image_size == 48 and fitted.config.network.channels == 8
    assert fitted.chosen.keys().isdisjoint({"image_size", "channels"}) and fitted.chosen


def test_a_run_goes_on_with_what_it_began_with_on_any_machine(tmp_path):
    data = data_of(64, 2000)
    began = fit(data, tmp_path, 1e9)
    about = {"preset": "quick", "device": "test", "fitted": dict(began.chosen)}
    Workdir(tmp_path).open(began.config, about)
    again = fit(data, tmp_path, None)
    assert (again.config, again.chosen, again.description) == (began.config, began.chosen, "")
    # A run of an earlier version chose nothing, and a damaged choice is none.
    document = json.loads(Workdir(tmp_path).config.read_text())
    for recorded in (None, [], {"channels": "x", "seed": 3}):
        Workdir(tmp_path).config.write_text(json.dumps(document | {"fitted": recorded}))
        assert fit(data, tmp_path, None).chosen == {}
