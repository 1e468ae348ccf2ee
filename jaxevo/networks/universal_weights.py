"""Weights carried between the universal network and a genome's own network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from flax import nnx

from jaxevo.networks.genome_network import Network
from jaxevo.networks.universal import UniversalNetwork
from jaxevo.networks.universal_operands import kernel_window
from jaxevo.search_space.complexity import operand_is_projected
from jaxevo.search_space.genome import NUM_INPUTS, Genome


def _places(
    universal: UniversalNetwork, network: Network, genome: Genome
) -> Iterator[tuple[nnx.Variable, Any, nnx.Variable]]:
    """Pairs the variables of both networks that hold the same weight.

    Yields the variable of the universal network, its part, and the variable of the network. A part
    is an index; a list of nodes, whose rows `[E, 2D]` of the readers lie side by side in the
    network's variable; or None for the whole variable, whose value is replaced.
    """
    readers: list[tuple[list[int] | None, Any]] = [(None, universal.entry)]
    for index, (kind, large, small) in enumerate(
        zip(universal.kinds, universal.cells, network.cells, strict=True)
    ):
        cell = genome.cell(kind)
        norm = universal.norms[index]
        # The batch norm at the cell's entry.
        for name in ("scale", "bias", "mean", "var"):
            yield getattr(norm, name), ..., getattr(small.norm, name)
        for k, node in enumerate(cell.nodes):
            for o, (state, op) in enumerate(node.operands):
                operand = small.operands[2 * k + o]
                channels = large.scale.shape[-1]
                in_channels = channels if state < NUM_INPUTS else 2 * channels
                # A kernel lies in the middle of its slot.
                if size := op.kernel_size:
                    taps = (slice(in_channels), kernel_window(size), kernel_window(size))
                    part = (k, o, slice(None), *taps) if operand.full else (k, o, *taps)
                    yield large.kernels, part, operand.kernel
                # The 1x1 convolution, and batch norm.
                if operand_is_projected(state, op) and not operand.full:
                    yield large.pointwise, (k, o, slice(None), slice(in_channels)), operand.weight
                if operand_is_projected(state, op):
                    for name in ("scale", "bias", "mean", "var"):
                        yield getattr(large, name), (k, o), getattr(operand.norm, name)
        readers.append(([s - NUM_INPUTS for s in cell.unused_states()], large.readers))
    # Each cell is read by the next one's 1x1 convolution, the last by the classifier.
    targets = [*(cell.projection for cell in network.cells), network.head]
    for (nodes, variable), target in zip(readers, targets, strict=True):
        yield variable, nodes, target
    yield universal.head_bias, ..., network.head_bias


def to_network(universal: UniversalNetwork, network: Network, genome: Genome) -> None:
    """Writes the universal network's weights for a genome into that genome's own network."""
    for variable, part, target in _places(universal, network, genome):
        value = np.asarray(variable[...])
        if isinstance(part, list):  # the readers [B, E, 2D] of the unused states side by side
            value = np.concatenate(list(value[part]), axis=1)
        elif part is not None:
            value = value[part]
        target.set_value(value)


def from_network(universal: UniversalNetwork, network: Network, genome: Genome) -> None:
    """The reverse of `to_network`; slots that the genome does not use stay as they are."""
    for variable, part, source in _places(universal, network, genome):
        new = np.asarray(source[...])
        if part is None:
            variable.set_value(new)
            continue
        value = np.array(variable[...])
        value[part] = np.stack(np.split(new, len(part), axis=1)) if isinstance(part, list) else new
        variable.set_value(value)
