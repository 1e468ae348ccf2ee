"""The preset quick fitted to this machine and to the images, before a new run begins.

A run's folder keeps what was chosen, so the run goes on with it on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from jaxevo.config import LAYOUT_BOUNDS, DataConfig, SearchConfig, flatten, replace
from jaxevo.datasets import Images
from jaxevo.datasets.dataset import Dataset, ReadOptions, make_form
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.estimate import measured_pace
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.pilot import PATIENCE, SCHEDULE, Length, length_of, needed_length
from jaxevo.run.sizing import (
    CHOSEN,
    ENOUGH,
    SLOWEST,
    DataSize,
    Fitted,
    choose_settings,
    mean_multiply_adds,
    search_seconds,
)
from jaxevo.training.data import TrainingData

# The machine's rate is measured on random images, with the preset's number of feature maps.
_ANY_SIZE = dict.fromkeys((*LAYOUT_BOUNDS, "max_parameters", "max_multiply_adds"), 0)
LENGTH = frozenset({"epochs", "train_examples"})  # settings of a candidate's training
_SIDE, _CHANNELS, _IMAGES, _CLASSES, _WIDTH = 16, 3, 448, 10, 8


def measured_rate(config: SearchConfig) -> float:
    """Multiply-adds of training that this machine does in a second, with the engine of a search.

    Raises whatever a training may raise.
    """
    config = replace(config, {"channels": _WIDTH, "image_size": 0} | _ANY_SIZE)
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (_IMAGES, _SIDE, _SIDE, _CHANNELS), np.uint8)
    images = Images(pixels, np.arange(_IMAGES, dtype=np.int32) % _CLASSES)
    builder = NetworkBuilder.for_images(config.network, pixels, _CLASSES)
    data = TrainingData.of(images)
    pace = measured_pace(Evaluator(config, builder, data, validation=images))
    size = DataSize(_SIDE, _SIDE, _CHANNELS, _IMAGES, _CLASSES)
    return mean_multiply_adds(config, size) / pace.image


def fit_to_machine(
    config: SearchConfig,
    data: Dataset,
    given: Collection[str],
    *,
    measure: Callable[[SearchConfig], float] = measured_rate,
) -> Fitted:
    """Chooses settings of the preset quick for this machine, unless the search is short enough.

    Args:
        config: The configuration of the preset, with the settings that a person gave.
        data: What is searched on.
        given: Names of the settings that a person gave, which stay.
        measure: Gives the machine's rate in multiply-adds a second.

    Raises `InputError`.
    """
    # Where the search is short even on a slow machine, this one's rate need not be measured.
    size = size_of(config.data, data)
    at_most = search_seconds(config, size, SLOWEST)
    if at_most <= ENOUGH:
        return Fitted({}, at_most)
    try:
        rate = measure(config)
    except (ArithmeticError, MemoryError, RuntimeError):  # the estimate of the search says why
        return Fitted({}, at_most)
    return choose_settings(config, size, rate, given=given)


def fit_to_images(
    fitted: Fitted,
    config: SearchConfig,
    evaluator: Evaluator,
    *,
    size: DataSize,
    given: Collection[str],
    time_limit: float | None = None,
) -> Fitted:
    """Trains candidates longer where the preset's length would tell nothing of them.

    Args:
        fitted: What `fit_to_machine` chose.
        config: The configuration of the preset, with the settings that a person gave.
        evaluator: Trains by this configuration on the images, in the size that was chosen.
        size: The data.
        given: Names of the settings that a person gave, which stay.
        time_limit: Seconds of the search; trying takes a tenth of them at most.
    """
    patience = PATIENCE if time_limit is None else min(PATIENCE, time_limit / 20)
    available, usual = len(evaluator.data.labels), flatten(config)
    now = usual | dict(fitted.settings)
    try:
        seen = now["epochs"] * (now["train_examples"] or available)
        length = needed_length(evaluator, seen=seen, patience=patience)
        if length is None:
            return fitted
        rate = mean_multiply_adds(evaluator.config, size) / measured_pace(evaluator).image
    except (ArithmeticError, MemoryError, RuntimeError):  # the length stays that of the preset
        return fitted
    # Fewer candidates that are trained long enough are better than many that are not. A winner that
    # is trained shortly, or half of the length, is the last resort.
    settings = {name: value for name, value in SCHEDULE.items() if name not in given}
    settings |= {name: fitted.settings[name] for name in {"image_size"} & fitted.settings.keys()}
    wanted = length.epochs * (length.train_examples or available)
    half = length_of(
        wanted // 2,
        config.training.epochs,
        available,
        tried=length.tried,
        learned=length.learned,
    )
    for each, stay in ((length, {"final_epochs"}), (length, set()), (half, set())):
        chosen = settings | {name: getattr(each, name) for name in sorted(LENGTH)}
        fixed = {*given, *LENGTH, "image_size", *stay}
        shorter = choose_settings(replace(config, chosen), size, rate, given=fixed)
        if shorter.seconds <= ENOUGH:
            break
    words = [_describe_length(each, length, config=config, examples=len(evaluator.data.subset))]
    if "image_size" in fitted.settings:
        words.append(
            f"images are made {fitted.settings['image_size']} pixels a side; with more time "
            f"--image_size={max(size.height, size.width)} would be better"
        )
    chosen |= dict(shorter.settings)
    changed = {name: value for name, value in chosen.items() if value != usual[name]}
    return Fitted(changed, shorter.seconds, "\n".join(filter(None, [*words, shorter.description])))


def _describe_length(each: Length, needed: Length, *, config: SearchConfig, examples: int) -> str:
    """The length that was taken in a sentence; `examples` images were an epoch of the preset."""
    learned = (
        f"two random networks needed about {needed.tried:,} images to halve the loss of guessing"
        if needed.learned
        else f"two random networks had not both halved the loss of guessing after about "
        f"{needed.tried:,} images"
    )
    images = "all" if not each.train_examples else f"{each.train_examples:,}"
    less = "" if each == needed else "; twice as long would be better, and takes too long here"
    return (
        f"candidates are trained for {each.epochs} epochs of {images} images instead of "
        f"{config.training.epochs} of {examples:,}, at a rate that rises first: {learned}{less}; "
        f"--epochs={config.training.epochs} leaves the usual length"
    )


def recorded_choice(document: Mapping[str, Any]) -> dict[str, int]:
    """The settings that were chosen for a run, by the content of its `config.json`."""
    fitted = document.get("fitted")
    recorded = fitted if isinstance(fitted, dict) else {}
    return {
        name: value for name, value in recorded.items() if name in CHOSEN and isinstance(value, int)
    }


def read_options(settings: DataConfig) -> ReadOptions:
    """What a person says about the images. Raises `InputError`."""
    return ReadOptions.of(settings.pixel_range, settings.background, settings.skip_unreadable)


def size_of(settings: DataConfig, data: Dataset) -> DataSize:
    """The training images as the networks will see them. Raises `InputError`."""
    measured = data.train.pixels.measure(read_options(settings).pixel_range)
    form, _ = make_form(measured, settings.image_size, settings.resize)
    return DataSize(*form.image_shape, len(data.train), len(data.class_names))
