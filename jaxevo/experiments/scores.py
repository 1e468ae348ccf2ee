"""The scores of a model, as a document and in words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxevo.datasets import Images
from jaxevo.intervals import summarize
from jaxevo.networks.baselines import Architecture, describe
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.search_space.complexity import network_settings
from jaxevo.search_space.genome import Genome
from jaxevo.training.source import Source


def score_document(
    source: Source,
    tested_on: str,
    builder: NetworkBuilder,
    *,
    model: Architecture,
    accuracies: Mapping[str, list[float]],
    tests: Mapping[str, Images],
) -> dict[str, Any]:
    """Plain values for JSON: the model, its sizes, and its scores for each way of resizing.

    Args:
        source: The data trained on.
        tested_on: The data scored.
        builder: Of the model's network.
        model: The genome or hand-designed network.
        accuracies: Of each seed, from 0 to 1, by the way the test images were resized.
        tests: These images.
    """
    size = builder.complexity(model)
    scores = [
        {"resize": method, **summarize(values, len(tests[method]))}
        for method, values in accuracies.items()
    ]
    document = describe(model) | {
        "trained_on": source.dataset,
        "tested_on": tested_on,
        "parameters": size.parameters,
        "multiply_adds": size.multiply_adds,
        "scores": scores,
    }
    if isinstance(model, Genome):
        document["network"] = dataclasses.asdict(network_settings(model, builder.network))
    return document


def document_lines(document: Mapping[str, Any]) -> list[str]:
    """A document of `score_document` in words."""
    lines = []
    for score in document["scores"]:
        low, high = score["interval"]
        number = len(score["accuracies"])
        of = ""
        spread = ""
        if number > 1:
            of = " of seeds and images"
            spread = f", standard deviation {score['std']:.2%} over {number} seeds"
        resized = f" resized by {score['resize']}" if len(document["scores"]) > 1 else ""
        lines.append(
            f"trained on {document['trained_on']}, tested on {document['tested_on']}{resized} "
            f"({score['images']:,} images): {score['mean']:.2%} "
            f"(95 % interval{of} {low:.2%} to {high:.2%}{spread})"
        )
    sizes = f"{document['parameters']:,} parameters, {document['multiply_adds']:,} multiply-adds"
    return [*lines, sizes]
