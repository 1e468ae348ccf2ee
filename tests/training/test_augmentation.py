"""Augmentation: exact where pixels meet pixels, within its bounds, and nothing where nothing is
wanted.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxevo.training.augmentation import Bounds, augment, draw, warp

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)
BOUNDS = Bounds(0.25, 30.0, 0.2)
STILL = jnp.eye(2)[None].repeat(4, 0)
augmented = jax.jit(augment)


def moved(matrix: jax.Array, shift: tuple[int, int]) -> np.ndarray:
    return np.asarray(warp(IMAGES, matrix, jnp.array([shift] * 4, jnp.float32)))


def test_nothing_moves_without_bounds():
    np.testing.assert_array_equal(
        augmented(jax.random.key(0), IMAGES, Bounds(0.0, 0.0, 0.0)), IMAGES
    )


@pytest.mark.parametrize(
    "bounds", [Bounds(0.25, 0.0, 0.0), Bounds(0.0, 30.0, 0.0), Bounds(0.0, 0.0, 0.2)]
)
def test_each_bound_alone_moves_images(bounds):
    assert not np.array_equal(augmented(jax.random.key(0), IMAGES, bounds), IMAGES)


@pytest.mark.parametrize("shift", [(0, 0), (2, 0), (0, -3), (-1, 2)])
def test_a_shift_by_whole_pixels_repeats_the_edge(shift):
    padded = np.pad(IMAGES, ((0, 0), (3, 3), (3, 3), (0, 0)), mode="edge")
    expected = np.roll(padded, shift, axis=(1, 2))[:, 3:-3, 3:-3]
    np.testing.assert_array_equal(moved(STILL, shift), expected)


def test_a_shift_by_half_a_pixel_is_the_mean_of_two():
    found = np.asarray(warp(IMAGES, STILL, jnp.array([[0, -0.5]] * 4)))[:, :, :-1]
    means = (IMAGES[:, :, 1:].astype(int) + IMAGES[:, :, :-1]) / 2
    assert found.dtype == np.uint8
    assert np.abs(found - means).max() <= 0.5


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_quarter_turns_are_exact(turns):
    cos, sin = np.cos(turns * np.pi / 2), np.sin(turns * np.pi / 2)
    found = moved(jnp.array([[[cos, -sin], [sin, cos]]] * 4, jnp.float32), (0, 0))
    np.testing.assert_array_equal(found, np.rot90(IMAGES, -turns, axes=(1, 2)))


def test_draws_are_uniform_within_the_bounds():
    shape = (2000, 10, 20, 1)
    matrices, shifts = map(np.asarray, draw(jax.random.key(1), shape, Bounds(0.1, 30.0, 0.2)))
    angles = np.degrees(np.arctan2(matrices[:, 1, 0], matrices[:, 0, 0]))
    factors = 1 / np.hypot(matrices[:, 1, 0], matrices[:, 0, 0])
    # a rotation and a factor, nothing else
    squares = matrices @ matrices.transpose(0, 2, 1)
    np.testing.assert_allclose(squares, np.eye(2) / factors[:, None, None] ** 2, atol=1e-5)
    assert (np.linalg.det(matrices) > 0).all()
    for values, low, high in (
        (shifts[:, 0], -1, 1),  # of 10 rows
        (shifts[:, 1], -2, 2),  # of 20 columns
        (angles, -30, 30),
        (factors, 0.8, 1.2),
    ):
        width = high - low
        assert (
            low - 1e-4 <= values.min() < low + 0.01 * width
            and high - 0.01 * width < values.max() <= high + 1e-4
        )
        assert abs(values.mean() - (low + high) / 2) < 4 * width / np.sqrt(12 * len(values))
    drawn = np.stack([shifts[:, 0], shifts[:, 1], angles, factors])
    assert np.abs(np.corrcoef(drawn) - np.eye(4)).max() < 4 / np.sqrt(shape[0])


def test_a_larger_factor_shows_less_of_the_image():
    found = np.asarray(
        warp(IMAGES, STILL / 2, jnp.zeros((4, 2)))
    )  # twice as large: a corner comes from row 1.75
    corners = IMAGES[:, 1:3, 1:3].astype(float)
    expected = np.einsum("nijc,i,j->nc", corners, [0.25, 0.75], [0.25, 0.75])
    assert np.abs(found[:, 0, 0] - expected).max() <= 0.5


def test_the_same_key_moves_alike_and_another_otherwise():
    first, again, other = (
        np.asarray(augmented(jax.random.key(k), IMAGES, BOUNDS)) for k in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.dtype == np.uint8 and first.shape == IMAGES.shape


def test_images_of_one_batch_move_differently():
    found = np.asarray(augmented(jax.random.key(0), IMAGES[:1].repeat(4, 0), BOUNDS))
    assert len({image.tobytes() for image in found}) == 4


def test_white_and_black_stay_so():
    for value in (0, 255):
        plain = np.full_like(IMAGES, value)
        np.testing.assert_array_equal(augmented(jax.random.key(3), plain, BOUNDS), plain)
