"""The last phase: the winner's training resumes, and the network that is tested is the saved one.

Its training is real; a table stands for the search's.
"""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import jax
import numpy as np
import pytest
from builders import SMALL, Table, history_of, make_explorer, open_ledger
from conftest import timeless
from flax import nnx
from PIL import Image

from jaxevo.config import SearchConfig, replace
from jaxevo.datasets import Images, SearchData
from jaxevo.networks.baselines import Baseline
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.choose import Choice, best_of_first_generation, rank_best
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.final_training import FinalTrainer
from jaxevo.run.finish import SESSION_PARTS, Finisher
from jaxevo.run.reader import load_run
from jaxevo.run.reporter import Silent
from jaxevo.run.result import Result
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files
from jaxevo.seeds import baseline_seed
from jaxevo.training.classifier import Classifier
from jaxevo.training.data import TrainingData
from jaxevo.training.engines import CompiledEngine
from jaxevo.training.fit import DivergedError, fit


@pytest.fixture(scope="module")
def data(digits) -> SearchData:
    train = digits.train.take(np.arange(100))
    return SearchData("digits", train, digits.validation, digits.class_names)


@pytest.fixture(scope="module")
def evaluator(data) -> Evaluator:
    """All runs here share one engine, and so one compilation."""
    builder = NetworkBuilder(SMALL.network, data.image_shape, data.num_classes)
    return Evaluator(
        SMALL, builder, TrainingData.drawn(data.train, 90, 0), validation=data.validation
    )


@pytest.fixture(scope="module")
def finish(data, evaluator):
    """Carries a run in a folder to its end."""

    def finish(path, config: SearchConfig = SMALL, **fields: Any) -> Result:
        explorer = make_explorer(path, config, complexity=evaluator.builder.complexity)
        ranked = explorer.run().ranked
        choosing = (config, explorer.ledger, Table())
        best = rank_best(*choosing, ranked=ranked, reporter=Silent())
        first = None
        if config.compare_winner:
            first = best_of_first_generation(*choosing, reporter=Silent())
        choice = Choice(tuple(best), first)
        defaults = {"data": data, "load_test": lambda: data.validation, "reporter": Silent()}
        about = {"config": config, "workdir": Workdir(path), "ledger": explorer.ledger}
        finisher = Finisher(**about, **defaults | {"evaluator": evaluator} | fields)
        return finisher.run(choice)

    return finish


def without_place_and_time(result: Result) -> dict[str, Any]:
    return {name: value for name, value in timeless(vars(result)).items() if name != "path"}


class Interrupting(Silent):
    """Interrupts after so many epochs of the final training, each of which is in a checkpoint."""

    def __init__(self, epochs: int):
        super().__init__()
        self.epochs = epochs

    def training(self, stage: str, done: int, total: int, *, note: str) -> None:
        if stage == "final training" and done == self.epochs:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory, finish) -> Result:
    """An uninterrupted run."""
    return finish(tmp_path_factory.mktemp("runs") / "whole")


def test_final_training_resumes_to_the_same_end(tmp_path, finish, whole):
    for epochs in (1, 2):
        path = tmp_path / str(epochs)
        with pytest.raises(KeyboardInterrupt):
            finish(path, reporter=Interrupting(epochs))
        assert not Workdir(path).result.exists() and not Workdir(path).best_weights.exists()
        untested = genome_files.load(path / "best.json")[1]
        assert "test_accuracy" not in untested and "search_fitness" in untested
        told: list[tuple] = []

        class Telling(Silent):
            def training(self, *stage: Any, note: str, told=told) -> None:
                told.append(stage)

        resumed = finish(path, reporter=Telling())
        left = [("final training", number, 2) for number in range(epochs + 1, 3)]
        assert told == left  # epochs that are done are not done again
        assert without_place_and_time(resumed) == without_place_and_time(whole)
        assert (path / "best.json").read_text() == (whole.path / "best.json").read_text()
        pairs = zip(weights_of(path), weights_of(whole.path), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)


def weights_of(path) -> list[np.ndarray]:
    network = Classifier.load(Workdir(path).best_weights).network
    return [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(network))]


def test_the_saved_network_is_the_one_reported(data, whole):
    genome, metadata = genome_files.load(whole.path / "best.json")
    # The same images here.
    assert metadata["test_accuracy"] == whole.test_accuracy == whole.validation_accuracy
    classifier = Classifier.load(whole.weights)
    assert classifier.model == genome == whole.genome
    assert classifier.accuracy(data.validation) == whole.test_accuracy
    assert whole.classifier().accuracy(data.validation) == whole.test_accuracy
    low, high = whole.test_interval
    assert low <= whole.test_accuracy <= high
    assert whole.test_images == len(data.validation)
    assert json.loads((whole.path / "result.json").read_text())["id"] == whole.id


def test_the_result_counts_what_the_history_holds(whole, evaluator):
    individuals = history_of(whole.path, "individual")
    retrainings = history_of(whole.path, "retraining")
    reused = sum(record["reused"] is not None for record in individuals)
    failed = sum(record["failure"] is not None for record in individuals)
    assert whole.candidates == len(individuals)
    assert (whole.memo_hits, whole.failures) == (reused, failed)
    assert whole.trainings == len(individuals) - reused + len(retrainings) + 1
    winner = individuals[whole.id]
    assert whole.search_fitness == winner["fitness"]
    fresh = [record["fitness"] for record in retrainings if record["id"] == whole.id]
    assert whole.retrained_fitness == np.mean(fresh)
    assert whole.parameters == winner["parameters"]
    assert whole.multiply_adds == winner["multiply_adds"]
    # Failures took none; a fitness may be 0 without one.
    valid = [record for record in (*individuals, *retrainings) if record["failure"] is None]
    trained = sum(record.get("reused") is None for record in valid)
    assert whole.seconds["train"] == trained  # a second each, by the table
    assert whole.session_seconds.keys() == set(SESSION_PARTS)
    (session,) = history_of(whole.path, "session")
    assert session["session_seconds"] == whole.session_seconds


def test_the_curve_of_the_final_training_is_in_the_result(whole, data):
    assert len(whole.final_losses) == len(whole.final_accuracies) == 2
    assert whole.final_losses[1] < whole.final_losses[0]
    assert whole.final_accuracies[-1] == whole.validation_accuracy


def test_classes_are_counted_on_the_images_that_were_tested(whole, data):
    confusion = whole.confusion()
    assert confusion is not None and confusion.class_names == data.class_names
    predicted = whole.classifier().predict_numbers(data.validation.images)
    for (true, taken), count in np.ndenumerate(confusion.counts):
        assert count == np.sum((data.validation.labels == true) & (predicted == taken))
    right = confusion.counts.diagonal().sum() / confusion.counts.sum()
    assert right == whole.test_accuracy
    # The images of this test are those of the validation, which the card says.
    assert whole.test_repeated == whole.test_images == len(data.validation)
    card = (whole.weights / "MODEL_CARD.md").read_text()
    assert "test images are training images too" in card and "weakest classes: " in card
    # Those misclassified have pictures, which are the images.
    mistakes = whole.mistakes()
    assert mistakes
    for each in mistakes:
        names = (data.class_names[k[each.index]] for k in (data.validation.labels, predicted))
        assert (each.class_name, each.taken_for) == tuple(names)
        pixels = np.asarray(Image.open(io.BytesIO(each.png)))
        assert np.array_equal(pixels, data.validation.images[each.index, :, :, 0])


def test_very_many_classes_are_not_tabled(tmp_path, finish, data):
    names = tuple(map(str, range(1001)))
    many = dataclasses.replace(data, class_names=names)
    builder = NetworkBuilder(SMALL.network, many.image_shape, many.num_classes)
    wide = Evaluator(SMALL, builder, TrainingData.of(data.train), validation=data.validation)
    open_ledger(tmp_path / "run", SMALL)
    Workdir(tmp_path / "run").confusion.write_text("of an earlier result")
    result = finish(tmp_path / "run", data=many, evaluator=wide)
    assert result.confusion() is None


def test_a_result_is_read_back_as_it_was_written(whole):
    assert load_run(Workdir(whole.path)).result == whole


def test_the_test_images_are_loaded_once_when_the_final_weights_are_saved(tmp_path, finish, data):
    workdir, saved = Workdir(tmp_path), []

    def load_test() -> Images:
        saved.append((workdir.best_weights.is_dir(), workdir.result.exists()))
        return data.validation

    finish(tmp_path, load_test=load_test)
    assert saved == [(True, False)]


def test_without_test_images_there_is_no_test_accuracy(tmp_path, finish, whole):
    result = finish(tmp_path / "untested", load_test=None)
    assert result.test_accuracy is None and result.test_interval is None
    assert result.test_images is None
    assert result.validation_accuracy == whole.validation_accuracy
    assert load_run(Workdir(result.path)).result == result
    metadata = genome_files.load(result.path / "best.json")[1]
    assert "test_accuracy" not in metadata
    assert metadata["retrained_fitness"] == result.retrained_fitness


def test_a_final_training_that_diverges_leaves_the_genome(tmp_path, finish, whole):
    config = replace(SMALL, {"final_learning_rate": 1e38})
    with pytest.raises(DivergedError, match="the loss was"):
        finish(tmp_path / "diverged", config)
    assert genome_files.load(tmp_path / "diverged" / "best.json")[0] == whole.genome
    assert not Workdir(tmp_path / "diverged").result.exists()


COMPARED: SearchConfig = replace(SMALL, {"compare_winner": True, "keep": 2})


@pytest.fixture(scope="module")
def compared(tmp_path_factory, finish) -> Result:
    """A run that keeps a second network and compares its winner."""
    return finish(tmp_path_factory.mktemp("runs") / "compared", COMPARED)


def test_the_winner_is_the_same_beside_others(whole, compared):
    more = {"trainings", "baseline", "kept", "first_id", "first_fitness"}
    one, other = (without_place_and_time(result) for result in (whole, compared))
    assert {name for name in one if one[name] != other[name]} == more
    pairs = zip(weights_of(whole.path), weights_of(compared.path), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)
    assert (whole.baseline, whole.no_baseline, whole.kept, whole.first_id) == (None, "", (), None)


def test_the_second_best_is_kept_with_its_weights(compared, data):
    workdir = Workdir(compared.path)
    means: dict[int, list[float]] = {}
    for record in history_of(compared.path, "retraining"):
        means.setdefault(record["id"], []).append(record["fitness"])
    (kept,) = compared.kept
    assert kept.id != compared.id and kept.retrained_fitness == np.mean(means[kept.id])
    assert kept.retrained_fitness <= compared.retrained_fitness
    genome, metadata = genome_files.load(workdir.kept / f"{kept.id}.json")
    assert metadata["id"] == kept.id and "test_accuracy" not in metadata
    classifier = Classifier.load(workdir.weights(kept.id))
    assert classifier.model == genome
    assert classifier.accuracy(data.validation) == kept.validation_accuracy
    assert kept.parameters == classifier.builder.complexity(genome).parameters


def test_the_small_cnn_is_trained_in_the_same_way_on_the_same_images(compared, data, evaluator):
    """The test images are the validation images here."""
    classifier = Classifier.load(Workdir(compared.path).baseline_weights)
    shape = evaluator.builder.image_shape
    assert classifier.model == Baseline.of_size(
        "small_cnn", compared.parameters, shape, num_classes=10
    )
    baseline = compared.baseline
    assert 0.8 * compared.parameters < baseline.parameters <= compared.parameters
    accuracy = classifier.accuracy(data.validation)
    assert baseline.validation_accuracy == baseline.test_accuracy == accuracy
    size = evaluator.builder.complexity(classifier.model)
    assert (baseline.parameters, baseline.multiply_adds) == (size.parameters, size.multiply_adds)
    # The same as trained by itself.
    config, seed = SMALL.final_training, baseline_seed(0)
    engine = CompiledEngine(evaluator.builder, config.batch_size)
    prepared = engine.prepare(classifier.model, seed)
    trained = fit(prepared, TrainingData.of(data.train), config, seed=seed)
    alone = prepared.trainer.measure(trained.state.weights, (), data.validation)
    assert alone.accuracy == accuracy
    # Images that one alone classifies rightly make the difference.
    winner = compared.classifier()
    right = [
        each.predict_numbers(data.validation.images) == data.validation.labels
        for each in (winner, classifier)
    ]
    assert baseline.winner_alone == np.sum(right[0] & ~right[1])
    assert baseline.baseline_alone == np.sum(right[1] & ~right[0])


def test_the_best_of_the_first_generation_is_in_the_result(compared):
    first = [line for line in history_of(compared.path, "individual") if line["generation"] == 0]
    best = max((line for line in first if line["fitness"]), key=lambda line: line["fitness"])
    assert compared.first_id == best["id"]
    retrained = [
        line["fitness"]
        for line in history_of(compared.path, "retraining")
        if line["id"] == best["id"]
    ]
    assert compared.first_fitness == np.mean(retrained) and len(retrained) == 2
    winner = history_of(compared.path, "individual")[compared.id]
    assert compared.generation == winner["generation"]


def test_a_result_with_others_is_read_back_as_it_was_written(compared):
    assert load_run(Workdir(compared.path)).result == compared


@pytest.mark.parametrize("place", range(3))
def test_others_resume_to_the_same_end_and_the_test_is_read_once(
    tmp_path, finish, compared, data, place
):
    loaded = []

    def load_test() -> Images:
        loaded.append(True)
        return data.validation

    class Interrupted(Silent):
        stages: list[str] = []

        def training(self, stage: str, *_: Any, note: str) -> None:
            if stage not in self.stages:
                self.stages.append(stage)
                if len(self.stages) == place + 1:
                    raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finish(tmp_path, COMPARED, reporter=Interrupted(), load_test=load_test)
    assert loaded == []
    result = finish(tmp_path, COMPARED, load_test=load_test)
    assert loaded == [True]
    assert without_place_and_time(result) == without_place_and_time(compared)


def test_images_too_small_for_the_small_cnn_leave_it_out(tmp_path, finish, data, evaluator):
    tiny = Images(np.ascontiguousarray(data.train.images[:, :3, :3]), data.train.labels)
    few = SearchData("digits", tiny, tiny, data.class_names)
    builder = NetworkBuilder(SMALL.network, few.image_shape, few.num_classes)
    small = Evaluator(SMALL, builder, TrainingData.of(tiny), validation=tiny)
    result = finish(tmp_path, COMPARED, data=few, evaluator=small, load_test=None)
    assert result.baseline is None
    assert result.no_baseline == "small_cnn needs images of at least 4x4 pixels, these have 3x3"
    assert not Workdir(tmp_path).baseline_weights.exists()


def test_others_that_fail_are_told_of_and_the_run_does_not_fail(tmp_path, finish, monkeypatch):
    train = FinalTrainer.train

    def failing(self, model, seed, checkpoints, *, stage, identity):
        if stage != "final training":
            raise DivergedError("the loss was nan in epoch 1")
        return train(self, model, seed, checkpoints, stage=stage, identity=identity)

    monkeypatch.setattr(FinalTrainer, "train", failing)
    reporter = Silent()
    result = finish(tmp_path, COMPARED, reporter=reporter)
    assert (result.kept, result.baseline) == ((), None)
    assert result.no_baseline == "the loss was nan in epoch 1"
    assert any("is not kept: the loss was nan" in message for message in reporter.messages)


def test_another_batch_size_has_an_engine_of_its_own(evaluator, data):
    assert FinalTrainer(SMALL, evaluator, Silent()).engine is evaluator.engine
    larger = FinalTrainer(replace(SMALL, {"final_batch_size": 48}), evaluator, Silent())
    engine: Any = larger.engine
    assert engine.batch_size == 48 and engine.stopwatch is evaluator.stopwatch
    assert larger.engine is engine  # for all networks that are kept
