"""The settings of networks (paper, section 4.2)."""

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
