"""Which engine `auto` means, and what is said of it."""

from __future__ import annotations

import pytest

from jaxevo.config import NetworkConfig, SearchConfig, replace
from jaxevo.errors import InputError
from jaxevo.networks import native
from jaxevo.training.engine_choice import choose_engine, describe_engine, device_name, with_engine

REASON = "no native kernels: install a compiler"


def choice(**settings) -> str:
    return with_engine(replace(SearchConfig(), settings)).engine


@pytest.fixture(params=["there", "missing"])
def best(request, monkeypatch) -> str:
    """The best engine, with native kernels and without."""
    missing = request.param == "missing"
    monkeypatch.setattr(native, "unavailable_reason", lambda: REASON if missing else None)
    return "universal" if missing else "native"


def test_what_auto_means_on_a_cpu(best):
    assert choice(engine="auto") == best
    assert choice(engine="auto", precision="bfloat16") == "universal"
    assert choice(engine="auto", candidates_per_step=2, mating_pool="survivors") == "universal"
    assert choice(engine="auto", conv_kind="full") == best
    assert choice(engine="compiled") == "compiled"


def test_a_native_engine_that_cannot_run_says_why(monkeypatch):
    monkeypatch.setattr(native, "unavailable_reason", lambda: REASON)
    with pytest.raises(InputError, match=f"engine=native cannot run: {REASON}"):
        choose_engine("native", NetworkConfig())


def test_a_slower_engine_says_what_would_bring_the_faster_one(monkeypatch):
    monkeypatch.setattr(native, "unavailable_reason", lambda: REASON)
    slower = describe_engine("universal", NetworkConfig())
    assert slower == f"engine universal, slower than native: {REASON}"
    monkeypatch.setattr(native, "unavailable_reason", lambda: None)
    assert describe_engine("universal", NetworkConfig()) == "engine universal"


def test_the_record_names_the_kernels_that_train(monkeypatch):
    monkeypatch.setattr(native, "kernels_name", lambda: "AVX2")
    assert device_name("native") == f"{device_name('universal')}, native AVX2"
    assert describe_engine("native", NetworkConfig()) == "engine native, AVX2"
