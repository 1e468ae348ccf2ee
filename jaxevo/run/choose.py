"""The second phase of a run: the best few are trained again with fresh seeds, and the best wins.

The fitness that they were selected for is too good, being the luckiest of many. JAX is not
imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxevo.config import SearchConfig
from jaxevo.run.ledger import Ledger
from jaxevo.run.records import Candidate, Retraining
from jaxevo.run.reporter import Reporter
from jaxevo.seeds import retraining_seed
from jaxevo.strategies.individual import Individual

if TYPE_CHECKING:  # imported late, as they bring JAX
    from jaxevo.run.dispatch import Job
    from jaxevo.run.evaluator import Evaluation


def choose(
    config: SearchConfig,
    ledger: Ledger,
    evaluate: Callable[[Sequence[Job]], Evaluation],
    reporter: Reporter,
) -> Individual:
    """The winner, whose fitness is the mean of its fresh trainings.

    Trainings that the ledger knows are not done again. `evaluate` gives the result of the first
    job; the others follow.
    """
    # List the trainings that the best candidates still lack, and carry them out.
    best = _best_candidates(ledger, max(1, config.retrain_best))
    best += _earlier_winners(ledger, best)
    repeats = range(config.retrain_seeds if config.retrain_best else 0)
    wanted = [(candidate.id, repeat) for candidate in best for repeat in repeats]
    missing = [each for each in wanted if each not in ledger.retrainings]
    for number in range(len(missing)):
        ledger.add_retraining(_retrain(config, ledger, missing[number:], evaluate))
        done = len(wanted) - len(missing) + number + 1
        reporter.training("retraining the best", done, len(wanted), "")
    # The highest mean wins; of equals, the older candidate.
    scores = {candidate.id: _score(candidate, ledger, repeats) for candidate in best}
    winner = max(best, key=lambda candidate: (scores[candidate.id], -candidate.id))
    return dataclasses.replace(winner.individual, fitness=scores[winner.id])


def _best_candidates(ledger: Ledger, number: int) -> list[Candidate]:
    """The best by fitness, the older of equals first; of isomorphic ones the best stays."""
    valid = [candidate for candidate in ledger.candidates.values() if candidate.fitness is not None]
    ranked = sorted(valid, key=lambda candidate: (-(candidate.fitness or 0.0), candidate.id))
    distinct: dict[str, Candidate] = {}
    for candidate in ranked:
        distinct.setdefault(candidate.individual.genome.canonical_key(), candidate)
        if len(distinct) == number:
            break
    return list(distinct.values())


def _earlier_winners(ledger: Ledger, best: Sequence[Candidate]) -> list[Candidate]:
    """Winners from before the run was continued, unless they are among the best still."""
    winners = {change.winner for change in ledger.changes if change.winner is not None}
    return [ledger.candidates[id_] for id_ in sorted(winners - {each.id for each in best})]


def _retrain(
    config: SearchConfig,
    ledger: Ledger,
    missing: list[tuple[int, int]],
    evaluate: Callable[[Sequence[Job]], Evaluation],
) -> Retraining:
    """Trains the first of the missing pairs (id, repeat).

    A failure counts as 0, so that it cannot win.
    """
    jobs: list[Job] = [
        (ledger.candidates[id_].individual.genome, retraining_seed(config.seed, id_, repeat))
        for id_, repeat in missing
    ]
    evaluation = evaluate(jobs)
    id_, repeat = missing[0]
    fitness = 0.0 if evaluation.accuracy is None else evaluation.accuracy
    return Retraining(id_, repeat, fitness, evaluation.failure, evaluation.seconds)


def _score(candidate: Candidate, ledger: Ledger, repeats: Sequence[int]) -> float:
    """Mean of the fresh trainings; without any, the fitness it was selected for."""
    if not repeats:
        assert candidate.fitness is not None
        return candidate.fitness
    return float(np.mean([ledger.retrainings[candidate.id, repeat].fitness for repeat in repeats]))
