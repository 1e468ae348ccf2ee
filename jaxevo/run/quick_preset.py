"""The preset quick fitted to a data set and to this machine, before a new run begins.

A run's folder keeps what was chosen, so the run goes on with it on any machine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from jaxevo.config import LAYOUT_BOUNDS, DataConfig, SearchConfig, replace
from jaxevo.datasets import Images
from jaxevo.datasets.dataset import Dataset, ReadOptions, make_form
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.estimate import measured_pace
from jaxevo.run.evaluator import Evaluator
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
