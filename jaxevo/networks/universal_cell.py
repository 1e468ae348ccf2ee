"""A cell of any genome, with the genome as data: both passes.

A cell is a loop over its B nodes. An operand is a switch over its operation
(`universal_operands`), of which only the taken branch runs. The next cell's 1x1 convolution over
the concatenated unused states is the sum over these states of their own parts.

Letters beside those of `ops`: `B` is B_max, `D` a cell's channels, `E` channels of whatever reads
the cell.

Forward pass of a cell, with state `h_0` the input and `h_{b+1}` the state of node `b`::

    z_bo = S_bo(h_s(b,o))              spatial part of operand o of node b, which reads h_s(b,o)
    y_bo = BN(P_bo z_bo)               1x1 convolution and batch norm; z_bo if not projected
                                       (a full convolution is S_bo alone, and BN follows it)
    h_{b+1} = [y_b0; y_b1]             concatenation over channels
    out = sum over unused b of R_b(h_{b+1})

`R_b` is the reader's part for the node: a ReLU if the settings have one there, halving in a
reduction cell, then a 1x1 convolution. For the classifier it is the mean over pixels, and `out`
stacks the parts instead of adding them.

The backward pass is our own. Write `G_i` for the gradient of the loss in `h_i`, `g` for that in
`out`, and `J*` for the transposed Jacobian of `J`. All `G_i` begin at zero. Nodes are walked from
the last to the first, so `G_{b+1}` is complete when node `b` is reached::

    G_{b+1} = R_b* g                   if the state is unused; the same pullback gives dR_b
    [g_b0; g_b1] = G_{b+1}             split over channels
    dz_bo = (BN P_bo)* g_bo            g_bo if not projected; gives dP_bo, dscale_bo and dbias_bo
    G_s(b,o) += S_bo* dz_bo            the same pullback gives the kernel's gradient dK_bo

The result for the cell's input is `G_0`. Each `z_bo` is computed again from the stored states, so
only the states are kept between the two passes. An unused state is read by no node, so its gradient
comes from the reader alone; a used one is not read by the next cell.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxevo.networks import convolutions, ops
from jaxevo.networks.universal_encoding import EncodedCell
from jaxevo.networks.universal_operands import (
    Slots,
    add_gradients,
    before_norm,
    is_projected,
    project,
)


class Moments(NamedTuple):
    """Batch norm's statistics of all operands of a cell."""

    mean: jax.Array  # [B, 2, D]
    var: jax.Array  # [B, 2, D]


class Outlet(NamedTuple):
    """How the unused states of a cell are read."""

    kind: str  # of the cell: normal, reduction or (the last one) classifier
    relu: bool = False  # on a state, before anything else


def _at(tree, *index):
    """The part of every array of a tree at an index of its first axes."""
    return jax.tree.map(lambda a: a[index], tree)


def _project(slot: Slots, z: jax.Array) -> tuple[jax.Array, Moments]:
    """Projection and batch norm to `[D, H, W, N]`, and the batch's moments `[D]`."""
    y, mean, var = ops.batch_norm(project(slot, z), slot.scale, slot.bias)
    return y, Moments(mean, var)


def _read(outlet: Outlet, weight: jax.Array, state: jax.Array) -> jax.Array:
    """Part of the next cell's input (`weight` `[E, 2D]`) that comes of a state `[2D, H, W, N]`.

    For the classifier it is the state's mean `[2D, N]`.
    """
    if outlet.relu:
        state = jax.nn.relu(state)
    if outlet.kind == "classifier":
        return state.astype(jnp.float32).mean((1, 2))
    return convolutions.pointwise(ops.halve(state) if outlet.kind == "reduction" else state, weight)


def forward(
    outlet: Outlet,
    slots: Slots,
    readers: jax.Array,
    *,
    running_moments: Moments | None,
    x: jax.Array,
    cell: EncodedCell,
) -> tuple[jax.Array, Moments, jax.Array]:
    """Output, moments, and all states `[B + 1, 2D, H, W, N]` of a cell.

    Row 0 of the states is the input, half as wide as others. With `running_moments` the batch
    norms use these.
    """
    channels, num_slots = x.shape[0], readers.shape[0]
    classified = outlet.kind == "classifier"
    # Row 0 of the states is the input. Rows of nodes are filled as nodes are computed.
    states = jnp.zeros((num_slots + 1, 2 * channels, *x.shape[1:]), x.dtype)
    states = jax.lax.dynamic_update_slice(states, x[None], (0, 0, 0, 0, 0))
    # The output begins at zero; unused states are added to it (or stacked, in the classifier).
    out = jax.eval_shape(functools.partial(_read, outlet), readers[0], states[0])
    out = jnp.zeros((num_slots, *out.shape) if classified else out.shape, out.dtype)
    moments = running_moments or Moments(jnp.zeros_like(slots.bias), jnp.ones_like(slots.bias))

    def operand(states, b, o, *, old):
        slot, op, row = _at(slots, b, o), cell.ops[b, o], cell.states[b, o]
        z = before_norm(slot, states, row, op=op)

        def projected(z):
            if running_moments is None:
                return _project(slot, z)
            y = project(slot, z)
            return ops.normalize(y, slot.scale, slot.bias, mean=old.mean, variance=old.var), old

        return jax.lax.cond(is_projected(row, op), projected, lambda z: (z[:channels], old), z)

    def node(b, carry):
        states, out, moments = carry
        for o in range(2):
            y, new = operand(states, b, o, old=_at(moments, b, o))
            states = jax.lax.dynamic_update_slice(states, y[None], (b + 1, o * channels, 0, 0, 0))
            moments = jax.tree.map(lambda array, part, o=o: array.at[b, o].set(part), moments, new)

        def read(out):
            part = _read(outlet, readers[b], states[b + 1])
            return out.at[b].set(part) if classified else out + part

        return states, jax.lax.cond(cell.unused[b], read, lambda out: out, out), moments

    states, out, moments = jax.lax.fori_loop(0, cell.num_nodes, node, (states, out, moments))
    return out, moments, states


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def train_cell(
    outlet: Outlet, slots: Slots, readers: jax.Array, x: jax.Array, cell: EncodedCell
) -> tuple[jax.Array, Moments]:
    """A cell in training: the output for its readers `[B, E, 2D]`, and its batch norms' moments.

    The moments have no gradient.
    """
    return forward(outlet, slots, readers, running_moments=None, x=x, cell=cell)[:2]


def _cell_forward(outlet, slots, readers, x, cell):
    out, moments, states = forward(outlet, slots, readers, running_moments=None, x=x, cell=cell)
    return (out, moments), (slots, readers, states, cell)


def _operand_gradients(slot: Slots, states, row, *, op, g, gradients) -> tuple[Slots, jax.Array]:
    """Carries an operand's output gradient `g` back to its slot and to the state that it reads.

    Returns the slot's gradient, and the states' gradients with the operand's own added.
    """
    z = before_norm(slot, states, row, op=op)

    def projected(z):
        slot_gradient, z_gradient = jax.vjp(lambda slot, z: _project(slot, z)[0], slot, z)[1](g)
        return slot_gradient, z_gradient

    def plain(z):
        return jax.tree.map(jnp.zeros_like, slot), jax.lax.dynamic_update_slice(z, g, (0, 0, 0, 0))

    # Through batch norm and the projection, where the operand has them.
    slot_gradient, z_gradient = jax.lax.cond(is_projected(row, op), projected, plain, z)

    # Through what comes before, half by half of the channels.
    return add_gradients(
        slot,
        states,
        row,
        op=op,
        g=z_gradient,
        slot_gradient=slot_gradient,
        gradients=gradients,
    )


def _cell_backward(outlet, residuals, cotangents):
    slots, readers, states, cell = residuals
    g, _ = cotangents
    channels = slots.bias.shape[-1]

    def node(i, carry):
        gradients, slot_gradients, reader_gradients = carry
        # The last node first: all readers of a state come after it.
        b = cell.num_nodes - 1 - i

        def from_reader():
            _, pullback = jax.vjp(functools.partial(_read, outlet), readers[b], states[b + 1])
            return pullback(g[b] if outlet.kind == "classifier" else g)

        def from_nodes():
            return jnp.zeros_like(readers[0]), gradients[b + 1]

        # G_{b+1}: from the reader of an unused state, else what the nodes have added so far.
        reader_gradient, gradient = jax.lax.cond(cell.unused[b], from_reader, from_nodes)
        reader_gradients = reader_gradients.at[b].set(reader_gradient)
        for o in range(2):
            # Carry g_bo through the operand to its slot, and add it to the state that is read.
            part = gradient[o * channels : (o + 1) * channels]
            place = _at(slots, b, o), states, cell.states[b, o]
            new, gradients = _operand_gradients(
                *place, op=cell.ops[b, o], g=part, gradients=gradients
            )
            slot_gradients = jax.tree.map(
                lambda array, part, o=o: array.at[b, o].set(part), slot_gradients, new
            )
        return gradients, slot_gradients, reader_gradients

    start = jax.tree.map(jnp.zeros_like, (states, slots, readers))
    gradients, slot_gradients, reader_gradients = jax.lax.fori_loop(0, cell.num_nodes, node, start)
    # The input fills only the first half of its row.
    return slot_gradients, reader_gradients, gradients[0, :channels], None


train_cell.defvjp(_cell_forward, _cell_backward)
