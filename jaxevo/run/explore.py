"""The first phase of a run: the strategy's candidates are evaluated and recorded.

Candidates that the history holds already are told to the strategy again, so an interrupted search
comes to the same end as an uninterrupted one. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxevo.config import SearchConfig
from jaxevo.files import FileError
from jaxevo.intervals import accuracy_interval
from jaxevo.run.drawn import bounded_strategy, recorded
from jaxevo.run.ledger import Ledger
from jaxevo.run.reader import check_state
from jaxevo.run.records import Candidate, Stagnation, Stop
from jaxevo.run.reporter import Reporter
from jaxevo.run.trial import Rival, Trial
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Genome
from jaxevo.seeds import search_seed
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.base import Strategy
from jaxevo.strategies.individual import Individual

if TYPE_CHECKING:  # imported late, as they bring JAX
    from jaxevo.run.evaluator import Evaluation
    from jaxevo.training.checkpoints import Checkpoints


class SearchFailedError(RuntimeError):
    """Too many candidates in a row failed, or all of them."""


@dataclasses.dataclass
class Explorer:
    """Carries a search to its last candidate.

    Attributes:
        config: The search's.
        ledger: Takes the records, and knows those of earlier sessions.
        checkpoints: Take the strategy's state after each generation.
        complexity: Gives the sizes of a genome's network.
        evaluate: Takes trials and gives the result of the first. It may begin the others, which
            most likely follow.
        labels: Classes of the validation images, `[M]`.
        reporter: Is told what happens.
        stopwatch: Is told the seconds that checkpoints take.
        out_of_time: True once no candidate is to be begun.
    """

    config: SearchConfig
    ledger: Ledger
    checkpoints: Checkpoints
    complexity: Callable[[Genome], Complexity]
    evaluate: Callable[[Sequence[Trial]], Evaluation]
    labels: np.ndarray
    reporter: Reporter
    stopwatch: Stopwatch = dataclasses.field(default_factory=Stopwatch)
    out_of_time: Callable[[], bool] = lambda: False
    _failures_in_a_row: int = 0
    # Of candidates that wait: the genome's canonical key, and the trial.
    _trials_by_id: dict[int, tuple[str, Trial]] = dataclasses.field(default_factory=dict)
    _last_saved: float = -math.inf  # the last candidate of the newest checkpoint

    def run(self) -> Strategy:
        """Evaluates what is missing; returns the strategy, which has been told everything.

        Raises:
            SearchFailedError: Too many candidates in a row failed, or all of them.
            FileError: The history is not this search's.
            OSError: Something cannot be written.
        """
        strategy = self._resume()
        # Tell all that is recorded, even if the search has ended: its last line may have been lost.
        self._record_stagnations(strategy)
        # The strategy is asked anew after each candidate, as it may draw another one then.
        while (waiting := strategy.ask()) and not self._stops_before(waiting[0]):
            self._settle_first(waiting, strategy)
        candidates = list(self.ledger.candidates.values())
        if not candidates:
            raise FileError(
                "history.jsonl ends the search before its first candidate; restore it from a copy, "
                "or search in another workdir"
            )
        if all(candidate.fitness is None for candidate in candidates):
            raise SearchFailedError(
                "the search has ended and all of its candidates failed, the last with: "
                f"{candidates[-1].failure}; remove the cause and search in another workdir"
            )
        if self.config.evolution.racing:
            self._say_what_racing_saved(candidates)
        return strategy

    def _say_what_racing_saved(self, candidates: Sequence[Candidate]) -> None:
        epochs = self.config.training.epochs
        trained = [len(each.losses) for each in candidates if each.losses and each.reused is None]
        early = sum(number < epochs for number in trained)
        self.reporter.message(
            f"racing ended {early} of {len(trained)} trainings early: they all took {sum(trained)} "
            f"of {epochs * len(trained)} epochs"
        )

    def _stops_before(self, candidate: Individual) -> bool:
        """True if trainings or time are spent, or the accuracy that is enough is reached.

        A candidate that is recorded is always told to the strategy.
        """
        if candidate.id in self.ledger.candidates:
            return False
        enough = self.config.target_reached(self.ledger.best_accuracy)
        if enough or self.config.budget_spent(self.ledger.trainings):
            return True
        if self.ledger.stop is None and self.ledger.trainings and self.out_of_time():
            self.ledger.add_stop(Stop("the time limit was reached"))
            self.reporter.message("the time limit is reached: no further candidate is begun")
        return self.ledger.stop is not None

    def _resume(self) -> Strategy:
        """Restores the strategy from the newest usable checkpoint.

        The rest of the history will be told to it again.
        """
        strategy = bounded_strategy(self.config, self.complexity)
        known = self.ledger.candidates
        # Take the newest checkpoint, if it is of this search and all of its candidates are known.
        newest = self.checkpoints.load_newest(self.reporter.message)
        if newest is not None:
            step, state, _ = newest
            try:
                check_state(state, known)
                pending = {individual["id"] for individual in state["pending"]}
                if set(range(state["next_id"])) - pending <= known.keys():
                    strategy.load_state_dict(state)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                self.reporter.message(
                    f"checkpoint {step} is not of this search ({error}); going on from the history"
                )
                strategy = bounded_strategy(self.config, self.complexity)
        if known:
            self.reporter.message(f"resuming: {len(known)} candidates are known already")
        return strategy

    def _settle_first(self, waiting: list[Individual], strategy: Strategy) -> None:
        """Evaluates the first candidate unless it is recorded, and tells the strategy."""
        candidate = dataclasses.replace(waiting[0], generation=strategy.generation)
        known = recorded(candidate, self.ledger.candidates)
        record = known or self._evaluated(candidate, waiting)
        if known is None:
            self.ledger.add_candidate(record)
        generation = strategy.generation
        strategy.tell(record.individual)
        self._record_stagnations(strategy)
        if known is not None:
            return
        # Save the strategy if this candidate completes a generation, and at least L candidates came
        # since it was saved.
        far = candidate.id >= self._last_saved + self.config.evolution.lag
        if strategy.generation > generation and far:
            self._last_saved = candidate.id
            with self.stopwatch.part("checkpoint"):
                self.checkpoints.save(strategy.generation, strategy.state_dict())
        self.reporter.candidate(record, strategy)
        self._stop_if_all_fail(record)
        if strategy.generation > generation:
            self._warn_if_at_chance(generation)

    def _evaluated(self, candidate: Individual, waiting: list[Individual]) -> Candidate:
        """The record of the first that waits: trained, or with the scores of an isomorphic one.

        Those that wait behind it may be trained beside it.
        """
        # The network's size, which a front minimises.
        size = self.complexity(candidate.genome)
        cost = self.config.cost(size.parameters, size.multiply_adds)
        candidate = dataclasses.replace(candidate, cost=cost)
        trained = self.ledger.trained(candidate.genome) if self.config.reuse_fitness else None
        # An isomorphic genome was trained: all of its scores are taken over.
        if trained is not None:
            return dataclasses.replace(
                trained,
                individual=dataclasses.replace(candidate, fitness=trained.fitness),
                parameters=size.parameters,
                multiply_adds=size.multiply_adds,
                reused=trained.id,
                seconds={},
                place=None,
            )
        # Else it is trained.
        evaluation = self.evaluate(self._trials(waiting))
        return Candidate(
            dataclasses.replace(candidate, fitness=evaluation.fitness(self.config.fitness)),
            size.parameters,
            size.multiply_adds,
            failure=evaluation.failure,
            seconds=evaluation.seconds,
            traceback=evaluation.details,
            accuracy=evaluation.accuracy,
            cross_entropy=evaluation.cross_entropy,
            loss=evaluation.loss,
            losses=evaluation.losses if self.config.evolution.racing else None,
            place=evaluation.place,
        )

    def _trials(self, waiting: list[Individual]) -> list[Trial]:
        """The first waiting candidate's trial, and behind it trials that may begin early.

        Each set of isomorphic candidates has one trial. There are no more trials than trainings
        that the search may still do.
        """
        # Most of these waited the last time too, so their trials and keys are kept.
        known = self._trials_by_id
        self._trials_by_id = {each.id: known.get(each.id) or self._trial(each) for each in waiting}
        trials: dict[str, Trial] = {}
        for key, trial in self._trials_by_id.values():
            if not self.ledger.has_trained(key):
                trials.setdefault(key, trial)
        allowed = self.config.max_trainings - self.ledger.trainings
        return list(trials.values())[: allowed if self.config.max_trainings else None]

    def _trial(self, candidate: Individual) -> tuple[str, Trial]:
        """A candidate's trial, and the key that it shares with those that wait for its result."""
        genome = candidate.genome
        key = genome.canonical_key() if self.config.reuse_fitness else str(candidate.id)
        seed = search_seed(self.config.seed, candidate.id)
        return key, Trial(genome, seed, self._rival(candidate))

    def _rival(self, candidate: Individual) -> Rival | None:
        """The training that the candidate's must keep up with, if it is in a race."""
        if candidate.rival is None:
            return None
        known = self.ledger.candidates[candidate.rival]
        assert known.losses is not None and known.loss is not None
        return Rival(known.losses, known.loss)

    def _record_stagnations(self, strategy: Strategy) -> None:
        """Writes those avoidances of the strategy that the history does not have."""
        for event in list(strategy.events)[len(self.ledger.stagnations) :]:
            self.ledger.add_stagnation(Stagnation(event.kind, event.generation, event.best_id))
            self.reporter.message(
                f"generation {event.generation}: no progress, {event.kind} stagnation avoidance"
            )

    def _stop_if_all_fail(self, record: Candidate) -> None:
        self._failures_in_a_row = self._failures_in_a_row + 1 if record.failure else 0
        if self._failures_in_a_row >= self.config.max_consecutive_failures:
            raise SearchFailedError(
                f"{self._failures_in_a_row} candidates in a row failed, the last with: "
                f"{record.failure}; remove the cause and give the same command to go on"
            )

    def _warn_if_at_chance(self, generation: int) -> None:
        """Says what to check when no candidate of a generation beats naming the commonest class."""
        # Compare the best accuracy with that of naming one class; reused ones were judged before.
        number = len(self.labels)
        commonest = float(np.bincount(self.labels).max()) / number
        trained = [
            candidate.accuracy
            for candidate in self.ledger.generation(generation)
            if candidate.accuracy is not None and candidate.reused is None
        ]
        if not trained or accuracy_interval(max(trained), number)[0] > commonest:
            return
        # Say what may be wrong.
        if max(trained) > commonest:
            remedy = f"{number:,} images are too few to tell whether that is better"
        else:
            remedy = (
                "check learning_rate and epochs, whether the labels belong to the images, whether "
                "pixels range from 0 to 255, and of uneven classes class_weights=balanced"
            )
        self.reporter.message(
            f"generation {generation}: the best candidate has {max(trained):.2%} of the validation "
            f"images, naming the commonest class each time {commonest:.2%}: {remedy}"
        )
