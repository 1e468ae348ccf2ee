"""The preset quick before a new run: when the machine is measured, and what a run records."""

from __future__ import annotations

import functools
import json
import math
import re
import types
from typing import Any

import numpy as np
import pytest

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import final_settings, preset
from jaxevo.datasets import open_dataset
from jaxevo.datasets.dataset import Dataset
from jaxevo.run import quick_preset
from jaxevo.run.changes import change_run
from jaxevo.run.pilot import Length
from jaxevo.run.prepare import make_task
from jaxevo.run.quick_preset import (
    fit_to_images,
    fit_to_machine,
    measured_rate,
    recorded_choice,
)
from jaxevo.run.sizing import CHOSEN, DataSize, Fitted, mean_multiply_adds
from jaxevo.training.fit import DivergedError


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


def lengthened(rate: float, *, seen: int = 0, **chosen: int) -> tuple[Fitted, list[str]]:
    """SVHN's sample, whose candidates need 4,000 images three times, at this rate."""
    config = replace(SearchConfig(), preset("quick", 20_000))
    size = DataSize(32, 32, 3, 20_000, 10)
    data = types.SimpleNamespace(labels=np.zeros(19_000, int), subset=np.arange(1300))
    evaluator: Any = types.SimpleNamespace(data=data, config=config)
    told = []

    def needed(evaluator: Any, *, seen: int, patience: float) -> Length:
        told.append((seen, patience))
        return Length(4000, 3, 8000, True)

    def pace(evaluator: Any) -> Any:
        return types.SimpleNamespace(image=mean_multiply_adds(config, size) / rate)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quick_preset, "needed_length", needed)
        patch.setattr(quick_preset, "measured_pace", pace)
        fitted = fit_to_images(
            Fitted(chosen, 0.0), config, evaluator, size=size, given={"warmup"}, time_limit=600
        )
    assert told == [(chosen.get("epochs", 3) * chosen.get("train_examples", 1300), 30)]
    return fitted, fitted.description.split("\n")


def test_longer_trainings_leave_fewer_candidates():
    # Where there is time, only the length changes, and what was given stays.
    longer = {"train_examples": 4000, "schedule": "cosine"}
    fitted, words = lengthened(3e10)
    assert fitted.settings == longer and len(words) == 1
    # Else there are fewer generations of narrower networks; the winner is trained as long.
    fitted, words = lengthened(4e9)
    assert fitted.settings.keys() - longer.keys() <= {"num_generations", "channels"}
    assert fitted.settings.keys() > longer.keys() and fitted.seconds <= 20 * 60
    assert words[1].startswith("preset quick is fitted to about ")
    # At last the length is halved, and a line says so.
    fitted, words = lengthened(3e8)
    assert fitted.settings["train_examples"] == 2000
    assert "; twice as long would be better, and takes too long here; " in words[0]
    # What was lowered before counts, but for the size of the images it is chosen anew.
    fitted, words = lengthened(3e10, epochs=1, train_examples=1000, image_size=24)
    assert fitted.settings == longer | {"image_size": 24}
    assert (
        words[1]
        == "images are made 24 pixels a side; with more time --image_size=32 would be better"
    )


def test_images_whose_trainings_fail_keep_the_length(monkeypatch):
    def failing(*_: Any, **__: Any) -> Length:
        raise DivergedError("the loss was nan")

    monkeypatch.setattr(quick_preset, "needed_length", failing)
    config = replace(SearchConfig(), preset("quick", 2000))
    data = types.SimpleNamespace(labels=np.zeros(1600, int), subset=np.arange(1600))
    evaluator: Any = types.SimpleNamespace(data=data, config=config)
    fitted = Fitted({"channels": 6}, 7.0)
    size = DataSize(32, 32, 3, 2000, 10)
    assert fit_to_images(fitted, config, evaluator, size=size, given=()) == fitted


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
    new = task(settings={"epochs": 3})  # whose length is therefore not tried
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


def test_images_that_are_hard_to_learn_get_longer_trainings(tmp_path):
    """Noise is learned image by image; a name of the length that is given leaves it as it is."""
    pixels = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), np.uint8)
    task = functools.partial(
        make_task, (pixels, np.arange(60) % 3), preset="quick", workdir=tmp_path
    )
    new = task()
    epochs = new.config.training.epochs
    schedule = {"schedule": "cosine", "warmup": 0.2}
    assert 3 < epochs <= 18 and new.fitted.settings == {"epochs": epochs} | schedule
    found = re.fullmatch(
        rf"candidates are trained for {epochs} epochs of all images instead of 3 of 48, at a rate "
        r"that rises first: two random networks needed about (\d+) images to halve the loss of "
        r"guessing; --epochs=3 leaves the usual length",
        new.fitted.description,
    )
    assert found and math.ceil(1.5 * int(found[1]) / 48) == epochs
    assert new.seconds["other"] > 0  # is part of the run's time, and so of its limit
    # The run goes on with what was chosen.
    about = {"preset": "quick", "device": "a device", "data": new.data.digest()}
    new.workdir.open(new.config, about | {"fitted": dict(new.fitted.settings)})
    again = task()
    assert again.config == new.config and again.fitted is None
    task = functools.partial(task, workdir=tmp_path / "other")
    assert task(settings={"warmup": 0.1}).config.training.warmup == 0.1
    for name, value in (("epochs", 3), ("train_examples", 30)):
        given = task(settings={name: value})
        assert (given.config.training.epochs, given.fitted.settings) == (3, {})


def test_a_run_goes_on_with_what_the_preset_had_when_it_began(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 1), np.uint8)
    task = functools.partial(
        make_task, (pixels, np.arange(60) % 3), preset="quick", workdir=tmp_path
    )
    new = task()
    # Before 0.4.0 small images were halved twice, and the winner was trained by the paper's recipe;
    # before 0.6.0 the strategy was the paper's; before 0.7.0 half as many candidates were trained
    # twice as long; before 0.11.0 no length was tried, which here makes them longer.
    before = {"num_normal_cells": 3, "strategy": "rea", "fitness": "accuracy", "racing": 0.0}
    before |= {"epochs": 6, "num_generations": 5, "schedule": "exponential", "warmup": 0.0}
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
    now |= {"epochs": new.config.training.epochs, "num_generations": 11}
    now |= {"schedule": "cosine", "warmup": 0.2}
    assert task(settings=now, strategy="guided", recipe="modern").config == new.config
