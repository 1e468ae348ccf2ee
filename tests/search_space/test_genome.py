"""Genomes: validation, files, and the canonical key against brute force."""

import itertools
import json
import statistics
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY

from jaxevo.config import NetworkConfig
from jaxevo.search_space import complexity
from jaxevo.search_space import genome as genomes
from jaxevo.search_space.genome import MAX_FILE_BYTES, MAX_NODES, OPS, Cell, Genome, Node, Op
from jaxevo.search_space.variation import random_cell, random_genome

CONV_3X3, CONV_5X5, IDENTITY = Op.CONV_3X3, Op.CONV_5X5, Op.IDENTITY


def node(i: int, j: int, op_1: Op = CONV_3X3, op_2: Op = CONV_3X3) -> Node:
    return Node((i, j), (op_1, op_2))


def brute_force_form(cell: Cell) -> tuple:
    """The smallest listing over all numberings of the nodes: two cells share it exactly if they are isomorphic."""
    forms = []
    for numbers in itertools.permutations(range(1, cell.num_nodes + 1)):
        label = (0, 0, *numbers)
        listing = [()] * cell.num_nodes
        for k, n in enumerate(cell.nodes):
            listing[numbers[k] - 1] = tuple(sorted((label[i], str(op)) for i, op in n.operands))
        forms.append(tuple(listing))
    return min(forms)


def isomorphic_copy(rng: np.random.Generator, cell: Cell) -> Cell:
    """The nodes in another topological order, operands swapped and the two inputs exchanged at random."""
    label, nodes = {0: 0, 1: 1}, []
    while len(nodes) < cell.num_nodes:
        ready = [s for s, n in enumerate(cell.nodes, 2) if s not in label and all(i in label for i in n.inputs)]
        state = ready[rng.integers(len(ready))]
        operands = [(label[i] if i > 1 else int(rng.integers(2)), op) for i, op in cell.nodes[state - 2].operands]
        rng.shuffle(operands)  # type: ignore[arg-type]
        nodes.append(Node((int(operands[0][0]), int(operands[1][0])), (Op(operands[0][1]), Op(operands[1][1]))))
        label[state] = len(nodes) + 1
    return Cell(tuple(nodes))


def key(cell: Cell) -> str:
    return Genome(cell, cell).canonical_key()


def assert_keys_mean_isomorphism(cells: list[Cell]) -> int:
    """Equal keys exactly where brute force finds isomorphism; returns how many classes there are."""
    pairs = {(key(cell), brute_force_form(cell)) for cell in cells}
    assert len(pairs) == len({k for k, _ in pairs}) == len({form for _, form in pairs})
    return len(pairs)


def all_cells(num_nodes: int, ops: tuple[Op, ...]) -> list[Cell]:
    places = [
        [node(i, j, a, b) for i, j in itertools.product(range(k + 2), repeat=2) for a, b in itertools.product(ops, ops)]
        for k in range(num_nodes)
    ]
    return [Cell(nodes) for nodes in itertools.product(*places)]


def test_canonical_key_of_every_small_cell():
    # Of n ops there are p = n(n+1)/2 pairs, and as many nodes that read inputs only. A second node is another such
    # (p(p+1)/2 cells), reads the first once (n*n for each first), or twice (p for each first).
    assert assert_keys_mean_isomorphism(all_cells(1, (CONV_3X3, IDENTITY))) == 3
    assert assert_keys_mean_isomorphism(all_cells(2, (CONV_3X3, IDENTITY))) == 6 + 3 * 4 + 3 * 3
    assert assert_keys_mean_isomorphism(all_cells(2, (CONV_3X3, CONV_5X5, IDENTITY))) == 21 + 6 * 9 + 6 * 6


@pytest.mark.parametrize("num_ops", [1, 2, 6])
def test_canonical_key_of_random_cells(num_ops: int):
    rng = np.random.default_rng(num_ops)
    cells = []
    for index in range(200):
        drawn = random_cell(rng, 2 + index % 4)
        cell = Cell(tuple(node(*n.inputs, *(OPS[OPS.index(op) % num_ops] for op in n.ops)) for n in drawn.nodes))
        cells += [cell, isomorphic_copy(rng, cell)]
    assert assert_keys_mean_isomorphism(cells) <= 200


MAX_CALLS = 10_000_000  # of functions, for ten cells: some seconds at most; without pruning there would be billions
ADVERSARIAL = {
    "all equal": Cell((node(0, 1),) * 12),
    "six pairs": Cell((node(0, 1),) * 6 + tuple(node(i, i) for i in range(2, 8))),
    "four joins of two": Cell((node(0, 1),) * 8 + tuple(node(i, i + 1, CONV_3X3, CONV_5X5) for i in range(2, 10, 2))),
    "three joins and three left": Cell(
        (node(0, 1),) * 9 + tuple(node(i, i + 1, CONV_3X3, CONV_5X5) for i in range(2, 8, 2))
    ),
    "a ring": Cell((node(0, 1),) * 6 + tuple(node(2 + i, 2 + (i + 1) % 6) for i in range(6))),
    "two rings": Cell(
        (node(0, 1),) * 6 + tuple(node(2 + 3 * r + i, 2 + 3 * r + (i + 1) % 3) for r in range(2) for i in range(3))
    ),
    "four chains": Cell((node(0, 1),) * 4 + tuple(node(i, i) for i in range(2, 10))),
    "a tree": Cell((node(0, 1),) * 6 + tuple(node(2 * i + 2, 2 * i + 3) for i in range(5)) + (node(12, 12),)),
}


@pytest.mark.parametrize("shape", ADVERSARIAL)
def test_canonical_key_is_quick_for_symmetric_cells(shape: str):
    rng = np.random.default_rng(0)
    cells = [isomorphic_copy(rng, ADVERSARIAL[shape]) for _ in range(10)]
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event.endswith("call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        copies = {key(cell) for cell in cells}
    finally:
        sys.setprofile(before)
    assert len(copies) == 1
    assert calls < MAX_CALLS


def test_canonical_key_tells_symmetric_cells_apart():
    assert len({key(cell) for cell in ADVERSARIAL.values()}) == len(ADVERSARIAL)


def test_canonical_key_of_large_cells_survives_renumbering():
    rng = np.random.default_rng(1)
    for _ in range(100):
        cell = random_cell(rng, MAX_NODES)
        assert key(cell) == key(isomorphic_copy(rng, cell))


def test_canonical_key_tells_normal_from_reduction():
    one, two = Cell((node(0, 1),)), Cell((node(0, 0, IDENTITY),))
    assert Genome(one, two).canonical_key() != Genome(two, one).canonical_key()


def test_unused_states_are_those_that_no_node_reads():
    cell = Cell((node(0, 1), node(0, 2), node(1, 1), node(3, 3)))
    assert cell.unused_states() == (4, 5)
    assert cell.num_nodes == 4


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Node((0,), (CONV_3X3, CONV_3X3)), ["inputs", "two state numbers", "[0]"]),  # type: ignore[arg-type]
        (lambda: Node((0, True), (CONV_3X3, CONV_3X3)), ["inputs", "True"]),
        (lambda: Node((0, 1.0), (CONV_3X3, CONV_3X3)), ["inputs", "1.0"]),  # type: ignore[arg-type]
        (lambda: Node((0, 1), (CONV_3X3, "conv_9x9")), ["ops", "conv_9x9", *OPS]),  # type: ignore[arg-type]
        (lambda: Node((0, 1), ()), ["ops", "[]", *OPS]),  # type: ignore[arg-type]
        (lambda: Cell(()), ["1 to 12 nodes", "not 0"]),
        (lambda: Cell((node(0, 1),) * 13), ["1 to 12 nodes", "not 13"]),
        (lambda: Cell((node(0, 1), node(0, 3))), ["node 1", "input 3", "0 to 2"]),
        (lambda: Cell((node(-1, 1),)), ["node 0", "input -1", "0 to 1"]),
    ],
)
def test_an_impossible_genome_is_refused_in_words(make, words: list[str]):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), error.value


def test_files_round_trip():
    rng = np.random.default_rng(2)
    for index in range(300):
        genome = random_genome(rng, 1, MAX_NODES)
        metadata = {"fitness": float(rng.random()), "note": "öß\n\ud800", "nested": {"id": index}} if index % 2 else {}
        text = genomes.dumps(genome, metadata)
        loaded = genomes.loads(text)
        assert loaded == (genome, metadata)
        assert all(type(op) is Op for n in loaded[0].normal.nodes for op in n.ops)
        assert Genome.from_dict(json.loads(json.dumps(genome.to_dict()))) == genome
        assert all(line.count('"inputs"') <= 1 for line in text.splitlines())


GOOD_NODE = {"inputs": [0, 1], "ops": ["conv_3x3", "identity"]}


def document(**changes) -> str:
    return json.dumps({"schema": 1, "genome": {"normal": [GOOD_NODE], "reduction": [GOOD_NODE]}} | changes)


def with_node(item) -> str:
    return document(genome={"normal": [GOOD_NODE, item], "reduction": [GOOD_NODE]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["not a JSON document"]),
        ("[" * 100_000, ["not a JSON document"]),
        ("[]", ["genome file", "object", "list"]),
        ("{}", ["missing key", "'genome', 'schema'"]),
        (document(schema=2), ["schema 2", "reads schema 1"]),
        (document(colour=1, size=2), ["unknown key 'colour', 'size'", "genome, metadata, schema"]),
        (document(metadata=[]), ["metadata", "object", "list"]),
        (document(genome={"normal": [GOOD_NODE]}), ["missing key 'reduction'"]),
        (document(genome={"normal": {}, "reduction": []}), ["normal", "list of nodes", "dict"]),
        (document(genome={"normal": [GOOD_NODE], "reduction": []}), ["reduction", "1 to 12 nodes"]),
        (document(genome={"normal": [GOOD_NODE] * 13, "reduction": []}), ["normal", "1 to 12 nodes", "13"]),
        (with_node(GOOD_NODE | {"weight": 1}), ["normal node 1", "unknown key 'weight'", "inputs, ops"]),
        (with_node({"inputs": [0, 1]}), ["normal node 1", "missing key 'ops'"]),
        (with_node({"inputs": "01", "ops": []}), ["normal node 1", "lists of two"]),
        (with_node(GOOD_NODE | {"inputs": [0, 3]}), ["normal", "node 1", "input 3", "0 to 2"]),
        (with_node(GOOD_NODE | {"inputs": [0, None]}), ["normal node 1", "inputs", "None"]),
        (with_node(GOOD_NODE | {"ops": ["conv_3x3", ["x"]]}), ["normal node 1", "ops", *OPS]),
        (with_node(GOOD_NODE | {"inputs": [0, 10**4000]}), ["normal", "node 1", "0 to 2"]),
    ],
)
def test_a_faulty_file_is_refused_in_words(tmp_path, text: str, words: list[str]):
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(ValueError) as error:
        genomes.load(path)
    assert all(word in str(error.value) for word in [str(path), *words]), error.value


def test_a_deeply_nested_value_is_refused_at_any_depth():
    for depth in range(800, 1000, 7):
        for place in ('{{"schema": {}, "genome": 1}}', '{{"schema": 1, "genome": {}}}'):
            with pytest.raises(ValueError):
                genomes.loads(place.format("[" * depth + "]" * depth))


def test_other_files_are_refused(tmp_path):
    large, binary = tmp_path / "large.json", tmp_path / "binary.json"
    large.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    binary.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match=f"large.json.*smaller than {MAX_FILE_BYTES} bytes"):
        genomes.load(large)
    with pytest.raises(ValueError, match="binary.json.*utf-8"):
        genomes.load(binary)
    with pytest.raises(OSError):
        genomes.load(tmp_path / "missing.json")


def test_find_takes_a_path_or_a_shipped_name(tmp_path, monkeypatch):
    genome = random_genome(np.random.default_rng(3), 2, 6)
    (tmp_path / "mine.json").write_text(genomes.dumps(genome, {"from": "me"}))
    monkeypatch.chdir(tmp_path)
    assert genomes.find("mine.json") == genomes.find(str(tmp_path / "mine.json")) == (genome, {"from": "me"})
    with pytest.raises(ValueError, match="'other.json' is neither a file nor one of the shipped"):
        genomes.find("other.json")


def test_evolution_needs_no_jax():
    code = (
        "import sys, jaxevo.search_space.genome, jaxevo.search_space.variation, jaxevo.strategies.regularized\n"
        "assert not {'jax', 'flax', 'orbax'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


SEARCHES = {"mnist-search": ("evoA", "evoB"), "mnist-search-b3": ("model_a",), "mnist-search-b4": ("model_b",)}


@pytest.mark.parametrize("search", SEARCHES)
def test_shipped_genomes_are_the_best_trained_again_of_the_searches_in_docs(search: str):
    folder = REPOSITORY / "docs" / search
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    fresh = json.loads((folder / "fresh.json").read_text())
    best = sorted(fresh, key=lambda number: (-statistics.fmean(fresh[number]), int(number)))
    for name, number in zip(SEARCHES[search], best, strict=False):
        genome, metadata = genomes.load(genomes.shipped_path(name))
        record = history[int(number)]
        assert (metadata["provenance"]["individual"], metadata["search_fitness"]) == (record["id"], record["fitness"])
        assert genome == Genome.from_dict(record["genome"]) and metadata["fresh_fitness"] == fresh[number]
        assert metadata["provenance"]["candidates"] == len(history)
        size = complexity.measure(genome, NetworkConfig(channels=24), (28, 28, 1), 10).parameters
        assert size == metadata["parameters"]["channels=24"] <= 250_000
