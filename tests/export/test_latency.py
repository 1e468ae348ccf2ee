"""How long a network takes in onnxruntime: what is told of it."""

from __future__ import annotations

import pytest
from builders_classifiers import fresh_classifier

pytest.importorskip("onnx", reason="needs the extra export")
pytest.importorskip("onnxruntime", reason="needs the extra export")

from jaxevo.export import latency  # noqa: E402


def test_a_measurement():
    classifier = fresh_classifier()
    found = latency.measure(classifier)
    assert found["bytes"] == len(classifier.to_onnx())
    assert [row["images"] for row in found["batches"]] == [1, 64]
    for row in found["batches"]:
        assert row["calls"] >= 30 and 0 < row["median_ms"] <= row["p95_ms"]


def test_a_measurement_in_words():
    row = {"images": 1, "calls": 2000, "median_ms": 0.31484, "p95_ms": 1.5}
    document = {"runtime": "onnxruntime 1.2.3, 1 thread", "bytes": 177503}
    assert latency.document_lines(document | {"batches": [row, row | {"images": 64}]}) == [
        "177,503 bytes as ONNX; onnxruntime 1.2.3, 1 thread:",
        "1 image at once: median 0.315 ms, 95th percentile 1.5 ms (2,000 calls)",
        "64 images at once: median 0.315 ms, 95th percentile 1.5 ms (2,000 calls)",
    ]
