"""Settings of the preset quick for data whose search would take too long.

Seconds are those of the time left before a run's start, by the multiply-adds of training that the
machine does in a second. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from jaxevo.config import SearchConfig, flatten, replace
from jaxevo.run.remaining import Pace, Remaining
from jaxevo.run.words import format_duration
from jaxevo.search_space.complexity import measure
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.seeds import Stream, generator
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.registry import layout_space

GOAL = 20 * 60.0  # seconds that a search with chosen settings is to take at most
ENOUGH = 30 * 60.0  # seconds up to which the preset stays as it is
SLOWEST = 3e8  # multiply-adds a second that any machine does
_SIDES = (128, 96, 64, 48, 32)  # pixels that larger images are made
# The settings that are lowered, one step after the other, until the search is short enough.
_STEPS: tuple[tuple[str, int], ...] = (
    *(("num_generations", 9), ("num_generations", 7)),
    *(("final_epochs", 20), ("final_epochs", 10), ("final_epochs", 5), ("final_epochs", 2)),
    *(("train_examples", 1000), ("channels", 6), ("num_generations", 5), ("channels", 4)),
    *(("num_generations", 3), ("epochs", 2), ("num_generations", 1), ("final_epochs", 1)),
    ("epochs", 1),
)
CHOSEN = ("image_size", *dict.fromkeys(name for name, _ in _STEPS))
_FEWEST = 30_000  # images that the final training sees at least, each as often as it does
_SAMPLES = 10  # genomes, whose mean size is taken
_DRAWS = 50  # of each, until one is within the bounds on size
_EVALUATION = 1 / 3  # of the multiply-adds of training, for an image that is measured


@dataclasses.dataclass(frozen=True)
class DataSize:
    """The training images of a data set: pixels of each, their number, and the classes."""

    height: int
    width: int
    channels: int
    num_images: int
    num_classes: int

    def resized(self, side: int) -> DataSize:
        """The images made so many pixels a side; 0 leaves them as they are."""
        return dataclasses.replace(self, height=side, width=side) if side else self


@dataclasses.dataclass(frozen=True)
class Fitted:
    """Settings by flag name that differ from the preset's, and words on them.

    Attributes:
        settings: The image size may be among them, which the preset leaves to the data.
        seconds: That the search takes with them, if no candidate repeats another.
        description: What was chosen and what would be better with more time; empty: nothing was.
    """

    settings: Mapping[str, int]
    seconds: float
    description: str = ""


def choose_settings(
    config: SearchConfig, size: DataSize, rate: float, *, given: Collection[str] = ()
) -> Fitted:
    """Chooses settings for a search of about 20 minutes.

    The configuration stays as it is where it takes 30 minutes at most.

    Args:
        config: The preset's, with the settings that a person gave.
        size: The data.
        rate: Multiply-adds of training a second.
        given: Names of the settings that a person gave, which stay.
    """
    begin = flatten(config)
    whole = search_seconds(config, size, rate)
    if whole <= ENOUGH:
        return Fitted({}, whole)
    # The first step that is short enough is the choice, else the last.
    settings, seconds = begin, whole
    for settings in _ladder(begin, size, given):
        seconds = search_seconds(replace(config, settings), size, rate)
        if seconds <= GOAL:
            break
    chosen = {name: settings[name] for name in CHOSEN if settings[name] != begin[name]}
    words = _describe(chosen, begin, size, seconds=seconds, whole=whole) if chosen else ""
    return Fitted(chosen, seconds, words)


def search_seconds(config: SearchConfig, size: DataSize, rate: float) -> float:
    """Seconds of a search of this configuration, if no candidate repeats another."""
    num_validation = round(size.num_images * config.data.validation_fraction)
    num_train = size.num_images - num_validation
    image = mean_multiply_adds(config, size) / rate
    remaining = Remaining(config, None, Stopwatch(), num_train=num_train)
    remaining.sample = Pace(image, num_validation * _EVALUATION * image)
    return remaining.total()


def mean_multiply_adds(config: SearchConfig, size: DataSize) -> float:
    """Multiply-adds an image of the mean network, of all numbers of nodes alike.

    Layouts that are genes are drawn as a search draws them, and bounds on size hold.
    """
    resized = size.resized(config.data.image_size)
    shape = (resized.height, resized.width, resized.channels)
    counts = []
    for sample in range(_SAMPLES):
        # The first that is within the bounds, else the smallest.
        drawn = []
        for genome in _drawn_genomes(config, sample):
            found = measure(genome, config.network, shape, num_classes=size.num_classes)
            drawn.append(found.multiply_adds)
            if config.fits(found.parameters, found.multiply_adds):
                counts.append(found.multiply_adds)
                break
        else:
            counts.append(min(drawn))
    return float(np.mean(counts))


def _drawn_genomes(config: SearchConfig, sample: int) -> Iterator[Genome]:
    """Random genomes with the sample's number of nodes."""
    rng = generator(Stream.ESTIMATE, (sample,))
    low, high = config.evolution.min_nodes, config.evolution.max_nodes
    nodes = low + sample % (high - low + 1)
    layouts = layout_space(config)
    for _ in range(_DRAWS):
        genome = Genome(random_cell(rng, nodes), random_cell(rng, nodes))
        yield genome if layouts is None else dataclasses.replace(genome, layout=layouts.random(rng))


def _ladder(
    begin: Mapping[str, Any], size: DataSize, given: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Settings, each of less cost than the one before; those given stay."""
    settings = dict(begin)
    if "image_size" not in given and max(size.height, size.width) > _SIDES[-1]:
        for side in _SIDES:
            if side * side < size.height * size.width:
                settings["image_size"] = side
                yield dict(settings)
    for name, value in _STEPS:
        if name not in given:
            # No training examples means all images; a tenth of these may be too few of a class.
            usual = settings[name] or 0.9 * size.num_images * (1 - settings["validation_fraction"])
            # Few images need many epochs at the end.
            short = name == "final_epochs" and value * size.num_images < _FEWEST
            if value < usual and not short:
                settings[name] = value
                yield dict(settings)


def _describe(
    chosen: Mapping[str, int],
    begin: Mapping[str, Any],
    size: DataSize,
    *,
    seconds: float,
    whole: float,
) -> str:
    """The choice in a sentence."""
    usual = dict(begin) | {"image_size": max(size.height, size.width)}
    parts = [f"{name}={value} instead of {usual[name] or 'all'}" for name, value in chosen.items()]
    flags = " ".join(f"--{name}={usual[name]}" for name in chosen)
    return (
        f"preset quick is fitted to about {format_duration(seconds)} on this machine: "
        f"{', '.join(parts)}; with more time {flags} would be better, which takes about "
        f"{format_duration(whole)}; another machine may choose otherwise"
    )
