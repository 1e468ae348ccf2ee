"""The universal network with its cells in C++, for CPUs: same parameters, several times as fast.

`kernels/` has the C++: a cell's forward and backward pass and prediction as custom calls of XLA,
with the genome as their input. This module loads and registers them, and gives the network that
calls them. Where they are not there (`unavailable_reason` says why), `universal_cell` computes the
same in JAX.

Any number of threads computes the same bits. Builds for different instruction sets add up vectors
of different widths in different orders, so their results differ in rounding; `kernels_name` is
recorded with every run. The environment variable `JAXEVO_NATIVE` chooses: `0` turns the native form
off; `avx512`, `avx2` or `generic` takes this build also where a wider one would run.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxevo import machine
from jaxevo.config import NetworkConfig
from jaxevo.networks.universal import UniversalCell, UniversalNetwork
from jaxevo.networks.universal_cell import Moments, Outlet
from jaxevo.networks.universal_encoding import EncodedCell
from jaxevo.networks.universal_operands import Slots
from jaxevo.search_space.genome import OPS

_LIBRARY = pathlib.Path(__file__).with_name("_kernels.so")
_CALLS = ("jaxevo_cell_forward", "jaxevo_cell_backward", "jaxevo_cell_predict")
_KINDS = ("normal", "reduction", "classifier")  # in the order of the C++
_INTERFACE = 2  # `kInterface` of the C++
_VARIABLE = "JAXEVO_NATIVE"


class _Loaded(NamedTuple):
    """The library, or why there is none."""

    library: ctypes.CDLL | None
    problem: str = ""


@functools.cache
def _load() -> _Loaded:
    """Loads the library and registers its calls, before any program that uses them."""
    wanted = os.environ.get(_VARIABLE, "")
    if wanted == "0":
        return _Loaded(None, f"{_VARIABLE}=0 turns them off")
    if not _LIBRARY.exists():
        return _Loaded(
            None,
            "they were not built; install a C++ compiler (g++ or clang++), or set "
            "JAXEVO_COMPILER=zig, and install this package again",
        )
    # Open the library and find its functions.
    try:
        library = ctypes.CDLL(str(_LIBRARY))
        calls = {name: getattr(library, name) for name in _CALLS}
        interface = library.jaxevo_interface()  # which older builds lack
    except (OSError, AttributeError) as error:
        return _Loaded(None, f"they cannot be loaded ({error}); install this package again")
    if interface != _INTERFACE:
        return _Loaded(None, "they are of another version; install this package again")
    library.jaxevo_operations.restype = ctypes.c_char_p
    operations = library.jaxevo_operations().decode()
    if operations != " ".join(OPS):
        return _Loaded(
            None, f"they were built for other operations ({operations}); install this package again"
        )
    library.jaxevo_kernels_name.restype = ctypes.c_char_p
    library.jaxevo_states_size.restype = ctypes.c_int64
    # Choose the kernels that a person has named, and register all calls with JAX.
    if wanted not in ("", "1") and not library.jaxevo_choose_kernels(wanted.encode()):
        return _Loaded(None, f"this processor or build has no kernels called {_VARIABLE}={wanted}")
    for name, call in calls.items():
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(call), platform="cpu")
    return _Loaded(library)


def unavailable_reason() -> str | None:
    """Why the native kernels do not run here and what would bring them; None where they do."""
    if machine.backend() != "cpu":
        return f"native kernels are for CPUs, and this is a {machine.backend().upper()}"
    problem = _load().problem
    return f"no native kernels: {problem}" if problem else None


def kernels_name() -> str | None:
    """The build that computes, such as `AVX2`; None without native kernels."""
    library = None if unavailable_reason() else _load().library
    return library.jaxevo_kernels_name().decode().upper() if library else None


def limit_threads(number: int) -> None:
    """Lets a call take so many threads at most; 0: as many as XLA has. The results are the same."""
    _library().jaxevo_limit_threads(number)


def _library() -> ctypes.CDLL:
    library = _load().library
    if library is None:
        raise RuntimeError(unavailable_reason())
    return library


def _float32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _output(kind: str, readers: jax.Array, x: jax.Array) -> jax.ShapeDtypeStruct:
    channels, height, width, n = x.shape
    num_slots, reader_channels, _ = readers.shape
    if kind == "classifier":
        return _float32(num_slots, 2 * channels, n)
    divisor = 2 if kind == "reduction" else 1
    return _float32(reader_channels, height // divisor, width // divisor, n)


def _states(readers: jax.Array, x_shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """All states of a cell before batch norm, in the layout of the C++."""
    return _float32(_library().jaxevo_states_size(readers.shape[0], *x_shape))


def _weights(slots: Slots, readers: jax.Array) -> tuple[jax.Array, ...]:
    """The weights as the C++ takes them: full convolutions' kernels `[B, 2, D * 2D, 7, 7]`."""
    kernels = slots.kernels
    flat = kernels.reshape(*kernels.shape[:2], -1, *kernels.shape[-2:])
    return (flat, *slots[1:], readers)


def _call(name: str, outputs, *inputs, outlet: Outlet, full: bool):
    call = jax.ffi.ffi_call(f"jaxevo_cell_{name}", outputs, vmap_method="sequential")
    return call(*inputs, kind=np.int32(_KINDS.index(outlet.kind)), full=full, relu=outlet.relu)


def _forward(outlet: Outlet, slots: Slots, readers: jax.Array, *, x: jax.Array, cell: EncodedCell):
    """Output, moments and states of a cell in training."""
    moments = _float32(*slots.bias.shape)
    outputs = (_output(outlet.kind, readers, x), moments, moments, _states(readers, x.shape))
    inputs = (x, *_weights(slots, readers), *cell)
    out, mean, var, states = _call("forward", outputs, *inputs, outlet=outlet, full=slots.full)
    return out, Moments(mean, var), states


def predict_cell(
    outlet: Outlet,
    slots: Slots,
    readers: jax.Array,
    *,
    running: Moments,
    x: jax.Array,
    cell: EncodedCell,
) -> jax.Array:
    """Input of a cell's readers, where its batch norms use the `running` moments."""
    inputs = (x, *_weights(slots, readers), *cell, *running)
    return _call(
        "predict", _output(outlet.kind, readers, x), *inputs, outlet=outlet, full=slots.full
    )


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def train_cell(
    outlet: Outlet, slots: Slots, readers: jax.Array, x: jax.Array, cell: EncodedCell
) -> tuple[jax.Array, Moments]:
    """A cell in training: what its readers `[B, E, 2D]` get, and moments (no gradient)."""
    return _forward(outlet, slots, readers, x=x, cell=cell)[:2]


class _Residuals(NamedTuple):
    slots: Slots
    readers: jax.Array
    cell: EncodedCell
    states: jax.Array
    moments: Moments
    like_x: jax.Array  # no numbers, but the shape of x in its last axes


def _train_forward(outlet, slots, readers, x, cell):
    out, moments, states = _forward(outlet, slots, readers, x=x, cell=cell)
    like_x = jnp.zeros((0, *x.shape))
    return (out, moments), _Residuals(slots, readers, cell, states, moments, like_x)


def _train_backward(outlet, residuals: _Residuals, cotangents):
    slots, readers, cell, states, moments, like_x = residuals
    weights = _weights(slots, readers)
    gradients = (_float32(*weight.shape) for weight in weights)
    outputs = (_float32(*like_x.shape[1:]), *gradients, _float32(*states.shape))
    inputs = (*weights, *cell, states, *moments, cotangents[0])
    x_gradient, kernels_gradient, *gradients, readers_gradient, _ = _call(
        "backward", outputs, *inputs, outlet=outlet, full=slots.full
    )
    slots_gradient = Slots(kernels_gradient.reshape(slots.kernels.shape), *gradients)
    return slots_gradient, readers_gradient, x_gradient, None


train_cell.defvjp(_train_forward, _train_backward)


class NativeCell(UniversalCell):
    """A cell with the parameters of the universal network's, computed by the native kernels."""

    def __call__(self, x: jax.Array, cell: EncodedCell, train: bool) -> jax.Array:
        slots = Slots(self.kernels[...], self.pointwise[...], self.scale[...], self.bias[...])
        readers = self.readers[...]
        if not train:
            running = Moments(self.mean[...], self.var[...])
            return predict_cell(self.outlet, slots, readers, running=running, x=x, cell=cell)
        out, moments = train_cell(self.outlet, slots, readers, x, cell)  # type: ignore[misc]
        self.mean.set_value(moments.mean)
        self.var.set_value(moments.var)
        return out


class NativeNetwork(UniversalNetwork):
    """The universal network with native cells. Raises `ValueError` where these cannot run."""

    cell_type = NativeCell

    def __init__(
        self,
        config: NetworkConfig,
        max_nodes: int,
        image_shape: tuple[int, int, int],
        *,
        num_classes: int,
    ):
        if reason := unavailable_reason() or unsupported(config):
            raise ValueError(f"{reason}; use engine=universal")
        super().__init__(config, max_nodes, image_shape, num_classes=num_classes)


def unsupported(config: NetworkConfig) -> str | None:
    """A phrase on what the native kernels lack for such networks; None if nothing."""
    if config.precision != "float32":
        return f"native kernels compute in float32 only, not in {config.precision}"
    return None
