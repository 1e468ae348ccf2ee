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
    *,
    ranked: Callable[[list[Individual]], list[Individual]],
    reporter: Reporter,
) -> Individual:
    """The winner, whose fitness is the mean of its fresh trainings.

    Trainings that the ledger knows are not done again. `evaluate` gives the result of the first
    job; the others follow. `ranked` is the strategy's order of evaluated individuals.
    """
    # List the trainings that the best candidates still lack, and carry them out.
    best = _best_candidates(ledger, max(1, config.retrain_best), ranked)
    repeats = range(config.retrain_seeds if config.retrain_best else 0)
    wanted = [(candidate.id, repeat) for candidate in best for repeat in repeats]
    missing = [each for each in wanted if each not in ledger.retrainings]
    if missing:
        reporter.stage("retraining the best", len(wanted) - len(missing), len(wanted))
    for number in range(len(missing)):
        ledger.add_retraining(_retrain(config, ledger, missing[number:], evaluate=evaluate))
        reporter.training("retraining the best", len(ledger.retrainings), len(wanted), note="")
    # The highest mean wins; of equals, the older candidate.
    scores = {candidate.id: _score(candidate, ledger, repeats) for candidate in best}
    winner = max(best, key=lambda candidate: (scores[candidate.id], -candidate.id))
    return dataclasses.replace(winner.individual, fitness=scores[winner.id])


def _best_candidates(
    ledger: Ledger, number: int, ranked: Callable[[list[Individual]], list[Individual]]
) -> list[Candidate]:
    """The best in the strategy's order; of isomorphic ones the best stays."""
    known = ledger.candidates
    valid = [each.individual for each in known.values() if each.fitness is not None]
    distinct: dict[str, Candidate] = {}
    for individual in ranked(valid):
        distinct.setdefault(individual.genome.canonical_key(), known[individual.id])
        if len(distinct) == number:
            break
    return list(distinct.values())


def _retrain(
    config: SearchConfig,
    ledger: Ledger,
    missing: list[tuple[int, int]],
    *,
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
    fitness = evaluation.fitness(config.fitness) or 0.0
    return Retraining(id_, repeat, fitness, evaluation.failure, evaluation.seconds)


def _score(candidate: Candidate, ledger: Ledger, repeats: Sequence[int]) -> float:
    """Mean of the fresh trainings; without any, the fitness it was selected for."""
    if not repeats:
        assert candidate.fitness is not None
        return candidate.fitness
    return float(np.mean([ledger.retrainings[candidate.id, repeat].fitness for repeat in repeats]))
