"""Sizes of the network that a genome describes, by arithmetic alone.

No network is built, and JAX is not imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from jaxevo.config import NetworkConfig
from jaxevo.errors import InputError
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Op


@dataclasses.dataclass(frozen=True)
class Complexity:
    """Trainable parameters, and multiply-adds of one image's forward pass.

    Multiply-adds are those of the convolutions and the classifier.
    """

    parameters: int
    multiply_adds: int


def network_settings(genome: Genome, config: NetworkConfig) -> NetworkConfig:
    """The settings of a genome's network: those of a search, with the genome's own layout."""
    if genome.layout is None:
        return config
    return dataclasses.replace(config, **genome.layout.genes())


def check_given(genome: Genome, given: Iterable[str]) -> None:
    """Raises `InputError` if settings are given that the genome's own layout decides."""
    if genome.layout is None:
        return
    own = genome.layout.genes()
    if clash := [name for name in own if name in set(given)]:
        raise InputError(
            f"the genome has {clash[0]}={own[clash[0]]} of its own; leave {clash[0]} out, or take "
            "the layout out of the genome's file"
        )


def operand_is_projected(state: int, op: Op) -> bool:
    """True if an operand ends in a 1x1 convolution.

    Every operand does, except identity and pooling of an input, which has D channels already.
    """
    return op.kernel_size > 0 or state >= NUM_INPUTS


def measure(
    genome: Genome, config: NetworkConfig, image_shape: tuple[int, int, int], *, num_classes: int
) -> Complexity:
    """Counts for images `(height, width, channels)`.

    Raises `ValueError` if they are too small for the reductions.
    """
    config = network_settings(genome, config)
    height, width, in_channels = image_shape
    config.check_image(height, width)
    parameters = multiply_adds = 0
    for kind, channels in config.stack():
        cell = genome.reduction if kind == "reduction" else genome.normal
        weights = in_channels * channels + _cell_kernels(cell, channels, config.conv_kind)
        parameters += weights + 2 * channels * (1 + _projected_operands(cell))
        multiply_adds += weights * height * width
        in_channels = 2 * channels * len(cell.unused_states())
        if kind == "reduction":
            height, width = height // 2, width // 2
    return Complexity(
        parameters + num_classes * (in_channels + 1),
        multiply_adds + num_classes * in_channels,
    )


def parameters_of(genome: Genome, config: NetworkConfig) -> int:
    """Parameters of a genome's network for grey images of any size and ten classes."""
    side = 2 ** (network_settings(genome, config).num_normal_cells - 1)  # the smallest
    return measure(genome, config, (side, side, 1), num_classes=10).parameters


def _projected_operands(cell: Cell) -> int:
    return sum(
        operand_is_projected(state, op) for node in cell.nodes for state, op in node.operands
    )


def _cell_kernels(cell: Cell, channels: int, conv_kind: str) -> int:
    """Weights of all convolutions of a cell's nodes; each is used once a pixel."""
    total = 0
    for state, op in (operand for node in cell.nodes for operand in node.operands):
        in_channels = channels if state < NUM_INPUTS else 2 * channels
        kernel = op.kernel_size**2
        if kernel and conv_kind == "full":
            total += kernel * in_channels * channels
        elif operand_is_projected(state, op):
            total += kernel * in_channels + in_channels * channels
    return total
