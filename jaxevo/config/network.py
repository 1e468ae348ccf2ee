"""The settings of networks and of their training (paper, section 4.2)."""

from __future__ import annotations

import dataclasses

from jaxevo.config.fields import check, check_at_least, check_below_one, check_choice, setting

CONV_KINDS = ("separable", "full")


@dataclasses.dataclass(frozen=True)
class NetworkConfig:
    """The network of a genome (paper, section 4.2).

    The image's shape and the number of classes come from the data.
    """

    channels: int = setting(24, "feature maps of an operation in the first cells (D)")
    channel_multiplier: int = setting(2, "factor on the feature maps after a reduction cell (K)")
    num_normal_cells: int = setting(
        3, "groups of normal cells, with a reduction cell between two groups (N)"
    )
    normal_repeats: int = setting(1, "normal cells in a group")
    dropout_rate: float = setting(0.2, "dropout before the classifier")
    precision: str = setting(
        "float32",
        "what activations are computed in; parameters stay float32",
        ("float32", "bfloat16"),
    )
    conv_kind: str = setting(
        "separable",
        "separable: depthwise then 1x1, as NASNet's; full: one dense kernel",
        CONV_KINDS,
    )
    output_relu: bool = setting(
        False,
        "a ReLU on what leaves a cell, before it is halved, averaged or read, as NASNet and DARTS "
        "have it",
    )

    def __post_init__(self) -> None:
        check_at_least(
            self, 1, "channels", "channel_multiplier", "num_normal_cells", "normal_repeats"
        )
        # Settings of saved weights may claim any number, and cells are counted one by one.
        for name in ("num_normal_cells", "normal_repeats"):
            check(
                getattr(self, name) <= 100,
                name,
                getattr(self, name),
                rule="the largest value is 100",
            )
        check_below_one(self, "dropout_rate")
        check_choice(self, "conv_kind")
        check_choice(self, "precision")

    def stack(self) -> tuple[tuple[str, int], ...]:
        """The cells in order, each `("normal" | "reduction", channels)`.

        By default they are N R N R N (N normal, R reduction) with D, D, 2D, 2D, 4D channels.
        """
        cells: list[tuple[str, int]] = []
        for group in range(self.num_normal_cells):
            channels = self.channels * self.channel_multiplier**group
            cells += [("normal", channels)] * self.normal_repeats
            if group < self.num_normal_cells - 1:
                cells.append(("reduction", channels))
        return tuple(cells)

    def check_image(self, height: int, width: int) -> None:
        """Raises `InputError` if an image of this size vanishes in the reductions."""
        smallest = 2 ** (self.num_normal_cells - 1)
        check(
            min(height, width) >= smallest,
            "num_normal_cells",
            self.num_normal_cells,
            rule=f"its {self.num_normal_cells - 1} reductions need images of at least "
            f"{smallest}x{smallest} pixels, these have {height}x{width}; resize the images or use "
            "fewer normal cells",
        )


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """The training of a network's weights (paper, section 4.2)."""

    epochs: int = setting(15, "passes over the training images")
    batch_size: int = setting(64, "images a step")
    learning_rate: float = setting(1e-4, "Adam's rate at the start")
    rate_decay: float = setting(0.01, "the rate decays exponentially to this fraction of its start")
    schedule: str = setting(
        "exponential",
        "how the rate falls: exponential, to rate_decay; cosine, along half a cosine to 0",
        ("exponential", "cosine"),
    )
    warmup: float = setting(
        0.0, "fraction of all steps over which the rate first rises linearly from 0"
    )
    label_smoothing: float = setting(0.0, "part of a label that is spread over all classes")
    max_shift: float = setting(
        0.0, "augmentation: shift an image at random by up to this fraction of its sides"
    )
    max_rotation: float = setting(
        0.0, "augmentation: rotate an image at random by up to so many degrees"
    )
    max_scale: float = setting(
        0.0, "augmentation: scale an image at random by 1 - this to 1 + this"
    )
    weight_average: float = setting(
        0.0,
        "decay a step of the moving average of weights that is measured and saved; 0: the last "
        "weights",
    )

    def __post_init__(self) -> None:
        check_at_least(self, 1, "epochs", "batch_size")
        check(self.learning_rate > 0, "learning_rate", self.learning_rate, rule="it is positive")
        check(0 < self.rate_decay <= 1, "rate_decay", self.rate_decay, rule="it lies in (0, 1]")
        check_choice(self, "schedule")
        check_below_one(self, "warmup", "label_smoothing", "max_scale", "weight_average")
        check(
            0 <= self.max_shift <= 1,
            "max_shift",
            self.max_shift,
            rule="a fraction lies between 0 and 1",
        )
        check(
            0 <= self.max_rotation <= 180,
            "max_rotation",
            self.max_rotation,
            rule="degrees lie between 0 and 180",
        )
