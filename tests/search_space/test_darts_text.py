"""The notation of DARTS: a hand-worked line, there and back, and what cannot be read."""

import numpy as np
import pytest

from jaxevo.errors import InputError
from jaxevo.search_space import darts_text, genome_files
from jaxevo.search_space.genome import Cell, Genome, Layout, Node, Op
from jaxevo.search_space.variation import random_small_genome

GENOME = Genome(
    Cell((Node((0, 1), (Op.CONV_3X3, Op.IDENTITY)), Node((2, 0), (Op.CONV_7X7, Op.CONV_5X5)))),
    Cell((Node((1, 1), (Op.MAX_POOL_3X3, Op.AVG_POOL_3X3)),)),
)
TEXT = (
    "Genotype(normal=[('sep_conv_3x3', 0), ('skip_connect', 1), ('sep_conv_7x7', 2), "
    "('sep_conv_5x5', 0)], normal_concat=[3], reduce=[('max_pool_3x3', 1), ('avg_pool_3x3', 1)], "
    "reduce_concat=[2])\n"
)


def test_a_genome_by_hand():
    assert darts_text.dumps(GENOME) == TEXT
    assert darts_text.loads(TEXT) == GENOME
    assert darts_text.loads(TEXT.replace("reduce_concat=[2]", "reduce_concat=range(2, 3)"))


def test_random_genomes_come_back():
    rng = np.random.default_rng(0)
    for _ in range(300):
        genome = random_small_genome(rng, 1, 6)
        assert darts_text.loads(darts_text.dumps(genome)) == genome


def test_a_file_of_it_is_a_genome_file(tmp_path):
    path = tmp_path / "cells.txt"
    path.write_text(f"\n{TEXT}")
    assert genome_files.find(str(path)) == (GENOME, {})
    path.write_text(TEXT.replace("sep_conv_7x7", "conv_31x31"))
    with pytest.raises(InputError, match=r"cells\.txt: normal: 'conv_31x31' is not one of skip"):
        genome_files.find(str(path))


def test_a_layout_has_no_notation():
    genome = Genome(*GENOME.cells, Layout(4, 2))
    with pytest.raises(ValueError, match="no width and no number of cells"):
        darts_text.dumps(genome)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("Genotype(", "print(", "not a JSON document"),
        ("normal_concat=[3]", "normal_concat=[2, 3]", r"normal_concat is \[2, 3\]; .* \[3\]"),
        ("normal_concat=[3]", "normal_concat=range(3, 10**9)", "plain lists"),
        ("normal_concat=[3]", "normal_concat=range(3, 999)", "plain lists"),
        ("normal_concat=[3]", "normal_concat=['3']", "expected a list of states"),
        ("normal_concat=[3], ", "", "a genotype has normal, normal_concat"),
        ("('skip_connect', 1)", "('skip_connect', 2)", "node 0: input 2 is not one of the earlier"),
        ("('skip_connect', 1)", "('skip_connect', True)", "inputs must be two state numbers"),
        ("('skip_connect', 1)", "('skip_connect', 1, 1)", "is not .operation, input."),
        ("('skip_connect', 1), ", "", "expected a list of two"),
        ("('skip_connect', 1)", "__import__('os')", "plain lists"),
        ("normal_concat=[3]", "normal_concat=" + "(" * 300, "not a genotype"),
        ("normal_concat=[3]", "normal_concat=" + "-" * 30_000 + "1", "not a genotype"),
        ("Genotype(", "Genotype(GENOME, ", "expected Genotype"),
        ("Genotype(", "Genotype(**{}, ", "a genotype has"),
        (TEXT, "Genotype(normal=[], normal_concat=[], reduce=[], reduce_concat=[])", "1 to"),
    ],
)
def test_what_cannot_be_read_is_refused(old: str, new: str, problem: str):
    assert old in TEXT
    with pytest.raises(ValueError, match=problem):
        genome_files.loads(TEXT.replace(old, new))
