"""A genome as integers: by hand, padded, and what does not fit."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from conftest import random_genomes

from jaxevo.networks.universal_encoding import encode
from jaxevo.search_space.genome import OPS, Cell, Genome, Node, Op


def test_a_cell_by_hand():
    normal = Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)), Node((2, 1), (OPS[4], OPS[5]))))
    reduction = Cell((Node((1, 0), (OPS[2], OPS[2])), Node((0, 0), (OPS[0], OPS[0]))))
    encoded = encode(Genome(normal, reduction), 3)
    # Both inputs are row 0 of the states, node k is row k + 1; what is beyond the last node is 0.
    first, second = encoded.normal, encoded.reduction
    assert (int(first.num_nodes), int(second.num_nodes)) == (2, 2)
    np.testing.assert_array_equal(first.states, [[0, 0], [1, 0], [0, 0]])
    np.testing.assert_array_equal(first.ops, [[1, 0], [4, 5], [0, 0]])
    np.testing.assert_array_equal(first.unused, [False, True, False])
    np.testing.assert_array_equal(second.states, np.zeros((3, 2)))
    np.testing.assert_array_equal(second.ops, [[2, 2], [0, 0], [0, 0]])
    np.testing.assert_array_equal(second.unused, [True, True, False])


def test_genomes_of_any_size_have_one_shape():
    genomes = random_genomes(20, 1, 6)
    shapes = {
        tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(encode(genome, 6)))
        for genome in genomes
    }
    assert len(shapes) == 1


def test_a_cell_with_too_many_nodes_is_refused():
    (genome,) = random_genomes(1, 5, 5)
    with pytest.raises(ValueError, match="5 nodes does not fit a network for at most 4"):
        encode(genome, 4)
