"""A whole search in a folder: evolve, and choose the winner, which `final` then trains and tests once.

Everything that happened is read back from the history, so the same call resumes an interrupted run and comes to the
same end. The test images are loaded only after the last choice has been made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import numpy as np

from jaxevo.config import SearchConfig, WorkerConfig
from jaxevo.datasets import Images, SearchData
from jaxevo.datasets.splits import training_subset
from jaxevo.run import records
from jaxevo.run.dispatch import Dispatcher, Job
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.finish import finish
from jaxevo.run.workdir import History, Workdir, WorkdirError, write_text
from jaxevo.run.workers import Workers, start_workers
from jaxevo.search_space.genome import Genome, dumps
from jaxevo.strategies.base import Individual, Strategy
from jaxevo.strategies.registry import make_strategy
from jaxevo.training import checkpoints as checkpoint
from jaxevo.training.classifier import wilson_interval
from jaxevo.training.engines import Problem

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

    def run(self) -> dict[str, Any]:
        """Carries the run to its end and returns the content of `result.json`.

        Raises `OSError` where something cannot be written; the same call, once it can, goes on from there.
        """
        return finish(self, self.find(), (self.config.seed, _FINAL))

    def find(self) -> Individual:
        """Carries the run to the choice of the winner, whose genome it writes; raises like `run`."""
        strategy = self._resume()
        with self._start_workers() as workers:
            self.dispatcher = Dispatcher(self.evaluator, self.subset, workers, self.spend)
            while not self.budget_spent and (candidates := strategy.ask()):
                self.waiting = candidates
                for candidate in candidates:
                    if not self.budget_spent:
                        self._evaluate(candidate, strategy)
            winner = self._choose()
        self.write_genome(winner, {})
        return winner

    @property
    def budget_spent(self) -> bool:
        """True once `max_trainings` are recorded."""
        return self.config.budget_spent(sum(record["reused"] is None for record in self.recorded.values()))

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
                self.spend({"checkpoint": time.perf_counter() - begin})
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
            evaluation = self.dispatcher.evaluate(self._jobs(candidate))
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

    def _jobs(self, candidate: Individual) -> list[Job]:
        """A candidate's training, and of those after it what will have to be trained unless one of these fails."""
        jobs: dict[str, Job] = {}
        for other in self.waiting[self.waiting.index(candidate) :]:
            key = other.genome.canonical_key() if self.config.reuse_fitness else str(other.id)
            if key not in self.memo and other.id not in self.recorded:
                jobs.setdefault(key, (other.genome, (self.config.seed, _SEARCH, other.id)))
        return list(jobs.values())

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
        done = {(r["id"], r["seed"]): r["fitness"] for r in self.history.of_kind("retraining")}
        repeats = range(self.config.retrain_seeds if self.config.retrain_best else 0)
        wanted = [(record["id"], k) for record in best for k in repeats]
        missing = [each for each in wanted if each not in done]
        for number, (id_, k) in enumerate(missing):
            done[id_, k] = self._retrain(missing[number:])
            self.reporter.training("retraining the best", len(done), len(wanted), "")
        scores = {
            record["id"]: float(np.mean([done[record["id"], k] for k in repeats])) if repeats else record["fitness"]
            for record in best
        }
        winner = max(best, key=lambda record: (scores[record["id"]], -record["id"]))
        individual = {field.name: winner[field.name] for field in dataclasses.fields(Individual)}
        return Individual.from_dict(individual | {"fitness": scores[winner["id"]]})

    def _retrain(self, missing: list[tuple[int, int]]) -> float:
        """Accuracy of the first of these, by individual and number; a failed one counts as 0, so that it cannot win."""
        jobs: list[Job] = [
            (Genome.from_dict(self.recorded[id_]["genome"]), (self.config.seed, _RETRAIN, id_, k)) for id_, k in missing
        ]
        evaluation, (id_, k) = self.dispatcher.evaluate(jobs), missing[0]
        fitness = 0.0 if evaluation.accuracy is None else evaluation.accuracy
        outcome = {"fitness": fitness, "failure": evaluation.failure, "seconds": evaluation.seconds}
        self.history.append("retraining", id=id_, seed=k, **outcome)
        return fitness

    def spend(self, seconds: Mapping[str, float]) -> None:
        """Adds up seconds by what they went into."""
        for part, value in seconds.items():
            self.spent[part] += value

    def write_genome(self, winner: Individual, more: dict[str, Any]) -> None:
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
