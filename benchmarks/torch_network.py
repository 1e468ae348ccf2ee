"""The same network in PyTorch, channels last: what its users would write. Needs `pip install torch`."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from jaxevo.complexity import operand_is_projected
from jaxevo.config import NetworkConfig
from jaxevo.genome import NUM_INPUTS, Cell, Genome, Op


class TorchOperand(nn.Module):
    """One operation of a node on one state."""

    def __init__(self, state: int, op: Op, channels: int):
        super().__init__()
        self.op = op
        in_channels = channels if state < NUM_INPUTS else 2 * channels
        k = op.kernel_size
        self.depthwise = (
            nn.Conv2d(in_channels, in_channels, k, padding=k // 2, groups=in_channels, bias=False) if k else None
        )
        self.projection = (
            nn.Sequential(nn.Conv2d(in_channels, channels, 1, bias=False), nn.BatchNorm2d(channels))
            if operand_is_projected(state, op)
            else nn.Identity()
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.depthwise is not None:
            x = self.depthwise(functional.relu(x))
        elif self.op == Op.MAX_POOL_3X3:
            x = functional.max_pool2d(x, 3, 1, 1)
        elif self.op == Op.AVG_POOL_3X3:
            x = functional.avg_pool2d(x, 3, 1, 1, count_include_pad=False)
        return self.projection(x)


class TorchCell(nn.Module):
    """A cell."""

    def __init__(self, cell: Cell, kind: str, in_channels: int, channels: int):
        super().__init__()
        self.entry = nn.Sequential(nn.Conv2d(in_channels, channels, 1, bias=False), nn.BatchNorm2d(channels))
        self.inputs, self.outputs = [node.inputs for node in cell.nodes], cell.unused_states()
        operands = [operand for node in cell.nodes for operand in node.operands]
        self.operands = nn.ModuleList([TorchOperand(state, op, channels) for state, op in operands])
        self.reduces = kind == "reduction"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        states = [x, x]
        for k, inputs in enumerate(self.inputs):
            states.append(torch.cat([self.operands[2 * k + o](states[i]) for o, i in enumerate(inputs)], 1))
        x = torch.cat([states[s] for s in self.outputs], 1)
        return functional.avg_pool2d(x, 2, 2) if self.reduces else x


class TorchNetwork(nn.Module):
    """As `jaxevo.network.Network`."""

    def __init__(self, genome: Genome, config: NetworkConfig, image_shape: tuple[int, int, int], num_classes: int):
        super().__init__()
        cells, width = [], image_shape[2]
        for kind, channels in config.stack():
            cell: Cell = getattr(genome, kind)
            cells.append(TorchCell(cell, kind, width, channels))
            width = 2 * channels * len(cell.unused_states())
        self.cells, self.dropout, self.head = (
            nn.Sequential(*cells),
            nn.Dropout(config.dropout_rate),
            nn.Linear(width, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(self.cells(x).mean((2, 3))))


def parameters(genome: Genome, config: NetworkConfig, image_shape: tuple[int, int, int], num_classes: int) -> int:
    """Trainable parameters."""
    return sum(p.numel() for p in TorchNetwork(genome, config, image_shape, num_classes).parameters())


def time_steps(
    genome: Genome,
    config: NetworkConfig,
    images: np.ndarray,
    labels: np.ndarray,
    num_classes: int,
    batch_size: int,
    repeats: int,
) -> list[float]:
    """Seconds of an epoch over the images, `repeats` times, after one that is not counted."""
    network = TorchNetwork(genome, config, images.shape[1:], num_classes)  # type: ignore[arg-type]
    network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.from_numpy(images).permute(0, 3, 1, 2).to(torch.float32) / 255
    x, y = x.contiguous(memory_format=torch.channels_last), torch.from_numpy(labels.astype(np.int64))
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    seconds = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        for start in range(0, len(x) - batch_size + 1, batch_size):
            optimizer.zero_grad()
            loss = functional.cross_entropy(network(x[start : start + batch_size]), y[start : start + batch_size])
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - begin)
    return seconds[1:]
