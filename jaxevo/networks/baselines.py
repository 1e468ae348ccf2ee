"""Hand-designed networks, to be put beside the networks that a search finds.

A `Baseline` is usable wherever a genome is, and can be made wider or narrower. The networks take
the same images, training and precision as a genome's network; no other setting of it concerns them.
"""

from __future__ import annotations

import bisect
import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxevo.config.presets import MODELS
from jaxevo.errors import InputError
from jaxevo.networks.hand_designed import ResNet18, SmallCNN
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import Stream, generator

MAX_WIDTH = 16  # factor on the channels


BASELINES = dict[str, type[ResNet18] | type[SmallCNN]](
    zip(MODELS, (ResNet18, SmallCNN), strict=True)
)


@dataclasses.dataclass(frozen=True)
class Baseline:
    """A hand-designed network of `BASELINES`.

    Attributes:
        name: Of the design.
        width: Factor on its channels, which are rounded, each to one at least.

    Raises `InputError` for an unknown name or a width that is not within 0 and `MAX_WIDTH`.
    """

    name: str
    width: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in BASELINES:
            raise InputError(
                f"model={self.name} is not known; choose one of {', '.join(BASELINES)}"
            )
        if not 0 < self.width <= MAX_WIDTH:
            raise InputError(f"width={self.width} of {self.name} is not within 0 and {MAX_WIDTH}")

    @classmethod
    def of_size(
        cls, name: str, parameters: int, image_shape: tuple[int, int, int], *, num_classes: int
    ) -> Baseline:
        """The widest one of a design that has at most so many parameters.

        Raises `InputError` if the narrowest has more.
        """
        last = BASELINES[name].channels[-1]

        def size(channels: int) -> int:
            """Parameters with so many channels in the last layer."""
            return cls(name, channels / last).complexity(image_shape, num_classes).parameters

        fitting = bisect.bisect_right(range(1, MAX_WIDTH * last + 1), parameters, key=size)
        if not fitting:
            raise InputError(
                f"{name} has at least {size(1):,} parameters for these images, not {parameters:,}"
            )
        return cls(name, fitting / last)

    @property
    def channels(self) -> tuple[int, ...]:
        """Of its layers or stages."""
        return tuple(max(1, round(each * self.width)) for each in BASELINES[self.name].channels)

    @staticmethod
    def is_known(name: str) -> bool:
        """True if a name is one of `BASELINES`."""
        return name in BASELINES

    def check_image(self, height: int, width: int) -> None:
        """Raises `InputError` if an image of this size vanishes."""
        least = BASELINES[self.name].min_side
        if min(height, width) < least:
            raise InputError(
                f"{self.name} needs images of at least {least}x{least} pixels, these have "
                f"{height}x{width}"
            )

    def build(
        self,
        image_shape: tuple[int, int, int],
        num_classes: int,
        precision: str,
        *,
        seed: int | tuple[int, ...],
    ) -> ResNet18 | SmallCNN:
        """The network with fresh weights."""
        self.check_image(*image_shape[:2])
        return BASELINES[self.name](
            image_shape,
            num_classes,
            precision,
            channels=self.channels,
            rng=generator(Stream.WEIGHTS, seed),
        )

    def complexity(self, image_shape: tuple[int, int, int], num_classes: int) -> Complexity:
        """Parameters and multiply-adds for images `(height, width, channels)`."""
        self.check_image(*image_shape[:2])
        return BASELINES[self.name].complexity(image_shape, num_classes, self.channels)


Architecture = Genome | Baseline


def describe(model: Architecture) -> dict[str, Any]:
    """Plain values for JSON: a genome's, or a baseline's name, with its width unless that is 1."""
    if isinstance(model, Genome):
        return {"genome": model.to_dict()}
    return {"model": model.name} | ({} if model.width == 1 else {"width": model.width})


def from_description(document: Mapping[str, Any]) -> Architecture:
    """`describe`'s inverse; other keys do not matter.

    Raises `ValueError`, for a baseline's name `InputError`.
    """
    if "model" in document:
        width = document.get("width", 1.0)
        if not isinstance(width, int | float):
            raise ValueError(f"width={width!r} is no number")
        return Baseline(str(document["model"]), width)
    return Genome.from_dict(document["genome"])
