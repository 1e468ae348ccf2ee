"""The settings of a training (paper, section 4.2)."""

from __future__ import annotations

import dataclasses

from jaxevo.config.fields import check, check_at_least, check_below_one, check_choice, setting


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
