"""Random shifts, rotations and scalings of training images, on the device.

Each image gets an affine map of its own about its centre; between pixels it is bilinear, outside
the edge's pixels are repeated. Nothing is mirrored: a mirrored digit is none. Letters: `N` images,
`H` and `W` their sides, `C` channels.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.ndimage import map_coordinates


class Bounds(NamedTuple):
    """Largest moves of an image; with zeros images stay as they are."""

    shift: jax.Array | float  # fraction of each side
    rotation: jax.Array | float  # degrees
    scale: jax.Array | float  # distance of the factor from 1


def augment(key: jax.Array, images: jax.Array, bounds: Bounds) -> jax.Array:
    """Moves each of the images, uint8 `[N, H, W, C]`, by a draw of its own.

    Nothing is computed where all bounds are 0.
    """
    wanted = (bounds.shift > 0) | (bounds.rotation > 0) | (bounds.scale > 0)
    return jax.lax.cond(
        wanted, lambda: warp(images, *draw(key, images.shape, bounds)), lambda: images
    )


def draw(key: jax.Array, shape: tuple[int, ...], bounds: Bounds) -> tuple[jax.Array, jax.Array]:
    """Matrices `[N, 2, 2]` and shifts in pixels `[N, 2]` for `warp`, uniform within the bounds."""
    number, height, width, _ = shape
    # A draw in one dimension compiles faster.
    drawn = jax.random.uniform(key, (4 * number,), minval=-1, maxval=1)
    angle, factor, *shift = drawn.reshape(4, number)
    angle, factor = jnp.radians(bounds.rotation) * angle, 1 + bounds.scale * factor
    cos = jnp.cos(angle) / factor
    sin = jnp.sin(angle) / factor
    matrices = jnp.stack([cos, -sin, sin, cos], -1).reshape(number, 2, 2)
    return matrices, bounds.shift * jnp.stack([height * shift[0], width * shift[1]], -1)


def warp(images: jax.Array, matrices: jax.Array, shifts: jax.Array) -> jax.Array:
    """Moves to the place `p` of each image the pixel that was at `matrix @ (p - shift)`.

    Places are rows and columns from the centre.
    """
    rows, columns = (jnp.arange(side) - (side - 1) / 2 for side in images.shape[1:3])

    def one(image: jax.Array, matrix: jax.Array, shift: jax.Array) -> jax.Array:
        y = (rows - shift[0])[:, None]
        x = (columns - shift[1])[None, :]
        sources = [
            m[0] * y + m[1] * x + (side - 1) / 2
            for m, side in zip(matrix, image.shape, strict=False)
        ]
        return jax.vmap(lambda channel: map_coordinates(channel, sources, 1, "nearest"), -1, -1)(
            image
        )

    return jax.vmap(one)(images, matrices, shifts)
