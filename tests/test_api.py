"""The library from Python: searches of images in any form, training, loading, evolving, and words
for what cannot be used.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import pathlib
import shutil
from typing import Any

import numpy as np
import pytest
from builders_classifiers import GENOME, fresh_classifier
from builders_data import write_folder
from conftest import timeless
from PIL import Image

import jaxevo
from jaxevo.config import ENGINES, FRONT_KINDS, flatten
from jaxevo.config.presets import RECIPES, STRATEGIES
from jaxevo.errors import InputError
from jaxevo.run.prepare import make_task, run_name
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files
from jaxevo.search_space.genome import Genome, Op
from jaxevo.training.checkpoints import CheckpointError
from jaxevo.training.engine_choice import with_engine

NETWORK = {"channels": 2, "num_normal_cells": 1}
TINY: dict[str, Any] = {
    **{"preset": "quick", "population_size": 2, "num_offspring": 1, "num_generations": 1},
    **{"max_nodes": 2, "epochs": 1, "batch_size": 8, "validation_fraction": 0.25},
    **{"retrain_best": 0, "final_epochs": 1, "final_batch_size": 8, "compare_winner": False},
} | NETWORK


def drawn(number: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of two classes, a dark and a bright one, sorted by class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(number) * 2 // number
    images = rng.integers(0, 100, (number, 8, 8), np.uint8) + 150 * labels[:, None, None]
    return images.astype(np.uint8), labels


TRAIN, TEST = drawn(64, 0), drawn(20, 1)
NAMES = np.array(["a", "b"])
AS_DICT = {
    **{"x_train": TRAIN[0], "y_train": NAMES[TRAIN[1]]},
    **{"x_test": TEST[0], "y_test": NAMES[TEST[1]]},
}


def history(path: pathlib.Path) -> list[dict[str, Any]]:
    """The lines of a run without their seconds."""
    lines = Workdir(path).history.read_text().splitlines()
    return [timeless(json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> jaxevo.Result:
    """A search of arrays with a test."""
    path = tmp_path_factory.mktemp("api") / "run"
    return jaxevo.search(AS_DICT, workdir=path, reporter=Silent(), **TINY)


def test_a_search_of_arrays(searched: jaxevo.Result):
    assert type(searched) is jaxevo.Result and type(searched.genome) is jaxevo.Genome
    assert (searched.dataset, searched.candidates, searched.test_images) == ("arrays", 3, 20)
    assert searched.test_accuracy is not None and searched.test_interval is not None
    low, high = searched.test_interval
    assert 0 <= low <= searched.test_accuracy <= high <= 1
    # Its network is the one that was tested.
    classifier = searched.classifier()
    assert classifier.model == searched.genome
    assert classifier.source.class_names == ("a", "b")
    assert classifier.accuracy(TEST[0], NAMES[TEST[1]]) == searched.test_accuracy
    # The run can be looked into.
    assert load_run(Workdir(searched.path)).result == searched


def test_the_same_call_returns_the_finished_result(searched: jaxevo.Result):
    before = {path: path.stat().st_mtime_ns for path in searched.path.rglob("*.json*")}
    again = jaxevo.search(AS_DICT, workdir=searched.path, reporter=Silent(), **TINY)
    assert again == searched
    assert {path: path.stat().st_mtime_ns for path in searched.path.rglob("*.json*")} == before
    with pytest.raises(InputError, match="the images are not those it began with"):
        jaxevo.search(TRAIN, workdir=searched.path, reporter=Silent(), **TINY)
    with pytest.raises(InputError, match="seed was 0, is 1"):
        jaxevo.search(AS_DICT, workdir=searched.path, reporter=Silent(), **TINY, seed=1)
    # Its test accuracy is that of other test images.
    other = AS_DICT | {"x_test": 255 - TEST[0]}
    with pytest.raises(InputError, match="the test images are not those it began with"):
        jaxevo.search(other, workdir=searched.path, reporter=Silent(), **TINY)


def test_a_run_of_an_earlier_version_goes_on_without_later_settings(searched, tmp_path):
    path = shutil.copytree(searched.path, tmp_path / "run")
    config = path / "config.json"
    document = json.loads(config.read_text())
    for name in ("keep", "compare_winner"):
        del document["config"][name]
    config.write_text(json.dumps(document))
    settings = {name: value for name, value in TINY.items() if name != "compare_winner"}
    arguments = {"workdir": path, "reporter": Silent()}
    again = jaxevo.search(AS_DICT, **arguments, **settings)  # the preset would compare the winner
    assert dataclasses.replace(again, path=searched.path) == searched
    with pytest.raises(InputError, match="compare_winner was False, is True.*--continue to change"):
        jaxevo.search(AS_DICT, **arguments, **settings, compare_winner=True)


def test_a_search_begins_with_given_genomes_and_needs_their_files_no_more(tmp_path):
    file = tmp_path / "given.json"
    file.write_text(genome_files.dumps(GENOME))
    arguments = {"workdir": tmp_path / "run", "reporter": Silent(), "min_nodes": 1} | TINY
    result = jaxevo.search(AS_DICT, initial_genomes=str(file), **arguments)
    first, second, *_ = history(result.path)
    assert (first["genome"], first["operators"]) == (GENOME.to_dict(), ["given"])
    assert second["operators"] == ["random"]
    config = json.loads((result.path / "config.json").read_text())["config"]
    assert json.loads(config["initial_genomes"]) == [GENOME.to_dict()]
    # Without the file: by the same call, by one without the setting, and by one that goes on.
    file.unlink()
    assert jaxevo.search(AS_DICT, initial_genomes=str(file), **arguments) == result
    assert jaxevo.search(AS_DICT, **arguments) == result
    arguments |= {"num_generations": 2}
    longer = jaxevo.search(AS_DICT, initial_genomes=str(file), continue_=True, **arguments)
    assert longer.candidates == 4
    # Genomes themselves are as good as files, and others are refused.
    assert jaxevo.search(AS_DICT, initial_genomes=[GENOME], **arguments) == longer
    with pytest.raises(InputError, match="initial_genomes was .*, is .*"):
        jaxevo.search(AS_DICT, initial_genomes=[GENOME, GENOME], **arguments)


@pytest.mark.parametrize(
    ("genomes", "words"),
    [
        ("nothing.json", "genome 'nothing.json' is neither a file nor one of the shipped ones"),
        ([GENOME] * 3, "initial_genomes=3 genomes is not possible: the population has 2"),
        ("evoA", "initial_genomes=genome 1 is not possible: it has a cell of . nodes"),
    ],
)
def test_genomes_that_cannot_be_given_are_refused(genomes, words, tmp_path):
    given = TINY | {"workdir": tmp_path / "run"}
    with pytest.raises(InputError, match=words):
        jaxevo.search(AS_DICT, initial_genomes=genomes, **given)
    assert not (tmp_path / "run").exists()


class Impatient(Silent):
    """Interrupts after the first candidate."""

    def candidate(self, candidate: Any, strategy: Any) -> None:
        raise KeyboardInterrupt


def test_the_same_call_goes_on_after_an_interruption(searched, tmp_path: pathlib.Path):
    with pytest.raises(KeyboardInterrupt):
        jaxevo.search(AS_DICT, workdir=tmp_path, reporter=Impatient(), **TINY)
    assert len(history(tmp_path)) == 1
    reporter = Silent()
    result = jaxevo.search(AS_DICT, workdir=tmp_path, reporter=reporter, **TINY)
    assert "resuming: 1 candidates are known already" in reporter.messages
    assert history(tmp_path) == history(searched.path)
    same = ("genome", "test_accuracy", "validation_accuracy", "retrained_fitness", "trainings")
    assert [getattr(result, name) for name in same] == [getattr(searched, name) for name in same]


def test_a_finished_run_is_continued_with_what_is_named(searched, tmp_path: pathlib.Path):
    path = shutil.copytree(searched.path, tmp_path / "run")
    arguments = {"workdir": path, "continue_": True, "reporter": Silent()}
    result = jaxevo.search(AS_DICT, num_generations=2, recipe="modern", **arguments)
    assert result.candidates == searched.candidates + 1
    before = history(searched.path)
    assert history(path)[: len(before)] == before
    config = load_run(Workdir(path)).config
    assert config.final_training.schedule == "cosine" and config.network.channels == 2
    # The same again is no change.
    assert jaxevo.search(AS_DICT, num_generations=2, recipe="modern", **arguments) == result


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"channels": 4}, "channels is 2 and cannot become 4, since its candidates were other"),
        ({"strategy": "aging"}, "strategy is 'guided' and cannot become 'aging'"),
        (
            {"preset": "paper"},
            "preset=paper is not possible: the run in .* began with preset quick",
        ),
        ({"recipe": "old"}, "recipe=old is not known"),
        ({"num_generations": 0}, "a search can only be continued beyond its end"),
        ({"data": "digits"}, "dataset is 'arrays' and cannot become 'digits'"),
        ({"data": None}, "was begun with arrays: give its images and labels again"),
        ({"data": TRAIN}, "the images are not those it began with"),
        ({"workdir": "runs/none"}, "runs/none/config.json does not exist; .* not the folder of"),
    ],
)
def test_what_cannot_be_continued_is_refused(arguments, words, searched):
    given = {"data": AS_DICT, "workdir": searched.path, "continue_": True} | arguments
    written = Workdir(searched.path).config.read_text()
    with pytest.raises(InputError, match=words):
        jaxevo.search(given.pop("data"), reporter=Silent(), **given)
    assert Workdir(searched.path).config.read_text() == written


@pytest.mark.parametrize("form", ["npz", "folder"])
def test_images_in_files_are_searched_as_the_same_arrays(form: str, searched, tmp_path):
    if form == "npz":
        data = tmp_path / "own.npz"
        np.savez(data, **AS_DICT)
    else:
        data = tmp_path / "own"
        write_folder(data / "train", *TRAIN)
        write_folder(data / "test", *TEST)
    result = jaxevo.search(data, workdir=tmp_path / "run", reporter=Silent(), **TINY)
    assert result.dataset == str(data)
    assert history(result.path) == history(searched.path)
    assert result.genome == searched.genome
    assert result.test_accuracy == searched.test_accuracy
    assert result.classifier().source.class_names == ("a", "b")


def test_a_run_goes_on_where_its_images_were_moved_to(searched, tmp_path: pathlib.Path):
    began, moved, run = tmp_path / "photos", tmp_path / "disk" / "photos", tmp_path / "run"
    write_folder(began / "train", *TRAIN)
    write_folder(began / "test", *TEST)
    with pytest.raises(KeyboardInterrupt):
        jaxevo.search(began, workdir=run, reporter=Impatient(), **TINY)
    moved.parent.mkdir()
    began.rename(moved)
    with pytest.raises(InputError, match=f"dataset={began} does not exist: check the path"):
        jaxevo.search(began, workdir=run, reporter=Silent(), **TINY)
    reporter = Silent()
    result = jaxevo.search(moved, workdir=run, reporter=reporter, **TINY)
    assert f"{moved} has the images of {began}: it goes on" in reporter.messages
    assert (history(run), result.dataset) == (history(searched.path), str(moved))
    assert result.test_accuracy == searched.test_accuracy
    # It is continued from there too.
    later = shutil.copytree(run, tmp_path / "later")
    arguments = {"workdir": later, "continue_": True, "reporter": Silent()}
    longer = jaxevo.search(moved, num_generations=2, **arguments)
    assert longer.candidates == result.candidates + 1
    # Another pixel is other data.
    Image.fromarray(255 - TRAIN[0][0]).save(moved / "train" / "a" / "0000.png")
    words = f"dataset was '{began}', is '{moved}'; the images are not those it began with"
    with pytest.raises(InputError, match=words):
        jaxevo.search(moved, workdir=run, reporter=Silent(), **TINY)
    with pytest.raises(InputError, match="the images are not those it began with"):
        jaxevo.search(moved, num_generations=3, **arguments)


def test_another_seed_is_told_as_such_and_not_as_other_images(searched):
    with pytest.raises(InputError, match=r"configuration \(seed was 0, is 1\); give the same"):
        jaxevo.search(AS_DICT, workdir=searched.path, reporter=Silent(), seed=1, **TINY)


def test_a_result_stays_with_its_run_after_a_change_of_folder(tmp_path: pathlib.Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = jaxevo.search(AS_DICT, workdir="run", reporter=Silent(), **TINY)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert result.path == tmp_path / "run" and result.classifier().model == result.genome
    assert result.confusion() is not None


def test_two_pairs_may_be_lists():
    lists = [[TRAIN[0], NAMES[TRAIN[1]]], [TEST[0], NAMES[TEST[1]]]]
    assert make_task(lists).data.digest() == make_task(AS_DICT).data.digest()


def test_a_workdir_and_weights_may_lie_in_the_home_folder(tmp_path: pathlib.Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert make_task(AS_DICT, preset="quick", workdir="~/run").workdir.path == tmp_path / "run"
    fresh_classifier().save(tmp_path / "best")
    assert jaxevo.load("~/best").model == fresh_classifier().model


def test_a_pair_of_arrays_has_no_test(searched, tmp_path: pathlib.Path, capsys):
    result = jaxevo.search(list(TRAIN), workdir=tmp_path, **TINY)
    assert (result.test_accuracy, result.test_interval, result.test_images) == (None, None, None)
    assert history(tmp_path) == history(searched.path)
    assert "test_accuracy" not in genome_files.load(tmp_path / "best.json")[1]
    # Without a reporter it is shown what happens.
    shown = capsys.readouterr().out
    assert "estimate: " in shown and "candidate    2" in shown and "final training  1/1" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"strategy": "annealing"}, f"strategy=annealing .* one of {', '.join(STRATEGIES)}$"),
        ({"preset": "huge"}, "preset=huge is not known; choose one of quick, paper$"),
        ({"recipe": "old"}, f"recipe=old is not known; choose one of {', '.join(RECIPES)}$"),
        ({"engine": "nonsense"}, f"engine=nonsense .* one of {', '.join(ENGINES)}$"),
        ({"chanels": 8}, "unknown setting 'chanels': is channels meant\\?$"),
        ({"epochs": "3"}, "epochs='3' is not possible: it is a whole number"),
        ({"workers": "2"}, "workers='2' is not possible: it is a whole number"),
        ({"workers": -1}, "workers=-1 is not possible: the smallest value is 0"),
        ({"candidates_per_step": 2}, "candidates_per_step=2 .* need engine=universal"),
        ({"num_normal_cells": 5}, "its 4 reductions need images of at least 16x16 pixels"),
        ({"data": 3}, "data is a int: give a name, a folder"),
        ({"data": (TRAIN[0][:9], TRAIN[1])}, "x_train has 9 images and 64 labels"),
        ({"data": {"x_train": TRAIN[0]}}, "data has only one of x_train and y_train"),
        ({"data": "nothing"}, "dataset=nothing is not known and no such file"),
    ],
)
def test_what_cannot_be_searched_is_refused_and_leaves_nothing(arguments, words, tmp_path):
    given = {"data": AS_DICT} | TINY | arguments
    with pytest.raises(InputError, match=words):
        jaxevo.search(given.pop("data"), workdir=tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()


def test_settings_go_over_strategy_recipe_and_preset():
    settings = {"preset": "quick", "strategy": "rea_b3", "recipe": "modern"}
    made = make_task(AS_DICT, **settings, settings={"epochs": 2, "final_warmup": 0.0})
    found = flatten(made.config)
    assert (found["channels"], found["max_nodes"], found["epochs"]) == (8, 3, 2)
    assert (found["final_schedule"], found["final_warmup"]) == ("cosine", 0.0)
    assert (found["schedule"], found["engine"]) == ("exponential", with_engine(made.config).engine)
    assert found["engine"] != "auto"
    assert made.workdir.path == pathlib.Path("runs/arrays-quick-seed0")
    named = make_task("digits", preset="auto", settings={"seed": 3})
    assert named.workdir.path == pathlib.Path("runs/digits-quick-seed3")  # on a CPU
    assert run_name("some/where/my data.npz") == "my_data.npz"


@pytest.mark.parametrize(
    "settings, bound",
    [({}, 32_000), ({"epochs": 2}, 32_000), ({"max_parameters": 9000}, 9000)]
    + [({"normal_repeats": 2}, 0), ({"channel_multiplier": 3}, 0)]
    + [({"channels": 16}, 0), ({"conv_kind": "separable"}, 0), ({"max_nodes": 3}, 0)],
)
def test_the_bound_of_the_preset_is_for_its_own_networks(settings: dict[str, Any], bound: int):
    made = flatten(make_task(AS_DICT, preset="quick", settings=settings).config)
    assert made["max_parameters"] == bound
    assert made["conv_kind"] == settings.get("conv_kind", "full")


def test_a_run_of_a_version_with_separable_kernels_keeps_them(searched, tmp_path):
    path = shutil.copytree(searched.path, tmp_path / "run")
    config = path / "config.json"
    document = json.loads(config.read_text())
    document["config"] |= {"conv_kind": "separable", "max_parameters": 0}
    config.write_text(json.dumps(document))
    settings = {name: value for name, value in TINY.items() if name != "preset"}
    made = make_task(AS_DICT, preset="quick", workdir=path, settings=settings)
    assert made.config.network.conv_kind == "separable"
    named = settings | {"conv_kind": "full"}
    made = make_task(AS_DICT, preset="quick", workdir=path, settings=named)
    assert made.config.network.conv_kind == "full"


# Training, loading


def test_a_genome_is_trained_saved_and_loaded(tmp_path: pathlib.Path):
    told: list[int] = []
    settings = {"epochs": 2, "batch_size": 8, "learning_rate": 0.02} | NETWORK
    classifier = jaxevo.train(
        GENOME, AS_DICT, on_epoch=lambda epoch, loss: told.append(epoch), **settings
    )
    assert type(classifier) is jaxevo.Classifier and told == [1, 2]
    assert classifier.model == GENOME and classifier.source.class_names == ("a", "b")
    assert classifier.builder.network.channels == 2
    classifier.save(tmp_path / "best")
    test = (TEST[0], NAMES[TEST[1]])
    accuracy = classifier.accuracy(*test)
    assert jaxevo.load(tmp_path / "best").accuracy(*test) == accuracy
    # A file of the genome, and a folder for checkpoints: the same network; again, without training.
    (tmp_path / "mine.json").write_text(genome_files.dumps(GENOME))
    folder = tmp_path / "checkpoints"
    for expected in ([1, 2], []):
        told.clear()
        other = jaxevo.train(
            tmp_path / "mine.json",
            AS_DICT,
            workdir=folder,
            on_epoch=lambda epoch, loss: told.append(epoch),
            **settings,
        )
        assert told == expected and other.accuracy(*test) == accuracy
        np.testing.assert_array_equal(other.network.head[...], classifier.network.head[...])


def test_a_range_of_pixels_may_be_named_in_training_as_in_a_search():
    images, labels = TRAIN[0] * 16.0, TRAIN[1]
    given = {"epochs": 1, "batch_size": 8} | NETWORK
    with pytest.raises(InputError, match="pixel_range"):
        jaxevo.train(GENOME, (images + 0.5, labels), **given)
    trained = jaxevo.train(GENOME, (images, labels), pixel_range="0,4080", **given)
    plain = jaxevo.train(GENOME, (TRAIN[0], labels), **given)
    np.testing.assert_array_equal(trained.predict_proba(images), plain.predict_proba(TRAIN[0]))


@pytest.mark.parametrize(
    "change",
    [
        {"data": (TRAIN[0], NAMES[1 - TRAIN[1]])},
        {"data": (255 - TRAIN[0], NAMES[TRAIN[1]])},
        {"epochs": 1},
        {"epochs": 3, "recipe": "modern"},
        {"channels": 3},
        {"model": "small_cnn"},
    ],
)
def test_a_folder_of_another_training_is_refused(tmp_path: pathlib.Path, change: dict[str, Any]):
    given = {"model": GENOME, "data": AS_DICT, "epochs": 2, "batch_size": 8} | NETWORK
    given["workdir"] = tmp_path / "W"
    jaxevo.train(**given)
    with pytest.raises(InputError, match="W holds another training"):
        jaxevo.train(**given | change)


def test_a_training_goes_on_with_the_engine_that_it_began_with(tmp_path: pathlib.Path):
    settings = {"epochs": 2, "batch_size": 8, "workdir": tmp_path} | NETWORK
    first = jaxevo.train(GENOME, AS_DICT, engine="compiled", **settings)
    (tmp_path / "engine.json").unlink()  # as before engines were recorded
    told: list[int] = []
    again = jaxevo.train(GENOME, AS_DICT, on_epoch=lambda epoch, _: told.append(epoch), **settings)
    np.testing.assert_array_equal(again.network.head[...], first.network.head[...])
    assert told == []
    with pytest.raises(InputError, match="holds a training by engine=compiled"):
        jaxevo.train(GENOME, AS_DICT, engine="universal", **settings)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"engine": "fast"}, "engine=fast is not known; choose one of auto, native"),
        ({"model": "evoZ"}, "genome 'evoZ' is neither a file nor one of the shipped ones"),
        ({"recipe": "old"}, "recipe=old is not known; choose one of paper, modern"),
        (
            {"population_size": 3},
            "unknown setting 'population_size': none here is",
        ),
        ({"epochs": 0}, "epochs=0 is not possible: the smallest value is 1"),
        ({"channels": 2.5}, "channels=2.5 is not possible: it is a whole number"),
        ({"data": 3}, "data is a int: give a name, a folder"),
        ({"model": 3}, "model is a int: give a genome, a file or a name"),
        ({"seed": -1}, "seed=-1 is not possible: the smallest value is 0"),
        ({"pixel_range": "0"}, "pixel_range=0 is not possible: write the values of black and"),
        ({"background": "blue"}, "background=blue is not possible: use white or black"),
    ],
)
def test_what_cannot_be_trained_is_refused(arguments: dict[str, Any], words: str):
    given = {"model": GENOME, "data": AS_DICT} | arguments
    with pytest.raises(InputError, match=words):
        jaxevo.train(given.pop("model"), given.pop("data"), **given)


def test_a_classifier_is_loaded_by_path_or_text(tmp_path: pathlib.Path):
    fresh_classifier().save(tmp_path / "best")
    for folder in (tmp_path / "best", str(tmp_path / "best")):
        assert jaxevo.load(folder).model == GENOME
    with pytest.raises(CheckpointError, match="nothing does not exist"):
        jaxevo.load(tmp_path / "nothing")


# Evolving


def count_convolutions(genome: Genome) -> float:
    return sum(node.ops.count(Op.CONV_3X3) for cell in genome.cells for node in cell.nodes)


def test_what_minimises_the_size_of_networks_needs_networks():
    with pytest.raises(InputError, match="strategy=nsga2 minimises the size of networks"):
        jaxevo.evolve(count_convolutions, strategy="nsga2")


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in FRONT_KINDS])
def test_a_fitness_of_ones_own_is_maximised(strategy: str):
    told: list[float] = []

    def fitness(genome: Genome) -> float:
        told.append(count_convolutions(genome))
        return told[-1]

    best = jaxevo.evolve(fitness, strategy=strategy, seed=1, num_generations=3)
    assert best.fitness == count_convolutions(best.genome) == max(told)
    again = jaxevo.evolve(count_convolutions, strategy=strategy, seed=1, num_generations=3)
    assert again == best


def test_a_given_genome_beyond_the_bounds_is_refused_before_there_is_a_folder(tmp_path):
    given = TINY | {"workdir": tmp_path / "run", "min_nodes": 1, "max_parameters": 9}
    with pytest.raises(InputError, match="initial_genomes=genome 1 .* beyond the bounds on size"):
        jaxevo.search(AS_DICT, initial_genomes=[GENOME], **given)
    assert not (tmp_path / "run").exists()


def test_evolution_begins_with_given_genomes():
    told: list[Genome] = []

    def fitness(genome: Genome) -> float:
        told.append(genome)
        return 0.5

    jaxevo.evolve(fitness, initial_genomes=["evoA", GENOME], min_nodes=1, num_generations=0)
    assert told[:2] == [genome_files.find("evoA")[0], GENOME] and len(told) == 10
    with pytest.raises(InputError, match="genome 'evoZ' is neither"):
        jaxevo.evolve(fitness, initial_genomes=["evoZ"])


def test_names_of_genomes_to_begin_with_may_be_one_text():
    told: list[Genome] = []

    def fitness(genome: Genome) -> float:
        told.append(genome)
        return 0.5

    jaxevo.evolve(fitness, initial_genomes="evoA,evoB", num_generations=0)
    assert told[:2] == [genome_files.find(name)[0] for name in ("evoA", "evoB")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_trainings", 3),
        ("max_parameters", 3000),
        ("target_accuracy", 0.5),
        ("epochs", 3),
        ("racing", 0.1),
        ("precision", "bfloat16"),
    ],
)
def test_what_needs_trainings_is_refused_where_there_are_none(name: str, value: Any):
    with pytest.raises(InputError, match=f"{name}={value} has no effect here, where no network"):
        jaxevo.evolve(count_convolutions, **{name: value})


def test_layouts_evolve_by_a_fitness_of_ones_own():
    bounds = {"min_channels": 2, "channels": 9, "min_normal_cells": 1, "num_normal_cells": 3}

    def wide(genome: Genome) -> float:
        return genome.layout.channels

    best = jaxevo.evolve(wide, **bounds, num_generations=3, seed=0)
    assert best.fitness == best.genome.layout.channels == 9


@pytest.mark.parametrize("value", ["much", [0.5], np.array([0.5]), object(), 1j])
def test_a_fitness_that_is_no_number_is_refused(value: Any):
    with pytest.raises(InputError, match="fitness gave .*: let it give a number, or None"):
        jaxevo.evolve(lambda genome: value)


@pytest.mark.parametrize("value", [True, 3, np.float32(0.5), np.array(0.5)])
def test_a_fitness_may_be_any_number(value: Any):
    best = jaxevo.evolve(lambda genome: value, num_generations=0)
    assert best.fitness == float(value) and type(best.fitness) is float


def test_what_cannot_be_evolved_is_refused():
    with pytest.raises(InputError, match="strategy=annealing is not known; choose one of rea"):
        jaxevo.evolve(count_convolutions, strategy="annealing")
    with pytest.raises(InputError, match="unknown setting 'generations'"):
        jaxevo.evolve(count_convolutions, generations=3)
    with pytest.raises(InputError, match="seed=-1 is not possible: the smallest value is 0"):
        jaxevo.evolve(count_convolutions, seed=-1)
    words = "5 candidates in a row have no fitness: the function gave None for the last, {'normal'"
    with pytest.raises(RuntimeError, match=words):
        jaxevo.evolve(lambda genome: None, max_consecutive_failures=5)


# The package


def test_names_of_the_package():
    assert jaxevo.__version__ == importlib.metadata.version("jaxevo")
    promised = {"search", "train", "load", "evolve", "Classifier", "Genome", "Result"}
    assert promised | {"ImageClassifier", "__version__"} == set(dir(jaxevo)) == set(jaxevo.__all__)
    assert all(getattr(jaxevo, name) for name in promised)
    with pytest.raises(AttributeError, match="module 'jaxevo' has no attribute 'find'"):
        jaxevo.find  # noqa: B018
