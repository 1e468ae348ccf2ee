"""From a search's winner to its result: trained on all images that are not for validation, saved, read back, tested.

The test images are loaded here, after the last choice has been made.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxevo.networks.genome_network import Network
from jaxevo.run.workdir import write_json
from jaxevo.strategies.base import Individual
from jaxevo.training.checkpoints import Checkpoints
from jaxevo.training.classifier import Classifier, Source, wilson_interval
from jaxevo.training.engines import Engine, Seed, make_engine
from jaxevo.training.fit import fit_resumably

if TYPE_CHECKING:
    from jaxevo.run.search import Search


def finish(search: Search, winner: Individual, seed: Seed) -> dict[str, Any]:
    """Trains and tests; returns the content of `result.json`. Raises `DivergedError`, or `OSError` as `Search.run`."""
    network, seconds = _train(search, winner, seed)
    data, workdir = search.task.data, search.task.workdir
    source = Source(data.name, data.class_names, search.config.data.resize)
    Classifier.of(winner.genome, search.problem, source, network).save(workdir.best_weights)
    tested = _test(search, Classifier.load(workdir.best_weights))
    wall = time.perf_counter() - search.begin + search.task.data_seconds
    search.spend({"other": wall - sum(search.spent.values())})
    spent = {part: round(value, 1) for part, value in search.spent.items()}
    result = _counts(search, winner, seconds) | tested | {"session_seconds": spent}
    if not search.history.of_kind("session"):
        search.history.append("session", session_seconds=spent)
    search.write_genome(winner, {"test_accuracy": result["test_accuracy"]})
    write_json(workdir.result, result)
    return result


def _engine(search: Search) -> Engine:
    """The search's engine, unless the final training has another batch size, for which it is not compiled."""
    config, batch_size = search.config, search.config.final_training.batch_size
    if batch_size == config.training.batch_size:
        return search.evaluator.engine
    return make_engine(config.engine, search.problem, batch_size, config.evolution.max_nodes)


def _train(search: Search, winner: Individual, seed: Seed) -> tuple[Network, float]:
    """The trained network, with checkpoints between epochs, and the seconds of all sessions that trained it."""
    config, engine = search.config.final_training, _engine(search)
    checkpoints = Checkpoints(search.task.workdir.final_checkpoints)
    prepared = engine.prepare(winner.genome, seed)
    engine.compile_clock.charge()  # what came before has been put down elsewhere

    def on_epoch(epoch: int, loss: float) -> None:
        search.reporter.training("final training", epoch, config.epochs, f"loss {loss:.4f}")

    images, labels = search.evaluator.images, search.evaluator.labels
    everything, identity = np.arange(len(labels)), {"id": winner.id}
    data = images, labels, config, seed, everything
    trained = fit_resumably(prepared, *data, checkpoints, identity, on_epoch, search.reporter.message)
    compiling = engine.compile_clock.charge()
    search.spend({"compile": compiling, "checkpoint": trained.writing})
    search.spend({"train": trained.session - compiling - trained.writing})
    return engine.network(winner.genome, trained.state.weights), trained.seconds


def _test(search: Search, classifier: Classifier) -> dict[str, Any]:
    """Measures the network that was read back on the validation images and, this once, on the test images."""
    data, test = search.task.data, search.task.load_test()
    begin = time.perf_counter()
    validation, accuracy = classifier.accuracy(data.validation), classifier.accuracy(test)
    compiling = classifier.trainer.compile_clock.charge()
    search.spend({"compile": compiling, "evaluate": time.perf_counter() - begin - compiling})
    return {
        "dataset": data.name,
        "validation_accuracy": validation,
        "test_accuracy": accuracy,
        "test_interval": list(wilson_interval(accuracy, len(test))),
        "test_images": len(test),
    }


def _counts(search: Search, winner: Individual, final_seconds: float) -> dict[str, Any]:
    """The winner's sizes, and what the search took."""
    individuals = list(search.recorded.values())
    retrainings = search.history.of_kind("retraining")
    seconds = {part: 0.0 for part in ("compile", "train", "evaluate")}
    for record in [*individuals, *retrainings]:
        for part, value in record["seconds"].items():
            seconds[part] += value
    size = search.problem.complexity(winner.genome)
    return {
        "id": winner.id,
        "search_fitness": search.recorded[winner.id]["fitness"],
        "retrained_fitness": winner.fitness,
        "parameters": size.parameters,
        "multiply_adds": size.multiply_adds,
        "candidates": len(individuals),
        "trainings": sum(record["reused"] is None for record in individuals) + len(retrainings) + 1,
        "memo_hits": sum(record["reused"] is not None for record in individuals),
        "failures": sum(record["failure"] is not None for record in individuals),
        "seconds": {part: round(value, 1) for part, value in seconds.items()} | {"final": round(final_seconds, 1)},
    }
