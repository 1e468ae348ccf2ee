"""A node computes on the terms of the search, not on its own."""

from __future__ import annotations

import dataclasses

import pytest

from jaxevo.config import WorkerConfig

pytest.importorskip("ray", reason="Ray is not installed: pip install '.[ray]'")

from jaxevo.run.node import Terms  # noqa: E402


def test_what_decides_how_jax_computes_is_taken_along_and_folders_are_not(monkeypatch):
    for name in ("XLA_FLAGS", "JAXEVO_NATIVE", "JAX_ENABLE_X64", "JAX_COMPILATION_CACHE_DIR"):
        monkeypatch.setenv(name, f"value of {name}")
    limits = WorkerConfig(cluster="auto", candidate_timeout=5.0, gpus_per_candidate=0.5)
    terms = Terms.here(limits, keep_compiled=True)
    found = dict(terms.environment)
    assert found["XLA_FLAGS"] == "value of XLA_FLAGS"
    assert {"JAXEVO_NATIVE", "JAX_ENABLE_X64"} <= found.keys()
    assert "JAX_COMPILATION_CACHE_DIR" not in found and "PATH" not in found
    assert terms.limits == WorkerConfig(workers=1, candidate_timeout=5.0)
    assert terms != dataclasses.replace(terms, keep_compiled=False)
