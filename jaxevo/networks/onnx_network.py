"""A network as an ONNX graph: the counterpart of `genome_network` and `baselines`, for inference.

What these compute in JAX is said here once more in ONNX's operators. Activations are float32,
whatever the network's precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from jaxevo.networks.genome_network import CellModule, Network, Operand
from jaxevo.networks.hand_designed import Block, ConvBatchNorm, ResNet18, SmallCNN
from jaxevo.networks.onnx_graph import GraphBuilder
from jaxevo.search_space.genome import Op

INPUT = "images"
OUTPUT = "probabilities"
LOGITS = "logits"  # inside of the graph


def network_graph(
    network: Network | ResNet18 | SmallCNN, image_shape: tuple[int, int, int], num_classes: int
) -> onnx.GraphProto:
    """The graph of uint8 images `[N, H, W, C]` to the probability of each class `[N, classes]`."""
    graph = GraphBuilder()
    x = _image_batch(graph)
    if isinstance(network, Network):
        for cell in network.cells:
            x = _cell(graph, cell, x)
    else:
        x = (_resnet18 if isinstance(network, ResNet18) else _small_cnn)(graph, network, x)
    # The head.
    features = graph.apply("Flatten", graph.apply("GlobalAveragePool", x))
    head, bias = (np.asarray(each[...]) for each in (network.head, network.head_bias))
    weights = graph.constant(head), graph.constant(bias)
    logits = graph.apply("Gemm", features, *weights, transB=1, output=LOGITS)
    graph.apply("Softmax", logits, axis=1, output=OUTPUT)
    return graph.finish(image_shape, num_classes, input=INPUT, output=OUTPUT)


def _image_batch(graph: GraphBuilder) -> str:
    """As `genome_network.image_batch`, to ONNX's layout."""
    planes = graph.apply("Transpose", INPUT, perm=[0, 3, 1, 2])  # a byte a pixel still
    floats = graph.apply("Cast", planes, to=onnx.TensorProto.FLOAT)
    return graph.apply("Div", floats, graph.constant(np.array(255, np.float32)))


def _cell(graph: GraphBuilder, cell: CellModule, x: str) -> str:
    x = graph.normalized_convolution(x, cell.projection[...][:, :, None, None], cell.norm)
    # A state is the tensors whose concatenation it is.
    states: list[tuple[str, ...]] = [(x,), (x,)]
    for k, inputs in enumerate(cell.inputs):
        operands = (cell.operands[2 * k], cell.operands[2 * k + 1])
        pair = zip(operands, inputs, strict=True)
        states.append(tuple(_operand(graph, each, graph.join(states[i])) for each, i in pair))
    x = graph.join(tuple(tensor for state in cell.outputs for tensor in states[state]))
    x = graph.apply("Relu", x) if cell.output_relu else x
    return graph.halve(x) if cell.reduces else x


def _operand(graph: GraphBuilder, operand: Operand, x: str) -> str:
    if operand.full:
        relu = graph.apply("Relu", x)
        return graph.normalized_convolution(relu, operand.kernel[...], operand.norm)
    if operand.op.kernel_size:
        x = graph.depthwise(graph.apply("Relu", x), operand.kernel[...])
    elif operand.op != Op.IDENTITY:
        x = {Op.MAX_POOL_3X3: graph.max_pool, Op.AVG_POOL_3X3: graph.avg_pool}[operand.op](x)
    if not operand.projected:
        return x
    return graph.normalized_convolution(x, operand.weight[...][:, :, None, None], operand.norm)


def _small_cnn(graph: GraphBuilder, network: Any, x: str) -> str:
    first, second, third = network.convolutions
    x = graph.halve(_rectified(graph, first, x))
    x = graph.halve(_rectified(graph, second, x))
    return _rectified(graph, third, x)


def _resnet18(graph: GraphBuilder, network: Any, x: str) -> str:
    x = graph.max_pool(_rectified(graph, network.stem, x), stride=2)
    for block in network.blocks:
        x = _block(graph, block, x)
    return x


def _block(graph: GraphBuilder, block: Block, x: str) -> str:
    y = _normalized(graph, block.second, _rectified(graph, block.first, x))
    shortcut = _normalized(graph, block.shortcut, x) if block.projected else x
    return graph.apply("Relu", graph.apply("Add", y, shortcut))


def _normalized(graph: GraphBuilder, layer: ConvBatchNorm, x: str) -> str:
    return graph.normalized_convolution(x, layer.kernel[...], layer.norm, stride=layer.stride)


def _rectified(graph: GraphBuilder, layer: ConvBatchNorm, x: str) -> str:
    return graph.apply("Relu", _normalized(graph, layer, x))
