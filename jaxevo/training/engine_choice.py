"""The choice of an engine: what `auto` means here, what a folder's training goes on with, and how
an engine and its device are called.
"""

from __future__ import annotations

import pathlib

from jaxevo import machine
from jaxevo.checked import CheckedFields
from jaxevo.config import ENGINES, NetworkConfig, SearchConfig, check_known, replace
from jaxevo.errors import InputError
from jaxevo.files import read_json, write_json
from jaxevo.networks import native
from jaxevo.networks.baselines import Architecture
from jaxevo.search_space.genome import Genome

_RECORD = "engine.json"  # in the folder of a full training's checkpoints


def choose_engine(name: str, network: NetworkConfig, candidates_per_step: int = 1) -> str:
    """The engine that `auto` means here; other names stay.

    On a CPU one program serves all genomes, since compiling takes longer there than training: the
    native one where it can run, else the universal one. On other backends each genome is compiled:
    a switch over operations has not been measured on them.
    Raises `InputError` for an unknown name, and for `native` where that cannot run.
    """
    check_known("engine", name, ENGINES)
    reason = why_not_native(network, candidates_per_step)
    if name == "native" and reason:
        raise InputError(f"engine=native cannot run: {reason}; or use engine=universal")
    if name != "auto":
        return name
    if machine.backend() != "cpu":
        return "compiled"
    return "universal" if reason else "native"


def why_not_native(network: NetworkConfig, candidates_per_step: int = 1) -> str | None:
    """Why the native engine cannot train such networks here; None if it can."""
    if candidates_per_step > 1:
        return "the native engine trains one candidate a step"
    return native.unsupported(network) or native.unavailable_reason()


def with_engine(config: SearchConfig) -> SearchConfig:
    """The configuration with the engine that `auto` means here."""
    engine = choose_engine(config.engine, config.network, config.candidates_per_step)
    return replace(config, {"engine": engine})


def describe_engine(engine: str, network: NetworkConfig, candidates_per_step: int = 1) -> str:
    """The engine in words; of a slower one, also what would bring the native one."""
    if engine == "native":
        return f"engine native, {native.kernels_name()}"
    if engine == "universal":
        reason = why_not_native(network, candidates_per_step)
        return "engine universal" + (f", slower than native: {reason}" if reason else "")
    return f"engine {engine}"


def describe_search_engine(config: SearchConfig) -> str:
    """The engine of a search in words."""
    return describe_engine(config.engine, config.network, config.candidates_per_step)


def device_name(engine: str) -> str:
    """The device and, for the native engine, the kernels on which rounding depends."""
    name = machine.device_name()
    return f"{name}, native {native.kernels_name()}" if engine == "native" else name


def settle_engine(
    name: str, model: Architecture, network: NetworkConfig, *, folder: pathlib.Path | None = None
) -> str:
    """The engine of a model's full training: `auto` goes on with the one that its folder names.

    Args:
        name: One of `config.ENGINES`.
        model: A hand-designed one is always compiled.
        network: How a genome becomes a network.
        folder: Of the training's checkpoints; is made, and takes the engine's name.

    Raises:
        InputError: The engine cannot train the model, or the folder names another one.
    """
    begun = None if folder is None else _begun_with(folder)
    chosen = begun if begun and name == "auto" else name
    if isinstance(model, Genome):
        chosen = choose_engine(chosen, network)
    elif chosen in ("auto", "compiled"):
        chosen = "compiled"
    else:
        raise InputError(f"engine={chosen} is for genomes; {model.name} has engine=compiled")
    if begun and chosen != begun:
        raise InputError(f"{folder} holds a training by engine={begun}; give another folder")
    if folder is not None and begun is None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / _RECORD, {"engine": chosen})
    return chosen


def _begun_with(folder: pathlib.Path) -> str | None:
    """The engine of the training in this folder, if there is one."""
    record = folder / _RECORD
    if record.exists():
        return CheckedFields(str(record), read_json(record)).take("engine", str)
    # Before version 0.3 all were trained by one engine, and it was not recorded.
    return "compiled" if any(folder.glob("seed*")) else None
