"""Genome files: round trips, faulty ones in words, the shipped ones and where they are from."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest
from conftest import REPOSITORY

from jaxevo.config import MAX_NODES, NetworkConfig
from jaxevo.errors import InputError
from jaxevo.search_space import complexity, genome_files
from jaxevo.search_space.genome import OPS, Genome, Op
from jaxevo.search_space.genome_files import MAX_FILE_BYTES
from jaxevo.search_space.variation import random_small_genome


def test_files_round_trip():
    rng = np.random.default_rng(2)
    for index in range(300):
        genome = random_small_genome(rng, 1, MAX_NODES)
        metadata = (
            {"fitness": float(rng.random()), "note": "öß\n\ud800", "nested": {"id": index}}
            if index % 2
            else {}
        )
        text = genome_files.dumps(genome, metadata)
        loaded = genome_files.loads(text)
        assert loaded == (genome, metadata)
        assert all(type(op) is Op for n in loaded[0].normal.nodes for op in n.ops)
        assert Genome.from_dict(json.loads(json.dumps(genome.to_dict()))) == genome
        assert all(line.count('"inputs"') <= 1 for line in text.splitlines())


GOOD_NODE = {"inputs": [0, 1], "ops": ["conv_3x3", "identity"]}


def document(**changes) -> str:
    return json.dumps(
        {"schema": 1, "genome": {"normal": [GOOD_NODE], "reduction": [GOOD_NODE]}} | changes
    )


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
        (
            document(genome={"normal": [GOOD_NODE] * 13, "reduction": []}),
            ["normal", "1 to 12 nodes", "13"],
        ),
        (
            with_node(GOOD_NODE | {"weight": 1}),
            ["normal node 1", "unknown key 'weight'", "inputs, ops"],
        ),
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
        genome_files.load(path)
    assert all(word in str(error.value) for word in [str(path), *words]), error.value


def test_a_deeply_nested_value_is_refused_at_any_depth():
    for depth in range(800, 1000, 7):
        for place in ('{{"schema": {}, "genome": 1}}', '{{"schema": 1, "genome": {}}}'):
            with pytest.raises(ValueError):
                genome_files.loads(place.format("[" * depth + "]" * depth))


def test_other_files_are_refused(tmp_path):
    large, binary = tmp_path / "large.json", tmp_path / "binary.json"
    large.write_bytes(b" " * (MAX_FILE_BYTES + 1))
    binary.write_bytes(b"\xff\xfe{}")
    with pytest.raises(ValueError, match=f"large.json.*smaller than {MAX_FILE_BYTES} bytes"):
        genome_files.load(large)
    with pytest.raises(ValueError, match="binary.json.*utf-8"):
        genome_files.load(binary)
    with pytest.raises(OSError):
        genome_files.load(tmp_path / "missing.json")


def test_find_takes_a_path_or_a_shipped_name(tmp_path, monkeypatch):
    genome = random_small_genome(np.random.default_rng(3), 2, 6)
    (tmp_path / "mine.json").write_text(genome_files.dumps(genome, {"from": "me"}))
    monkeypatch.chdir(tmp_path)
    assert (
        genome_files.find("mine.json")
        == genome_files.find(str(tmp_path / "mine.json"))
        == (genome, {"from": "me"})
    )
    with pytest.raises(ValueError, match="'other.json' is neither a file nor one of the shipped"):
        genome_files.find("other.json")


SEARCHES = {
    "mnist-search": ("evoA", "evoB"),
    "mnist-search-b3": ("model_a",),
    "mnist-search-b4": ("model_b",),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_shipped_genomes_are_the_best_trained_again_of_the_searches_in_docs(search: str):
    folder = REPOSITORY / "docs" / search
    history = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    fresh = json.loads((folder / "fresh.json").read_text())
    best = sorted(fresh, key=lambda number: (-statistics.fmean(fresh[number]), int(number)))
    for name, number in zip(SEARCHES[search], best, strict=False):
        genome, metadata = genome_files.load(genome_files.shipped_path(name))
        record = history[int(number)]
        assert (metadata["provenance"]["individual"], metadata["search_fitness"]) == (
            record["id"],
            record["fitness"],
        )
        assert (
            genome == Genome.from_dict(record["genome"])
            and metadata["fresh_fitness"] == fresh[number]
        )
        assert metadata["provenance"]["candidates"] == len(history)
        size = complexity.measure(
            genome, NetworkConfig(channels=24), (28, 28, 1), num_classes=10
        ).parameters
        assert size == metadata["parameters"]["channels=24"] <= 250_000


def test_the_small_shipped_genome_is_the_fittest_within_8000_parameters():
    lines = (REPOSITORY / "docs/mnist-front/longer/history.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    valid = [each for each in records if each["kind"] == "individual" and each["fitness"]]
    record = max(
        (each for each in valid if each["parameters"] <= 8000), key=lambda each: each["fitness"]
    )
    genome, metadata = genome_files.load(genome_files.shipped_path("evoS"))
    assert genome == Genome.from_dict(record["genome"])
    assert metadata["provenance"]["individual"] == record["id"]
    assert metadata["provenance"]["candidates"] == len(valid)
    assert metadata["search_fitness"] == record["fitness"]
    size = complexity.measure(genome, NetworkConfig(), (28, 28, 1), num_classes=10).parameters
    assert size == metadata["parameters"]["mnist"] == record["parameters"]


def test_the_shipped_genome_of_20000_parameters_is_its_searchs_winner():
    lines = (REPOSITORY / "docs/mnist-front/guided/history.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    fresh: dict[int, list[float]] = {}
    for each in (each for each in records if each["kind"] == "retraining"):
        fresh.setdefault(each["id"], []).append(each["fitness"])
    winner = max(fresh, key=lambda number: sum(fresh[number]) / len(fresh[number]))
    found = [each for each in records if each["kind"] == "individual"]
    (record,) = (each for each in found if each["id"] == winner)
    genome, metadata = genome_files.load(genome_files.shipped_path("evoM"))
    layout = record["genome"] | {"layout": {"channels": 4, "num_normal_cells": 3}}
    assert genome == Genome.from_dict(layout)
    assert metadata["provenance"]["individual"] == winner
    assert metadata["provenance"]["candidates"] == len(found)
    assert metadata["search_fitness"] == record["fitness"]
    size = complexity.measure(genome, NetworkConfig(), (28, 28, 1), num_classes=10).parameters
    assert size == metadata["parameters"]["mnist"] == record["parameters"] <= 20_000


def test_several_genomes_are_packed_into_a_text_and_unpacked(tmp_path):
    one = random_small_genome(np.random.default_rng(0), 2, 4)
    (tmp_path / "one.json").write_text(genome_files.dumps(one, {"id": 3}))
    text = genome_files.pack([str(tmp_path / "one.json"), "evoA", one])
    assert genome_files.unpack(text) == [one, genome_files.find("evoA.json")[0], one]
    assert "\n" not in text
    assert genome_files.pack([]) == "" and genome_files.unpack("") == []
    with pytest.raises(InputError, match="genome 'evoZ' is neither a file nor one of the shipped"):
        genome_files.pack(["evoA", "evoZ"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "not a JSON document"),
        ("[" * 100_000, "not a JSON document"),
        ("{}", "expected a list of genomes, found dict"),
        ("[3]", "genome: expected an object, found int"),
        ('[{"normal": []}]', "genome: missing key 'reduction'"),
    ],
)
def test_a_text_of_no_genomes_is_refused(text, words):
    with pytest.raises(ValueError, match=words):
        genome_files.unpack(text)
