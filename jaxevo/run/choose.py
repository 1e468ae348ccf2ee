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
from jaxevo.run.trial import Trial
from jaxevo.seeds import retraining_seed
from jaxevo.strategies.individual import Individual, rank

if TYPE_CHECKING:  # imported late, as they bring JAX
    from jaxevo.run.evaluator import Evaluation


@dataclasses.dataclass(frozen=True)
class Choice:
    """The outcome of a search; each fitness is the mean of fresh trainings.

    Attributes:
        ranked: The best candidates, the winner first.
        first: The best of the first generation, which there was before evolution; None where it was
            not trained again.
    """

    ranked: tuple[Individual, ...]
    first: Individual | None = None

    @property
    def winner(self) -> Individual:
        """The best of all."""
        return self.ranked[0]


Evaluate = Callable[[Sequence[Trial]], "Evaluation"]
Ranked = Callable[[list[Individual]], list[Individual]]


def rank_best(
    config: SearchConfig, ledger: Ledger, evaluate: Evaluate, *, ranked: Ranked, reporter: Reporter
) -> list[Individual]:
    """The best candidates, the winner first; fitness is the mean of their fresh trainings.

    Trainings that the ledger knows are not done again. `evaluate` takes trials and gives the result
    of the first; it may begin the others, which follow. `ranked` is the strategy's order of
    evaluated individuals, which decides who is trained again and, where nobody is, who wins.
    """
    best = _best_candidates(ledger, max(config.retrain_best, config.keep), ranked)
    best += _earlier_winners(ledger, best)
    stage = "retraining the best"
    scored = _train_again(config, ledger, best, evaluate=evaluate, reporter=reporter, stage=stage)
    if not _repeats(config):
        return scored
    # The highest mean wins; of equals, the older candidate.
    return sorted(scored, key=rank)


def best_of_first_generation(
    config: SearchConfig, ledger: Ledger, evaluate: Evaluate, *, reporter: Reporter
) -> Individual | None:
    """What there was before evolution: its fitness, too, is the mean of fresh trainings.

    None without these, or if one of them failed: as a 0 it would tell of a gain that there is not.

    It is the best by the fitness that was measured. The strategy's order would know more than there
    was to be known then: a model of fitness is fitted to later candidates too.
    """
    born = ledger.generation(0)
    first = min(
        (candidate for candidate in born if candidate.fitness is not None),
        key=lambda candidate: rank(candidate.individual),
    )
    stage = "retraining the best of the first generation"
    (scored,) = _train_again(
        config, ledger, [first], evaluate=evaluate, reporter=reporter, stage=stage
    )
    again = [ledger.retrainings[first.id, repeat] for repeat in _repeats(config)]
    return scored if again and not any(each.failure for each in again) else None


def _repeats(config: SearchConfig) -> range:
    """The fresh trainings of each of the best."""
    return range(config.retrain_seeds if config.retrain_best else 0)


def _train_again(
    config: SearchConfig,
    ledger: Ledger,
    candidates: Sequence[Candidate],
    *,
    evaluate: Evaluate,
    reporter: Reporter,
    stage: str,
) -> list[Individual]:
    """Carries out the trainings that candidates lack; their fitness becomes the mean of them."""
    repeats = _repeats(config)
    wanted = [(candidate.id, repeat) for candidate in candidates for repeat in repeats]
    missing = [each for each in wanted if each not in ledger.retrainings]
    if missing:
        reporter.stage(stage, len(wanted) - len(missing), len(wanted))
    for number in range(len(missing)):
        ledger.add_retraining(_retrain(config, ledger, missing[number:], evaluate=evaluate))
        reporter.training(stage, len(wanted) - len(missing) + number + 1, len(wanted), note="")
    return [
        dataclasses.replace(candidate.individual, fitness=_score(candidate, ledger, repeats))
        for candidate in candidates
    ]


def _best_candidates(ledger: Ledger, number: int, ranked: Ranked) -> list[Candidate]:
    """The best in the strategy's order; of isomorphic ones the best stays."""
    known = ledger.candidates
    valid = [each.individual for each in known.values() if each.fitness is not None]
    distinct: dict[str, Candidate] = {}
    for individual in ranked(valid):
        distinct.setdefault(individual.genome.canonical_key(), known[individual.id])
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
    *,
    evaluate: Evaluate,
) -> Retraining:
    """Trains the first of the missing pairs (id, repeat).

    A failure counts as 0, so that it cannot win.
    """
    trials: list[Trial] = [
        Trial(ledger.candidates[id_].individual.genome, retraining_seed(config.seed, id_, repeat))
        for id_, repeat in missing
    ]
    evaluation = evaluate(trials)
    id_, repeat = missing[0]
    fitness = evaluation.fitness(config.fitness) or 0.0
    return Retraining(id_, repeat, fitness, evaluation.failure, evaluation.seconds)


def _score(candidate: Candidate, ledger: Ledger, repeats: Sequence[int]) -> float:
    """Mean of the fresh trainings; without any, the fitness it was selected for."""
    if not repeats:
        assert candidate.fitness is not None
        return candidate.fitness
    return float(np.mean([ledger.retrainings[candidate.id, repeat].fitness for repeat in repeats]))
