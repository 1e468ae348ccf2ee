"""The same network in PyTorch, channels last: what its users would write. Needs `pip install
torch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from jaxevo.config import NetworkConfig
from jaxevo.networks.genome_network import Network
from jaxevo.search_space.complexity import operand_is_projected
from jaxevo.search_space.genome import NUM_INPUTS, Cell, Genome, Op
from jaxevo.training.epoch import BATCH_NORM_MOMENTUM, first_decay


class TorchOperand(nn.Module):
    """One operation of a node on one state."""

    def __init__(self, state: int, op: Op, channels: int):
        super().__init__()
        self.op = op
        in_channels = channels if state < NUM_INPUTS else 2 * channels
        k = op.kernel_size
        self.depthwise = (
            nn.Conv2d(in_channels, in_channels, k, padding=k // 2, groups=in_channels, bias=False)
            if k
            else None
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
        self.entry = nn.Sequential(
            nn.Conv2d(in_channels, channels, 1, bias=False), nn.BatchNorm2d(channels)
        )
        self.inputs, self.outputs = [node.inputs for node in cell.nodes], cell.unused_states()
        operands = [operand for node in cell.nodes for operand in node.operands]
        self.operands = nn.ModuleList([TorchOperand(state, op, channels) for state, op in operands])
        self.reduces = kind == "reduction"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.entry(x)
        states = [x, x]
        for k, inputs in enumerate(self.inputs):
            states.append(
                torch.cat([self.operands[2 * k + o](states[i]) for o, i in enumerate(inputs)], 1)
            )
        x = torch.cat([states[s] for s in self.outputs], 1)
        return functional.avg_pool2d(x, 2, 2) if self.reduces else x


class TorchNetwork(nn.Module):
    """As `jaxevo.networks.genome_network.Network`."""

    def __init__(
        self,
        genome: Genome,
        config: NetworkConfig,
        image_shape: tuple[int, int, int],
        num_classes: int,
    ):
        super().__init__()
        cells, width = [], image_shape[2]
        for kind, channels in config.stack():
            cell = genome.cell(kind)
            cells.append(TorchCell(cell, kind, width, channels))
            width = 2 * channels * len(cell.unused_states())
        self.cells, self.dropout, self.head = (
            nn.Sequential(*cells),
            nn.Dropout(config.dropout_rate),
            nn.Linear(width, num_classes),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(self.cells(x).mean((2, 3))))


def parameters(
    genome: Genome, config: NetworkConfig, image_shape: tuple[int, int, int], num_classes: int
) -> int:
    """Trainable parameters."""
    return sum(
        p.numel() for p in TorchNetwork(genome, config, image_shape, num_classes).parameters()
    )


class Training:
    """Adam with exponential decay on one network, as `jaxevo.training`, with the loop that
    PyTorch's users write.
    """

    def __init__(
        self, network: TorchNetwork, images: np.ndarray, labels: np.ndarray, batch_size: int
    ):
        self.network = network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.x, self.y, self.batch_size = (
            prepare(images),
            torch.from_numpy(labels.astype(np.int64)),
            batch_size,
        )
        self.optimizer = torch.optim.Adam(network.parameters())
        self.norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
        self.steps = 0

    def epoch(self, order: np.ndarray, rates: Iterable[float]) -> torch.Tensor:
        """A step at each rate on the next batch of `order`; the losses `[steps]`."""
        losses = []
        self.network.train()
        for step, rate in enumerate(rates):
            index = torch.from_numpy(order[step * self.batch_size : (step + 1) * self.batch_size])
            self.optimizer.param_groups[0]["lr"] = rate
            # PyTorch's constant momentum has not forgotten the start after fifty steps.
            for norm in self.norms:
                norm.momentum = 1 - min(BATCH_NORM_MOMENTUM, first_decay(self.steps))
            self.steps += 1
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.network(self.x[index]), self.y[index])
            loss.backward()
            self.optimizer.step()
            losses.append(loss.detach())
        return torch.stack(losses)

    def accuracy(self, images: np.ndarray, labels: np.ndarray) -> float:
        """Part of the images that is classified rightly."""
        self.network.eval()
        with torch.inference_mode():
            predictions = [self.network(part).argmax(1) for part in prepare(images).split(512)]
        return float((torch.cat(predictions).numpy() == labels).mean())


def small_cnn(channels: tuple[int, ...], classes: int) -> nn.Module:
    """As `jaxevo.networks.hand_designed.SmallCNN`."""
    layers, width = [], 1
    for each in channels:
        layers += [nn.Conv2d(width, each, 3, padding=1, bias=False), nn.BatchNorm2d(each)]
        layers += [nn.ReLU(), nn.AvgPool2d(2)]
        width = each
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
    return nn.Sequential(*layers[:-1], *head)  # the last one is not halved


def prediction(network: nn.Module, images: np.ndarray) -> Callable[[], torch.Tensor]:
    """A function that predicts the images on one thread."""
    torch.set_num_threads(1)
    network = network.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = prepare(images)
    return torch.inference_mode()(lambda: network(x))


def prepare(images: np.ndarray) -> torch.Tensor:
    """uint8 `[N, H, W, C]` to float32 `[N, C, H, W]` in channels-last form."""
    x = torch.from_numpy(images).permute(0, 3, 1, 2).to(torch.float32) / 255
    return x.contiguous(memory_format=torch.channels_last)


def copy_weights(source: Network, target: TorchNetwork) -> None:
    """Gives PyTorch's network the weights of ours."""

    def put(parameter: nn.Parameter, variable) -> None:
        parameter.data = torch.from_numpy(np.array(variable[...])).reshape(parameter.shape)

    def put_projected(convolution: nn.Conv2d, norm: nn.BatchNorm2d, weight, ours) -> None:
        put(convolution.weight, weight)
        put(norm.weight, ours.scale)
        put(norm.bias, ours.bias)

    for cell, theirs in zip(source.cells, target.cells, strict=True):
        put_projected(*theirs.entry, cell.projection, cell.norm)
        for operand, other in zip(cell.operands, theirs.operands, strict=True):
            if other.depthwise is not None:
                put(other.depthwise.weight, operand.kernel)
            if operand.projected:
                put_projected(*other.projection, operand.weight, operand.norm)
    put(target.head.weight, source.head)
    put(target.head.bias, source.head_bias)
