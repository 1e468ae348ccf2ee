"""Which engine `auto` means, what a folder's training goes on with, and what is said of it."""

from __future__ import annotations

import json
import pathlib

import pytest
from builders_classifiers import BUILDER, GENOME

from jaxevo.config import NetworkConfig, SearchConfig, replace
from jaxevo.errors import InputError
from jaxevo.files import FileError
from jaxevo.networks import native
from jaxevo.networks.baselines import Baseline
from jaxevo.training.engine_choice import (
    choose_engine,
    describe_engine,
    device_name,
    settle_engine,
    with_engine,
)

NETWORK = BUILDER.network
SMALL_CNN = Baseline("small_cnn")
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


def test_the_folder_keeps_the_engine_that_its_training_began_with(tmp_path: pathlib.Path):
    folder = tmp_path / "new"
    assert settle_engine("universal", GENOME, NETWORK, folder=folder) == "universal"
    assert json.loads((folder / "engine.json").read_text()) == {"engine": "universal"}
    for name in ("auto", "universal"):
        assert settle_engine(name, GENOME, NETWORK, folder=folder) == "universal"
    with pytest.raises(InputError, match=f"{folder} holds a training by engine=universal"):
        settle_engine("compiled", GENOME, NETWORK, folder=folder)


def test_a_training_of_before_engines_were_recorded_goes_on_compiled(tmp_path: pathlib.Path):
    (tmp_path / "seed3").mkdir()
    assert settle_engine("auto", GENOME, NETWORK, folder=tmp_path) == "compiled"
    with pytest.raises(InputError, match="holds a training by engine=compiled"):
        settle_engine("universal", GENOME, NETWORK, folder=tmp_path)


def test_auto_is_for_a_genome_what_it_is_in_a_search(tmp_path: pathlib.Path):
    for network in (NETWORK, NetworkConfig(conv_kind="full"), NetworkConfig(precision="bfloat16")):
        assert settle_engine("auto", GENOME, network) == choose_engine("auto", network)
    assert settle_engine("auto", GENOME, NETWORK, folder=tmp_path) == choose_engine("auto", NETWORK)


def test_a_hand_designed_model_is_compiled():
    for name in ("auto", "compiled"):
        assert settle_engine(name, SMALL_CNN, NETWORK) == "compiled"
    with pytest.raises(InputError, match="engine=universal is for genomes; small_cnn has"):
        settle_engine("universal", SMALL_CNN, NETWORK)


def test_an_engine_that_cannot_train_the_network_is_refused(monkeypatch):
    monkeypatch.setattr(native, "unavailable_reason", lambda: None)
    with pytest.raises(InputError, match="float32 only, not in bfloat16; or use engine=universal"):
        settle_engine("native", GENOME, NetworkConfig(precision="bfloat16"))


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"engine": 3}', '{"engine": "fast"}'])
def test_a_damaged_record_is_refused_by_name(tmp_path: pathlib.Path, text: str):
    (tmp_path / "engine.json").write_text(text)
    with pytest.raises(InputError) as caught:
        settle_engine("auto", GENOME, NETWORK, folder=tmp_path)
    assert isinstance(caught.value, FileError) == (text != '{"engine": "fast"}')
