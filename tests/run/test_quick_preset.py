"""The preset quick before a new run: when the machine is measured, and what a run records."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import final_settings, preset
from jaxevo.datasets import open_dataset
from jaxevo.datasets.dataset import Dataset
from jaxevo.run.changes import change_run
from jaxevo.run.prepare import make_task
from jaxevo.run.quick_preset import fit_to_machine, measured_rate, recorded_choice
from jaxevo.run.sizing import CHOSEN, Fitted


def data_of(side: int, number: int, channels: int = 3) -> Dataset:
    images = np.zeros((number, side, side, channels), np.uint8)
    images[:, 0] = 255
    return open_dataset((images, np.arange(number) % 10), None)


def fit(data: Dataset, rate: float | None, **given: Any) -> Fitted:
    """The preset with these settings, fitted to a machine of this rate; None: unmeasured."""

    def measure(config: SearchConfig) -> float:
        assert rate is not None
        return rate

    config = replace(SearchConfig(), preset("quick", len(data.train)) | given)
    return fit_to_machine(config, data, given, measure=measure)


def test_small_data_are_not_measured_and_keep_the_preset():
    assert fit(data_of(8, 1437, channels=1), None).settings == {}
    # A short search is not measured either, however large the images.
    short = {"num_generations": 0, "epochs": 1, "final_epochs": 1, "channels": 2}
    assert fit(data_of(64, 300), None, **short).settings == {}


@pytest.mark.parametrize(("rate", "side"), [(1e9, 32), (1e11, 0)])
def test_photos_are_fitted_to_the_rate_of_the_machine(rate, side):
    fitted = fit(data_of(64, 2000), rate)
    assert fitted.settings.get("image_size", 0) == side
    assert bool(fitted.description) == bool(side)


def test_given_settings_stay_and_count():
    data = data_of(64, 2000)
    fitted = fit(data, 1e9, image_size=48, channels=8)
    assert fitted.settings.keys().isdisjoint({"image_size", "channels"}) and fitted.settings
    # With fewer candidates less is lowered, and what is told is of what was given.
    fewer = fit(data, 1e9, num_generations=1)
    assert fewer.settings.keys() < fit(data, 1e9).settings.keys() - {"num_generations"}
    # Where all is given, nothing is chosen and nothing is said.
    everything = dict.fromkeys(CHOSEN, 30)
    assert fit(data, 1e9, **everything).settings == {}
    assert fit(data, 1e9, **everything).description == ""


@pytest.mark.slow
def test_the_rate_is_of_the_images_that_are_timed_whatever_size_is_given():
    config = replace(SearchConfig(), preset("quick", 2000) | {"max_nodes": 2, "channels": 2})
    rates = [measured_rate(replace(config, {"image_size": side})) for side in (0, 160)]
    assert 0.1 < rates[0] / rates[1] < 10  # of the same work; a hundred times as many pixels
    # Widths that the search may have, and its bounds, are not those of the networks timed.
    genes = {"channels": 16, "min_channels": 12, "min_normal_cells": 1, "max_parameters": 100}
    assert 0.1 < rates[0] / measured_rate(replace(config, genes)) < 10


def test_a_machine_that_cannot_be_measured_keeps_the_preset():
    def failing(config: SearchConfig) -> float:
        raise MemoryError("no room")

    config = replace(SearchConfig(), preset("quick", 2000))
    assert fit_to_machine(config, data_of(64, 2000), (), measure=failing).settings == {}


def test_what_a_run_recorded():
    assert recorded_choice({"fitted": {"channels": 6, "image_size": 32}}) == {
        "channels": 6,
        "image_size": 32,
    }
    # A run of an earlier version chose nothing, and a damaged choice is none.
    for document in ({}, {"fitted": []}, {"fitted": {"channels": "x", "seed": 3}}):
        assert recorded_choice(document) == {}


def test_a_run_goes_on_with_what_it_began_with_on_any_machine(tmp_path):
    """Small images would not be fitted: what `config.json` has decides, also after a change."""
    pixels = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), np.uint8)
    task = functools.partial(
        make_task, (pixels, np.arange(60) % 3), preset="quick", workdir=tmp_path
    )
    new = task()
    assert (new.config.network.channels, new.fitted.settings) == (8, {})
    chosen = {"channels": 6, "num_generations": 2}
    about = {"preset": "quick", "device": "a device", "data": new.data.digest(), "fitted": chosen}
    new.workdir.open(replace(new.config, chosen), about)
    again = task()
    assert again.config == replace(new.config, chosen) and again.fitted is None
    new.workdir.open(again.config, {"data": new.data.digest()})
    # A setting that is given goes over it, and is refused as in any run.
    assert task(settings={"channels": 8}).config.network.channels == 8
    # A run that goes on beyond its end keeps the choice beside the change.
    longer = task(continues=True, settings={"num_generations": 4})
    assert longer.config == replace(again.config, {"num_generations": 4})
    change_run(longer.workdir, longer.config, {"data": new.data.digest()}, time_limit=None)
    document = json.loads(new.workdir.config.read_text())
    assert document["fitted"] == chosen and document["changes"][0]["settings"] == {
        "num_generations": 4
    }
    assert task(continues=True).config == longer.config


def test_a_run_goes_on_with_what_the_preset_had_when_it_began(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), np.uint8)
    task = functools.partial(
        make_task, (pixels, np.arange(60) % 3), preset="quick", workdir=tmp_path
    )
    new = task()
    # Before 0.4.0 small images were halved twice, and the winner was trained by the paper's recipe;
    # before 0.6.0 the strategy was the paper's; before 0.7.0
    # half as many candidates were trained twice as long.
    before = {"num_normal_cells": 3, "strategy": "rea", "fitness": "accuracy", "racing": 0.0}
    before |= {"epochs": 6, "num_generations": 5}
    earlier = replace(new.config, before | final_settings("paper"))
    assert earlier != new.config
    about = {"preset": "quick", "device": "a device", "data": new.data.digest()}
    new.workdir.open(earlier, about)
    assert task().config == earlier
    # A strategy that is named when the run is continued leaves its trainings no race, too.
    continued = task(continues=True, strategy="rea", settings={"num_generations": 6})
    assert continued.config == replace(earlier, {"num_generations": 6})
    # What is named goes over it, and is refused as in any run.
    now = {"num_normal_cells": 2, "fitness": "speed", "racing": 0.07}
    now |= {"epochs": 3, "num_generations": 11}
    assert task(settings=now, strategy="guided", recipe="modern").config == new.config
