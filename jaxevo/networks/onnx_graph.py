"""Building of ONNX graphs: nodes, constants, and the layers that networks are made of.

Activations are `[N, C, H, W]`, which all runtimes of ONNX are made for; N is unknown. Tensors are
known by their names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from jaxevo.networks.genome_network import BatchNorm
from jaxevo.networks.ops import EPSILON

# The first operator set whose Softmax works along one axis, and whose scales of integers differ by
# channel, which quantization needs. The format that goes with it is read since onnxruntime 1.6.
OPSET = 13
IR_VERSION = 7


class GraphBuilder:
    """Collects the nodes and constants of a graph; each method returns its result's name."""

    def __init__(self) -> None:
        self._nodes: dict[tuple[Any, ...], onnx.NodeProto] = {}
        self._constants: list[onnx.TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        """An array that is part of the graph."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def apply(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """An operator on tensors. Equal calls share a node, such as the ReLU of a state."""
        key = (kind, inputs, repr(sorted(attributes.items())))
        if key not in self._nodes:
            name = output or f"{kind}_{len(self._nodes)}"
            self._nodes[key] = helper.make_node(kind, inputs, [name], name=name, **attributes)
        return self._nodes[key].output[0]

    def join(self, tensors: tuple[str, ...]) -> str:
        """The concatenation over channels."""
        return tensors[0] if len(tensors) == 1 else self.apply("Concat", *tensors, axis=1)

    def normalized_convolution(
        self, x: str, kernel: Any, norm: BatchNorm, *, stride: int = 1
    ) -> str:
        """A convolution by `kernel` `[D, C, k, k]` whose batch norm is part of its weights."""
        scale, bias, mean, variance = (
            np.asarray(each[...], np.float64)
            for each in (norm.scale, norm.bias, norm.mean, norm.var)
        )
        factor = scale / np.sqrt(variance + EPSILON)
        folded = np.asarray(kernel, np.float64) * factor[:, None, None, None]
        shift = (bias - mean * factor).astype(np.float32)
        return self._convolution(x, folded, self.constant(shift), strides=[stride, stride])

    def depthwise(self, x: str, kernel: Any) -> str:
        """A convolution of each channel by its own kernel, `[C, k, k]`."""
        return self._convolution(x, np.asarray(kernel)[:, None], group=len(kernel))

    def _convolution(self, x: str, kernel: np.ndarray, *bias: str, **attributes: Any) -> str:
        k = kernel.shape[-1]
        weights = self.constant(kernel.astype(np.float32))
        pads = [k // 2] * 4
        return self.apply("Conv", x, weights, *bias, kernel_shape=[k, k], pads=pads, **attributes)

    def max_pool(self, x: str, stride: int = 1) -> str:
        """3x3 maximum over the pixels that exist."""
        strides = [stride, stride]
        return self.apply("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=strides)

    def avg_pool(self, x: str) -> str:
        """3x3 average at stride 1 over the pixels that exist."""
        return self.apply("AveragePool", x, kernel_shape=[3, 3], pads=[1] * 4)

    def halve(self, x: str) -> str:
        """2x2 average at stride 2; an odd last row or column is left out."""
        return self.apply("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])

    def finish(
        self, image_shape: tuple[int, int, int], num_classes: int, *, input: str, output: str
    ) -> onnx.GraphProto:
        """The graph of uint8 images `[N, H, W, C]` to float32 `[N, classes]`."""
        images = helper.make_tensor_value_info(input, onnx.TensorProto.UINT8, ["N", *image_shape])
        result = helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, ["N", num_classes])
        nodes = list(self._nodes.values())
        return helper.make_graph(nodes, "jaxevo", [images], [result], self._constants)
