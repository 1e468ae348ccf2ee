"""An operand of the universal network up to its batch norm, and its gradients.

A switch over the operations, of which only the taken branch runs. Every branch works on D channels,
half of a hidden state or the whole input, so that each is compiled for one width. Separable
convolutions, pools and identity keep the channels apart, and a 1x1 convolution follows. Where
convolutions are full, each half of the channels adds its part to the result.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxevo.networks import convolutions, ops
from jaxevo.search_space.complexity import operand_is_projected
from jaxevo.search_space.genome import NUM_INPUTS, OPS, Op

MAX_KERNEL = max(op.kernel_size for op in OPS)


class Slots(NamedTuple):
    """Parameters of all operands of a cell, or with one axis less (two) of one node (operand)."""

    kernels: jax.Array  # [B, 2, 2D, 7, 7], of full convolutions [B, 2, D, 2D, 7, 7]
    pointwise: jax.Array  # [B, 2, D, 2D]
    scale: jax.Array  # [B, 2, D]
    bias: jax.Array  # [B, 2, D]

    @property
    def full(self) -> bool:
        """Whether convolutions are full, not separable."""
        return self.kernels.ndim == self.pointwise.ndim + 2


def kernel_window(size: int) -> slice:
    """Slice of a slot's axis in which a kernel of this size lies: the middle."""
    return slice((MAX_KERNEL - size) // 2, (MAX_KERNEL + size) // 2)


def before_norm(slot: Slots, states: jax.Array, row: jax.Array, *, op: jax.Array) -> jax.Array:
    """What an operand's 1x1 convolution gets, `[2D, H, W, N]`; of the full kind, its result.

    `row` of the states `[B + 1, 2D, H, W, N]` is the one that the operand reads: 0 the input, k + 1
    node k.
    That result is `[D, H, W, N]`. Of the input only the first half of `2D` is filled, and zeros
    follow.
    """
    if slot.full:
        return _apply_full(slot, states, row, op=op)
    return _apply_spatial(states, row, op, kernel=slot.kernels)


def project(slot: Slots, z: jax.Array) -> jax.Array:
    """What batch norm gets, `[D, H, W, N]`, of a projected operand."""
    return z if slot.full else convolutions.pointwise(z, slot.pointwise)


def is_projected(row: jax.Array, op: jax.Array) -> jax.Array:
    """Whether an operand has batch norm and, but for full convolutions, a 1x1 convolution."""
    return jnp.asarray(_NEEDS_PROJECTION)[(row > 0).astype(jnp.int32), op]


def add_gradients(
    slot: Slots,
    states: jax.Array,
    row: jax.Array,
    *,
    op: jax.Array,
    g: jax.Array,
    slot_gradient: Slots,
    gradients: jax.Array,
) -> tuple[Slots, jax.Array]:
    """Carries the gradient `g` of `before_norm` back to the slot and to the state that it reads.

    Returns `slot_gradient`, which is zero for what `before_norm` uses, with this written, and
    `gradients`, those of all states, with the operand's own added.
    """
    half_gradients = _full_half_gradients if slot.full else _spatial_half_gradients

    def body(half, carry):
        gradients, slot_gradient = carry
        x_gradient, slot_gradient = half_gradients(
            slot, states, row, op=op, half=half, g=g, slot_gradient=slot_gradient
        )
        total = _half(gradients, half, row) + x_gradient
        start = (row, half * total.shape[0], 0, 0, 0)
        return jax.lax.dynamic_update_slice(gradients, total[None], start), slot_gradient

    start = (gradients, slot_gradient)
    gradients, slot_gradient = jax.lax.fori_loop(0, _num_halves(row), body, start)
    return slot_gradient, gradients


def _half(array: jax.Array, half: jax.Array, *index: jax.Array) -> jax.Array:
    """D of the 2D channels of `array[index]`."""
    array = jax.lax.dynamic_slice(
        array,
        (
            *index,
            half * (array.shape[len(index)] // 2),
            *(0 for _ in array.shape[len(index) + 1 :]),
        ),
        (*(1 for _ in index), array.shape[len(index)] // 2, *array.shape[len(index) + 1 :]),
    )  # fmt: skip
    return array.reshape(array.shape[len(index) :])


def _num_halves(row: jax.Array) -> jax.Array:
    """A hidden state has two halves of D channels, the input one."""
    return 1 + (row > 0)


# Of an operand on the input (row 0), and on a node (a row above 0; as a genome counts states, one
# from NUM_INPUTS on).
_NEEDS_PROJECTION = np.array(
    [[operand_is_projected(state, op) for op in OPS] for state in (0, NUM_INPUTS)]
)


# ------------------------------------------------------------------------- separable convolutions


def _spatial(op: Op, x: jax.Array, kernel: jax.Array) -> jax.Array:
    """`ops.spatial` for the kernel `[D, 7, 7]` of a slot."""
    window = kernel_window(op.kernel_size)
    return ops.spatial(op, x, kernel[:, window, window] if op.kernel_size else None)


def _spatial_gradients(
    op: Op, x: jax.Array, kernel: jax.Array, g: jax.Array
) -> tuple[jax.Array, jax.Array]:
    return jax.vjp(functools.partial(_spatial, op), x, kernel)[1](g)


_SPATIAL = tuple(functools.partial(_spatial, op) for op in OPS)
_SPATIAL_GRADIENTS = tuple(functools.partial(_spatial_gradients, op) for op in OPS)


def _apply_spatial(
    states: jax.Array, row: jax.Array, op: jax.Array, *, kernel: jax.Array
) -> jax.Array:
    def body(half: jax.Array, z: jax.Array) -> jax.Array:
        part = jax.lax.switch(op, _SPATIAL, _half(states, half, row), _half(kernel, half))
        return jax.lax.dynamic_update_slice_in_dim(z, part, half * part.shape[0], 0)

    return jax.lax.fori_loop(0, _num_halves(row), body, jnp.zeros(states.shape[1:], states.dtype))


def _spatial_half_gradients(slot: Slots, states, row, *, op, half, g, slot_gradient: Slots):
    """Gradients of half of a state's channels `[D, H, W, N]`, and of the slot with its part."""
    x, kernel = _half(states, half, row), _half(slot.kernels, half)
    x_gradient, part = jax.lax.switch(op, _SPATIAL_GRADIENTS, x, kernel, _half(g, half))
    kernels = jax.lax.dynamic_update_slice_in_dim(
        slot_gradient.kernels, part, half * part.shape[0], 0
    )
    return x_gradient, slot_gradient._replace(kernels=kernels)


# ------------------------------------------------------------------------------ full convolutions


def _full(
    op: Op, x: jax.Array, kernel: jax.Array, weight: jax.Array, projected: jax.Array
) -> jax.Array:
    """What `x` `[D, H, W, N]` adds to an operand.

    A convolution has `kernel` `[D, D, 7, 7]`; pools and identity, if projected, `weight` `[D, D]`.
    """
    if op.kernel_size:
        window = kernel_window(op.kernel_size)
        return convolutions.full_convolution(jax.nn.relu(x), kernel[:, :, window, window])
    z = ops.spatial(op, x, None)
    return jax.lax.cond(projected, lambda z: convolutions.pointwise(z, weight), lambda z: z, z)


def _full_gradients(
    op: Op,
    x: jax.Array,
    kernel: jax.Array,
    weight: jax.Array,
    projected: jax.Array,
    g: jax.Array,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    def full(x: jax.Array, kernel: jax.Array, weight: jax.Array) -> jax.Array:
        return _full(op, x, kernel, weight, projected)

    return jax.vjp(full, x, kernel, weight)[1](g)


_FULL = tuple(functools.partial(_full, op) for op in OPS)
_FULL_GRADIENTS = tuple(functools.partial(_full_gradients, op) for op in OPS)


def _full_inputs(slot: Slots, states, row, *, op, half) -> tuple[jax.Array, ...]:
    """The inputs of `_full` for half of a state's channels."""
    channels = slot.bias.shape[-1]
    kernel, weight = (
        jax.lax.dynamic_slice_in_dim(weights, half * channels, channels, 1)
        for weights in (slot.kernels, slot.pointwise)
    )
    return _half(states, half, row), kernel, weight, is_projected(row, op)


def _apply_full(slot: Slots, states: jax.Array, row: jax.Array, *, op: jax.Array) -> jax.Array:
    def part(half: jax.Array | int) -> jax.Array:
        return jax.lax.switch(op, _FULL, *_full_inputs(slot, states, row, op=op, half=half))

    return jax.lax.fori_loop(1, _num_halves(row), lambda half, y: y + part(half), part(0))


def _full_half_gradients(slot: Slots, states, row, *, op, half, g, slot_gradient: Slots):
    """Gradients of half of a state's channels `[D, H, W, N]`, and of the slot with its part."""
    inputs = _full_inputs(slot, states, row, op=op, half=half)
    x_gradient, *parts = jax.lax.switch(op, _FULL_GRADIENTS, *inputs, g)
    kernels, pointwise = (
        jax.lax.dynamic_update_slice_in_dim(weights, part, half * g.shape[0], 1)
        for weights, part in zip(slot_gradient[:2], parts, strict=True)
    )
    return x_gradient, slot_gradient._replace(kernels=kernels, pointwise=pointwise)
