"""A trained network as an ONNX model: its graph with all that is to be known about it.

The model's metadata are JSON, each under its key: `class_names`, `input_form`, `dataset`,
`content`, `genome` or `model`, `network`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jaxevo.extras import need
from jaxevo.versions import versions


def onnx_model(
    network: Any, image_shape: tuple[int, int, int], metadata: Mapping[str, Any]
) -> bytes:
    """The bytes of a network's model, which has passed ONNX's own checker.

    Args:
        network: The module.
        image_shape: Height, width and channels of its images.
        metadata: Plain values; `class_names` is among them.

    Raises:
        InputError: The package `onnx` is not installed.
    """
    need("onnx", "export")
    import onnx

    from jaxevo.networks import onnx_graph
    from jaxevo.networks.onnx_network import network_graph

    model = onnx.helper.make_model(
        network_graph(network, image_shape, len(metadata["class_names"])),
        producer_name="jaxevo",
        producer_version=versions()["jaxevo"],
        opset_imports=[onnx.helper.make_opsetid("", onnx_graph.OPSET)],
        ir_version=onnx_graph.IR_VERSION,
    )
    texts = {key: json.dumps(value) for key, value in metadata.items()}
    onnx.helper.set_model_props(model, texts)
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)
