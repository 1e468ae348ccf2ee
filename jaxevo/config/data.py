"""Settings of the images that are searched on."""

from __future__ import annotations

import dataclasses
import math

from jaxevo.config.fields import check, check_at_least, check_choice, setting

RESIZE_METHODS = ("stretch", "mnist_box")
BACKGROUNDS = ("auto", "white", "black")


@dataclasses.dataclass(frozen=True)
class DataConfig:
    """The images that are searched on, and their division."""

    dataset: str = setting(
        "digits",
        "a data set's name, a folder of class folders, or an .npz, .csv or .parquet file",
    )
    train_examples: int = setting(
        0, "train candidates on a stratified subset of this many images; 0: all"
    )
    validation_fraction: float = setting(
        0.1,
        "part of the training split that nothing is trained on: accuracy and likelihood are "
        "measured there",
    )
    image_size: int = setting(
        0, "resize images to this side in pixels; 0: as they are, if they are alike and small"
    )
    resize: str = setting(
        "stretch",
        "how: stretched, or as MNIST's digits lie in their frame (box of 20/28, centred by mass)",
        RESIZE_METHODS,
    )
    pixel_range: str = setting(
        "", "stored values of black and of white, such as 0,4095; empty: the training images tell"
    )
    background: str = setting(
        "auto",
        "what transparent pixels lie on; auto: where the training images keep their contrast",
        BACKGROUNDS,
    )
    skip_unreadable: bool = setting(False, "leave image files out that cannot be read")

    def __post_init__(self) -> None:
        check_at_least(self, 0, "train_examples", "image_size")
        check(
            0 < self.validation_fraction < 1,
            "validation_fraction",
            self.validation_fraction,
            rule="it lies in (0, 1)",
        )
        check_choice(self, "resize")
        check_choice(self, "background")
        check(
            not self.pixel_range or _rises(self.pixel_range),
            "pixel_range",
            self.pixel_range,
            rule="write the value of black, then the larger one of white, such as 0,255",
        )


def _rises(text: str) -> bool:
    """True if a text is two numbers with a comma, the second larger."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        return False
    return -math.inf < low < high < math.inf
