"""A whole search in a folder: evolve, choose, train the winner, test it once.

Everything that happened is read back from the history, so the same call resumes an interrupted run and comes to the
same end. The test images are loaded only after the last choice has been made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import numpy as np

from jaxevo import checkpoint, records
from jaxevo.asktell import Individual, Strategy
from jaxevo.classifier import Classifier, Source, wilson_interval
from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.datasets.splits import training_subset
from jaxevo.engines import Engine, Problem, Seed, make_engine
from jaxevo.evaluation import Evaluation, Evaluator
from jaxevo.genome import Genome, dumps
from jaxevo.resumable import fit_resumably
from jaxevo.strategies import make_strategy
from jaxevo.training import TrainState
from jaxevo.workdir import History, Workdir, WorkdirError, write_json, write_text
from jaxevo.workers import Workers, start_workers

# What a seed is for: no two trainings share their randomness.
_SEARCH, _RETRAIN, _FINAL = range(3)


class SearchFailedError(RuntimeError):
    """Too many candidates in a row failed."""


class Reporter(Protocol):
    """Is told how a run goes on."""

    def message(self, text: str) -> None:
        """Something worth a line."""
        ...

    def candidate(self, record: dict[str, Any], strategy: Strategy) -> None:
        """A candidate's record of the history, after the strategy was told of it."""
        ...

    def training(self, what: str, done: int, total: int, note: str) -> None:
        """Progress of what follows the search."""
        ...


@dataclasses.dataclass(frozen=True)
class Task:
    """What to search, where, and how to come by the test images once the search is over."""

    config: SearchConfig
    workdir: Workdir
    data: SearchData
    load_test: Callable[[], Images]
    data_seconds: float = 0.0  # that loading the data took
    workers: WorkerConfig = WorkerConfig()


class Search:
    """A run of `task`; `run` resumes it where it stopped."""

    def __init__(self, task: Task, reporter: Reporter):
        self.task, self.config, self.reporter = task, task.config, reporter
        self.problem = Problem(task.config.network, task.data.image_shape, task.data.num_classes)
        self.evaluator = Evaluator(task.config, self.problem, task.data.train, task.data.validation)
        labels, wanted = task.data.train.labels, task.config.data.train_examples
        self.all_images = np.arange(len(labels))
        self.subset = training_subset(labels, wanted, task.config.seed)
        if task.workdir.history.exists():
            records.load(task.workdir)  # refuses a history that is not this configuration's
        self.history = History(task.workdir)
        self.recorded = {record["id"]: record for record in self.history.of_kind("individual")}
        self.memo: dict[str, int] = {}  # canonical key -> id of the individual that was trained
        for record in self.history.of_kind("individual"):
            self._remember(record)
        self.failures_in_a_row = 0
        self.begin = time.perf_counter()
        # Seconds of this session by what they went into.
        self.spent: dict[str, float] = dict.fromkeys(
            ("data", "compile", "train", "evaluate", "checkpoint", "other"), 0.0
        )
        self.spent["data"] = task.data_seconds
        self.waiting: list[Individual] = []  # candidates that the strategy has asked for
        self.ahead: dict[int, Evaluation] = {}  # of those that were trained with an earlier one
        self.workers: Workers | None = None

    def run(self) -> dict[str, Any]:
        """Carries the run to its end and returns the content of `result.json`.

        Raises `OSError` where something cannot be written; the same call, once it can, goes on from there.
        """
        winner = self.find()
        state, seconds = self._train_final(winner)
        return self._conclude(winner, state, seconds)

    def find(self) -> Individual:
        """Carries the run to the choice of the winner, whose genome it writes; raises like `run`."""
        strategy = self._resume()
        with self._start_workers() as self.workers:
            while not self.budget_spent and (candidates := strategy.ask()):
                self.waiting = candidates
                for candidate in candidates:
                    if not self.budget_spent:
                        self._evaluate(candidate, strategy)
            winner = self._choose()
        self._write_genome(winner, {})
        return winner

    @property
    def budget_spent(self) -> bool:
        """True once `max_trainings` are recorded."""
        return self.config.budget_spent(sum(record["reused"] is None for record in self.recorded.values()))

    @functools.cached_property
    def final_engine(self) -> Engine:
        """The search's engine, unless the final training has another batch size, for which it is not compiled."""
        batch_size = self.config.final_training.batch_size
        if batch_size == self.config.training.batch_size:
            return self.evaluator.engine
        return make_engine(self.config.engine, self.problem, batch_size, self.config.evolution.max_nodes)

    def _start_workers(self) -> contextlib.AbstractContextManager[Workers | None]:
        if not self.task.workers.workers:
            return contextlib.nullcontext()
        cache = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
        return start_workers(self.task.workers, self.config, self.task.data, self.subset, cache)

    def _resume(self) -> Strategy:
        """The strategy as of the newest usable checkpoint; what the history has beyond it will be told again."""
        strategy = make_strategy(self.config)
        newest = checkpoint.Checkpoints(self.task.workdir.checkpoints).load_newest(self.reporter.message)
        if newest is not None:
            step, state, _ = newest
            try:
                records.check_state(state, self.recorded)
                told = set(range(state["next_id"])) - {individual["id"] for individual in state["pending"]}
                if told <= self.recorded.keys():
                    strategy.load_state_dict(state)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                self.reporter.message(f"checkpoint {step} is not of this search ({error}); going on from the history")
                strategy = make_strategy(self.config)
        if self.recorded:
            self.reporter.message(f"resuming: {len(self.recorded)} candidates are known already")
        return strategy

    def _evaluate(self, candidate: Individual, strategy: Strategy) -> None:
        known = self.recorded.get(candidate.id)
        if known is not None and known["genome"] != candidate.genome.to_dict():
            raise WorkdirError(
                f"{self.task.workdir.history} has another genome for individual {candidate.id} than this version of "
                "the program draws; go on with the version that wrote it, or start in another workdir"
            )
        record = known or self._record(candidate)
        generation, num_events = strategy.generation, len(strategy.events)
        strategy.tell(dataclasses.replace(candidate, fitness=record["fitness"]))
        recorded_events = len(self.history.of_kind("stagnation"))
        for event in list(strategy.events)[max(num_events, recorded_events) :]:
            self.history.append("stagnation", event=event.kind, generation=event.generation, best=event.best_id)
            self.reporter.message(f"generation {event.generation}: no progress, {event.kind} stagnation avoidance")
        if known is None:
            if strategy.generation > generation:
                begin = time.perf_counter()
                checkpoints = checkpoint.Checkpoints(self.task.workdir.checkpoints)
                checkpoints.save(strategy.generation, strategy.state_dict())
                self._spend({"checkpoint": time.perf_counter() - begin})
            self.reporter.candidate(record, strategy)
            self._stop_if_all_fail(record)
            if strategy.generation > generation:
                self._warn_if_at_chance(generation)

    def _record(self, candidate: Individual) -> dict[str, Any]:
        """Evaluates a candidate, or reuses an isomorphic one's fitness, and writes it into the history."""
        size = self.problem.complexity(candidate.genome)
        known = self.memo.get(candidate.genome.canonical_key()) if self.config.reuse_fitness else None
        if known is not None:
            outcome = {"fitness": self.recorded[known]["fitness"], "reused": known, "failure": None, "seconds": {}}
        else:
            evaluation = self._train(candidate)
            outcome = {
                "fitness": evaluation.accuracy,
                "reused": None,
                "failure": evaluation.failure,
                "seconds": {part: round(value, 4) for part, value in evaluation.seconds.items()},
            }
            if evaluation.details:
                outcome["traceback"] = evaluation.details
        sizes = {"parameters": size.parameters, "multiply_adds": size.multiply_adds}
        record = self.history.append("individual", **(candidate.to_dict() | sizes | outcome))
        self.recorded[candidate.id] = record
        self._remember(record)
        return record

    def _train(self, candidate: Individual) -> Evaluation:
        """Evaluates a candidate: by the workers, or in one step with some of those after it."""
        if self.workers is not None:
            for other in self._with_others(candidate, len(self.waiting)):
                self.workers.submit(other.genome, self._seed(other))
            return self._await(self._seed(candidate))
        if candidate.id not in self.ahead:
            at_once = self.config.candidates_per_step
            found = self._with_others(candidate, at_once + 1)
            group = found[:at_once]
            for other in found[at_once:]:
                self.evaluator.expect(other.genome)
            seeds = [self._seed(other) for other in group]
            evaluations = self.evaluator.evaluate_several([other.genome for other in group], seeds, self.subset)
            for evaluation in evaluations:
                self._spend(evaluation.seconds)
            self.ahead |= dict(zip((other.id for other in group), evaluations, strict=True))
        return self.ahead.pop(candidate.id)

    def _with_others(self, candidate: Individual, number: int) -> list[Individual]:
        """A candidate and, up to `number`, those after it that will have to be trained unless one of these fails."""
        group: dict[str, Individual] = {}
        for other in self.waiting[self.waiting.index(candidate) :]:
            if len(group) == number:
                break
            key = other.genome.canonical_key() if self.config.reuse_fitness else str(other.id)
            known = key in self.memo or other.id in self.recorded or other.id in self.ahead
            if not known:
                group.setdefault(key, other)
        return list(group.values())

    def _seed(self, candidate: Individual) -> Seed:
        return self.config.seed, _SEARCH, candidate.id

    def _await(self, seed: Seed) -> Evaluation:
        """Waits for the workers; as they work side by side, it is the waiting that is put down as training."""
        assert self.workers is not None
        begin = time.perf_counter()
        evaluation = self.workers.result(seed)
        self._spend({"train": time.perf_counter() - begin})
        return evaluation

    def _remember(self, record: dict[str, Any]) -> None:
        """Failures are not remembered: an isomorphic genome may succeed."""
        if record["fitness"] is not None and record["reused"] is None:
            self.memo[Genome.from_dict(record["genome"]).canonical_key()] = record["id"]

    def _stop_if_all_fail(self, record: dict[str, Any]) -> None:
        self.failures_in_a_row = self.failures_in_a_row + 1 if record["failure"] else 0
        if self.failures_in_a_row >= self.config.max_consecutive_failures:
            raise SearchFailedError(
                f"{self.failures_in_a_row} candidates in a row failed, the last with: {record['failure']}; remove the "
                "cause and give the same command to go on"
            )

    def _warn_if_at_chance(self, generation: int) -> None:
        """Says what to check when a generation has learnt nothing: no candidate names more than the commonest class."""
        labels = self.task.data.validation.labels
        members = [record for record in self.recorded.values() if record["generation"] == generation]
        trained = [r["fitness"] for r in members if r["fitness"] is not None and r["reused"] is None]
        commonest = float(np.bincount(labels).max()) / len(labels)
        if trained and wilson_interval(max(trained), len(labels))[0] <= commonest:
            self.reporter.message(
                f"generation {generation}: no candidate is better than naming the commonest class each time "
                f"({commonest:.2%}), the best has {max(trained):.2%}; check learning_rate and epochs, whether the "
                "labels belong to the images, and whether pixels range from 0 to 255"
            )

    def _choose(self) -> Individual:
        """The best by fresh trainings: the fitness they were selected for is too good, being the luckiest of many."""
        valid = [record for record in self.recorded.values() if record["fitness"] is not None]
        ranked = sorted(valid, key=lambda record: (-record["fitness"], record["id"]))
        distinct: dict[str, dict[str, Any]] = {}
        for record in ranked:  # of isomorphic genomes the best stays
            distinct.setdefault(Genome.from_dict(record["genome"]).canonical_key(), record)
        best = list(distinct.values())[: max(1, self.config.retrain_best)]
        scores = {record["id"]: record["fitness"] for record in best}
        done = {(r["id"], r["seed"]): r["fitness"] for r in self.history.of_kind("retraining")}
        repeats = range(self.config.retrain_seeds if self.config.retrain_best else 0)
        if self.workers is not None:
            for record in best:
                for k in repeats:
                    if (record["id"], k) not in done:
                        self.workers.submit(Genome.from_dict(record["genome"]), self._retrain_seed(record, k))
        for place, record in enumerate(best):
            for k in repeats:
                if (record["id"], k) not in done:
                    if self.workers is None and place + 1 < len(best):
                        self.evaluator.expect(Genome.from_dict(best[place + 1]["genome"]))
                    done[record["id"], k] = self._retrain(record, k)
                self.reporter.training("retraining the best", len(done), len(best) * len(repeats), "")
            if repeats:
                scores[record["id"]] = float(np.mean([done[record["id"], k] for k in repeats]))
        winner = max(best, key=lambda record: (scores[record["id"]], -record["id"]))
        individual = {field.name: winner[field.name] for field in dataclasses.fields(Individual)}
        return Individual.from_dict(individual | {"fitness": scores[winner["id"]]})

    def _retrain(self, record: dict[str, Any], k: int) -> float:
        """Accuracy of one more training; a failed one counts as 0, so that it cannot win."""
        seed = self._retrain_seed(record, k)
        if self.workers is not None:
            evaluation = self._await(seed)
        else:
            evaluation = self.evaluator.evaluate(Genome.from_dict(record["genome"]), seed, self.subset)
            self._spend(evaluation.seconds)
        fitness = 0.0 if evaluation.accuracy is None else evaluation.accuracy
        outcome = {"fitness": fitness, "failure": evaluation.failure, "seconds": evaluation.seconds}
        self.history.append("retraining", id=record["id"], seed=k, **outcome)
        return fitness

    def _retrain_seed(self, record: dict[str, Any], k: int) -> Seed:
        return self.config.seed, _RETRAIN, record["id"], k

    def _train_final(self, winner: Individual) -> tuple[TrainState, float]:
        """Trains the winner on all training images, with checkpoints between epochs."""
        config, seed = self.config.final_training, (self.config.seed, _FINAL)
        checkpoints = checkpoint.Checkpoints(self.task.workdir.final_checkpoints)
        prepared = self.final_engine.prepare(winner.genome, seed)
        self.final_engine.compile_clock.charge()  # what came before has been put down elsewhere

        def on_epoch(epoch: int, loss: float) -> None:
            self.reporter.training("final training", epoch, config.epochs, f"loss {loss:.4f}")

        data = self.evaluator.images, self.evaluator.labels
        identity, message = {"id": winner.id}, self.reporter.message
        trained = fit_resumably(
            prepared, *data, config, seed, self.all_images, checkpoints, identity, on_epoch, message
        )
        compiling = self.final_engine.compile_clock.charge()
        self._spend({"compile": compiling, "checkpoint": trained.writing})
        self._spend({"train": trained.session - compiling - trained.writing})
        return trained.state, trained.seconds

    def _spend(self, seconds: Mapping[str, float]) -> None:
        for part, value in seconds.items():
            self.spent[part] += value

    def _conclude(self, winner: Individual, state: TrainState, seconds: float) -> dict[str, Any]:
        """Saves the network, reads it back, and measures on the test images what was read."""
        data, workdir = self.task.data, self.task.workdir
        network = self.final_engine.network(winner.genome, state.weights)
        source = Source(data.name, data.class_names, self.config.data.resize)
        Classifier.of(winner.genome, self.problem, source, network).save(workdir.best_weights)
        classifier = Classifier.load(workdir.best_weights)
        test = self.task.load_test()
        begin = time.perf_counter()
        validation = classifier.accuracy(data.validation)
        accuracy = classifier.accuracy(test)
        compiling = classifier.trainer.compile_clock.charge()
        self._spend({"compile": compiling, "evaluate": time.perf_counter() - begin - compiling})
        result = self._result(winner, seconds) | {
            "dataset": data.name,
            "validation_accuracy": validation,
            "test_accuracy": accuracy,
            "test_interval": list(wilson_interval(accuracy, len(test))),
            "test_images": len(test),
        }
        wall = time.perf_counter() - self.begin + self.task.data_seconds
        self._spend({"other": wall - sum(self.spent.values())})
        result["session_seconds"] = {part: round(value, 1) for part, value in self.spent.items()}
        if not self.history.of_kind("session"):
            self.history.append("session", session_seconds=result["session_seconds"])
        self._write_genome(winner, {"test_accuracy": result["test_accuracy"]})
        write_json(workdir.result, result)
        return result

    def _write_genome(self, winner: Individual, more: dict[str, Any]) -> None:
        """`best.json`, before the final training already: should that fail, the search was not in vain."""
        metadata = {
            "dataset": self.task.data.name,
            "seed": self.config.seed,
            "id": winner.id,
            "parameters": self.problem.complexity(winner.genome).parameters,
            "search_fitness": self.recorded[winner.id]["fitness"],
            "retrained_fitness": winner.fitness,
        }
        write_text(self.task.workdir.best_genome, dumps(winner.genome, metadata | more))

    def _result(self, winner: Individual, final_seconds: float) -> dict[str, Any]:
        individuals = list(self.recorded.values())
        retrainings = self.history.of_kind("retraining")
        seconds = {part: 0.0 for part in ("compile", "train", "evaluate")}
        for record in [*individuals, *retrainings]:
            for part, value in record["seconds"].items():
                seconds[part] += value
        size = self.problem.complexity(winner.genome)
        return {
            "id": winner.id,
            "search_fitness": self.recorded[winner.id]["fitness"],
            "retrained_fitness": winner.fitness,
            "parameters": size.parameters,
            "multiply_adds": size.multiply_adds,
            "candidates": len(individuals),
            "trainings": sum(record["reused"] is None for record in individuals) + len(retrainings) + 1,
            "memo_hits": sum(record["reused"] is not None for record in individuals),
            "failures": sum(record["failure"] is not None for record in individuals),
            "seconds": {part: round(value, 1) for part, value in seconds.items()} | {"final": round(final_seconds, 1)},
        }
