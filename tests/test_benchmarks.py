"""Benchmarks can be started: what they import of the package is there, and help is shown."""

from __future__ import annotations

import importlib
import json
import lzma
import subprocess
import sys

import numpy as np
import pytest
from conftest import REPOSITORY

from jaxevo.config import NetworkConfig
from jaxevo.run.trial import Trial
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_genome

FOLDER = REPOSITORY / "benchmarks"
NEEDS_TORCH = "torch_network.py"
PARTS = {  # which the others import
    *("curves.py", "driver_cost.py", "measuring.py", "plain.py", "roofline.py"),
    *("simulated_search.py", "simulated_workers.py"),
}
# Each script is run under another name than `__main__`, so that it imports and does nothing else.
START_ALL = """
import pathlib, runpy, sys
sys.path.insert(0, sys.argv[1])
for script in sys.argv[2:]:
    print(script, "main" in runpy.run_path(f"{sys.argv[1]}/{script}", run_name="imported"))
"""


def test_every_script_can_be_started(launch_environment):
    scripts = sorted(path.name for path in FOLDER.glob("*.py") if path.name != NEEDS_TORCH)
    command = [sys.executable, "-c", START_ALL, str(FOLDER), *scripts]
    done = subprocess.run(command, env=launch_environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    started = dict(line.split() for line in done.stdout.splitlines())
    assert list(started) == scripts
    parts = {name for name, has_main in started.items() if has_main == "False"}
    assert parts == PARTS


def test_every_script_is_in_the_table():
    text = (FOLDER / "README.md").read_text()
    scripts = {path.name for path in FOLDER.glob("*.py")} - PARTS - {NEEDS_TORCH}
    assert {name for name in scripts if f"`{name}`" not in text} == set()


@pytest.fixture
def simulated(monkeypatch):
    """The module of simulated workers."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("simulated_workers")


def workers_of(simulated, number: int, **conditions: float):
    return simulated.SimulatedWorkers(
        number,
        np.ones(1),
        simulated.Conditions("", "", **conditions),
        fitness=lambda genome, seed: seed[-1] / 100,
        seed=0,
    )


def trials(*ids: int):
    return [Trial(None, (0, 0, each)) for each in ids]


def test_simulated_workers_take_trials_in_order_and_time_passes_until_the_first_is_done(simulated):
    workers = workers_of(simulated, 2)
    assert workers.evaluate(trials(0, 1, 2)).accuracy == 0.0 and workers.now == 1
    assert workers.evaluate(trials(1, 2)).accuracy == 0.01 and workers.now == 1
    assert workers.evaluate(trials(2)).accuracy == 0.02 and workers.now == 2
    assert (workers.busy, workers.available) == (3, 4)


def test_a_simulated_training_that_dies_twice_has_failed(simulated):
    workers = workers_of(simulated, 1, dying_share=1.0)
    assert workers.evaluate(trials(0)).failure == "the process died, twice"
    assert 0 < workers.now < 2 and workers.lost == pytest.approx(workers.busy)
    assert workers.busy == pytest.approx(workers.now)


def test_trainings_of_a_lost_node_begin_again_elsewhere(simulated):
    workers = workers_of(simulated, 8, node_life=2.0, node_absence=1.0)
    order = range(100)
    found = [workers.evaluate(trials(*order[k : k + 20])).accuracy for k in order]
    assert found == [k / 100 for k in order]  # nothing is lost, doubled or failed
    assert workers.lost > 0 and workers.busy - workers.lost == pytest.approx(100)
    assert workers.available < 8 * workers.now


def test_scaleout_has_the_same_histories_on_any_number_of_workers(launch_environment, tmp_path):
    command = [sys.executable, str(FOLDER / "scaleout.py"), "--quick"]
    output = tmp_path / "scaleout.json"
    subprocess.run([*command, f"--output={output}"], env=launch_environment, check=True)
    tables = json.loads(output.read_text())
    histories: dict[tuple[str, int], set[str]] = {}
    for row in tables["utilisation"]:
        assert 0 < row["utilisation"] <= 1
        histories.setdefault((row["conditions"], row["lag"]), set()).add(row["history"])
    # Under each of five conditions 2 and 6 workers have 2, 4, 6 and 6, 12, 18 candidates under
    # way, or a generation.
    assert (len(tables["utilisation"]), len(histories)) == (5 * 8, 5 * 6)
    assert all(len(each) == 1 for each in histories.values())
    assert {row["strategy"] for row in tables["quality"]} == {"rea", "aging", "random"}
    assert all(row["per_second"] > 0 for row in tables["driver"])


# A made-up table: the truth is the number of nodes, and a fitness is the truth with noise.


def made_up_lines(genomes: int = 80, seeds: int = 3) -> list[dict]:
    rng = np.random.default_rng(0)
    lines = []
    for number in range(genomes):
        genome = random_genome(rng, 2, 6)
        share = sum(cell.num_nodes for cell in genome.cells) / 12
        for seed in range(seeds):
            for training in ("steady", "final"):
                loss = np.exp(-share) * np.exp(0.02 * rng.normal())
                key = {"genome": number, "seed": seed, "training": training}
                curve = [[np.exp(-loss), loss, np.exp(-loss), loss, loss]] * 2
                lines.append({"key": key, "genome": genome.to_dict(), "curve": curve})
    return lines


@pytest.fixture
def modelled(monkeypatch):
    """The module of searches on a model of trainings."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("simulated")


def test_a_model_of_trainings_orders_genomes_as_they_were_measured(modelled):
    lines = made_up_lines()
    landscape = modelled.Landscape.fit(lines, "speed", "steady")
    assert min(landscape.taus) > 0.6
    genomes = [Genome.from_dict(line["genome"]) for line in lines[:: 2 * 3]]
    truth, *fitness = landscape.values(genomes).T
    measured = [modelled.truth_of(line) for line in lines[1 :: 2 * 3]]
    assert modelled.tau(truth, np.array(measured)) > 0.6
    assert np.corrcoef(truth, fitness)[0, 1:].min() > 0.8
    # Seeds spread the loss by 0.02 of itself, and a fitness is exp of minus the loss.
    noise = np.array([landscape.seed_noise(np.random.default_rng(seed)) for seed in range(300)])
    np.testing.assert_allclose(noise.std(0), 0.02 * 0.6 * np.exp(-0.6), rtol=0.5)
    # After both epochs the fitness is the same.
    np.testing.assert_allclose(noise[:, 0], noise[:, 1], atol=1e-6)
    np.testing.assert_allclose(fitness[0], fitness[1], atol=1e-6)
    np.testing.assert_array_equal(landscape.values(genomes).T[0], truth)


def test_searches_on_a_model_find_what_is_better_than_random_genomes(modelled):
    landscape = modelled.Landscape.fit(made_up_lines(), "speed", "steady")
    for way in (
        modelled.Way("random", "speed", epochs=2),
        modelled.Way("guided", "speed", epochs=1),
        modelled.Way("guided", "accuracy", epochs=1),
        modelled.Way("guided", "speed", epochs=2, racing=True),
    ):
        found = [modelled.search(landscape, way, seed, 36) for seed in range(4)]
        assert np.mean(found) > 1.0  # standard deviations above the mean of random genomes
        assert found[0] == modelled.search(landscape, way, 0, 36)


@pytest.fixture
def layouts(monkeypatch):
    """The module of searches on a model of layouts."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("layouts")


def test_the_table_of_layouts_has_what_the_space_has(layouts):
    lines = layouts.read(layouts.TABLE)
    assert len(lines) > 1000
    for line in lines[::50]:
        genome = Genome.from_dict(line["genome"])
        assert layouts.BUILDER.complexity(genome).parameters <= layouts.BOUND
        assert line["fitness"] and all(0 <= value <= 1 for value in line["fitness"])


def test_searches_on_a_model_of_layouts_are_repeatable(layouts):
    lines = layouts.read(layouts.TABLE)[::5]
    landscape = layouts.Landscape.fit(lines)
    found = [layouts.search(landscape, "random", seed) for seed in (0, 1, 0)]
    assert found[0] == found[2] != found[1]
    known = [landscape.truth(Genome.from_dict(line["genome"])) for line in lines[::5]]
    assert min(found) > np.median(known)


def test_candidates_of_runs_are_a_line_a_genome(layouts, tmp_path):
    def individual(number: int, genome: Genome, **named: object) -> dict[str, object]:
        record = {"kind": "individual", "id": number, "genome": genome.to_dict()}
        return record | {"fitness": 0.5, "reused": None} | named

    one, other = (Genome.from_dict(line["genome"]) for line in made_up_lines()[:: 2 * 3][:2])
    records = [
        individual(0, one, fitness=0.25),
        individual(1, other, fitness=None),  # has failed
        individual(2, one, fitness=0.25, reused=0),
        {"kind": "retraining", "id": 2, "fitness": 0.75},
    ]
    (tmp_path / "history.jsonl").write_text("\n".join(map(json.dumps, records)))
    (line,) = layouts.candidates_of([tmp_path])
    assert line == {"genome": one.to_dict(), "fitness": [0.25], "again": [0.75]}


def test_a_race_ends_what_is_behind_its_rival(modelled):
    means = np.array([1.0, 0.8, 0.7])
    rival = modelled.race(np.exp(-means), None)
    assert rival.losses == pytest.approx((1.0, 0.6, 0.5)) and rival.loss == pytest.approx(0.7)
    assert modelled.race(np.exp(-1.05 * means), rival).loss == pytest.approx(1.05 * 0.7)
    behind = modelled.race(np.exp(-np.array([1.05, 0.9, 0.7])), rival)
    assert behind.losses == pytest.approx((1.05, 0.75))
    assert behind.loss == pytest.approx(0.9 * 0.7 / 0.8)


def test_full_trainings_take_all_images_where_short_ones_take_a_few(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    curves = importlib.import_module("curves")
    bench = curves.Bench.open(
        "digits", None, network=NetworkConfig(channels=2), examples=100, validation=0.2
    )
    assert (len(bench.data.subset), len(bench.data.whole().subset)) == (100, 1149)


def test_trainings_are_read_plain_and_compressed(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FOLDER))
    curves = importlib.import_module("curves")
    lines = made_up_lines(genomes=2)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "plain.jsonl").write_text(text)
    with lzma.open(tmp_path / "packed.jsonl.xz", "wt") as file:
        file.write(text)
    assert curves.read(tmp_path / "plain.jsonl") == lines
    assert curves.read(tmp_path / "packed.jsonl.xz") == lines
