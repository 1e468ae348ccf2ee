"""The second phase by a table: the winner is the best of fresh trainings, not the luckiest."""

from __future__ import annotations

import numpy as np
import pytest
from builders import SMALL, Outcome, Table, chain, history_of, make_explorer, open_ledger

from jaxevo.config import replace
from jaxevo.run.choose import Choice, best_of_first_generation, rank_best
from jaxevo.run.records import Candidate, Change
from jaxevo.run.reporter import Silent
from jaxevo.search_space.genome import Op
from jaxevo.strategies.individual import Individual, rank

GENOMES = [chain(1), chain(2), chain(3), chain(1, Op.CONV_5X5)]


def by_fitness(individuals: list[Individual]) -> list[Individual]:
    """The order of most strategies."""
    return sorted(individuals, key=rank)


def choose(*arguments, **named) -> Individual:
    """The winner."""
    return rank_best(*arguments, **named)[0]


def ledger_of(path, *fitness: float | None, genomes=GENOMES):
    """The ledger of candidates of the first generation with these fitnesses."""
    ledger = open_ledger(path)
    for id_, value in enumerate(fitness):
        individual = Individual(id_, genomes[id_], 0, operators=("random",), fitness=value)
        failure = "by hand" if value is None else None
        ledger.add_candidate(Candidate(individual, 1, 1, failure=failure))
    return ledger


class Fresh:
    """Fresh trainings with fitnesses written by hand, by id and repeat; None fails."""

    def __init__(self, fitness: dict[tuple[int, int], float | None]):
        self.fitness = fitness
        self.asked: list[list[tuple[int, ...]]] = []

    def __call__(self, trials):
        self.asked.append([trial.seed for trial in trials])
        genome, (_, purpose, id_, repeat), _ = trials[0]
        assert genome == GENOMES[id_] and purpose == 1
        fitness = self.fitness[id_, repeat]
        return Outcome(fitness, None if fitness is not None else "diverged")


def test_the_best_by_fitness_are_trained_again_and_the_best_mean_wins(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, None, 0.8)
    fresh = Fresh({(1, 0): 0.6, (1, 1): 0.7, (3, 0): 0.9, (3, 1): 0.5})
    winner = choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Silent())
    assert (winner.id, winner.fitness) == (3, 0.7)
    assert winner.genome == GENOMES[3]
    seeds = [(0, 1, 1, 0), (0, 1, 1, 1), (0, 1, 3, 0), (0, 1, 3, 1)]
    assert fresh.asked == [seeds[number:] for number in range(4)]  # the rest is told ahead
    written = history_of(tmp_path, "retraining")
    assert [(r["id"], r["seed"], r["fitness"]) for r in written] == [
        (1, 0, 0.6),
        (1, 1, 0.7),
        (3, 0, 0.9),
        (3, 1, 0.5),
    ]


def test_the_best_are_ranked_by_their_means(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, 0.8, 0.6)
    means = {1: 0.5, 2: 0.6, 0: 0.6}
    fresh = Fresh({(id_, repeat): mean for id_, mean in means.items() for repeat in (0, 1)})
    ranked = rank_best(
        replace(SMALL, {"retrain_best": 3}), ledger, fresh, ranked=by_fitness, reporter=Silent()
    )
    assert [(each.id, each.fitness) for each in ranked] == [(0, 0.6), (2, 0.6), (1, 0.5)]
    assert Choice(tuple(ranked)).winner.id == 0


def test_without_retraining_as_many_are_ranked_as_are_kept(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, None, 0.8)
    config = replace(SMALL, {"retrain_best": 0, "keep": 2})
    ranked = rank_best(config, ledger, Fresh({}), ranked=by_fitness, reporter=Silent())
    assert [(each.id, each.fitness) for each in ranked] == [(1, 0.9), (3, 0.8)]


def newest_first(individuals: list[Individual]) -> list[Individual]:
    """The order of a strategy that does not go by the fitness that was measured."""
    return sorted(individuals, key=lambda individual: -individual.id)


def test_the_strategy_says_who_is_trained_again_and_the_best_mean_wins(tmp_path):
    ledger = ledger_of(tmp_path, 0.95, 0.9, 0.8, 0.6)
    fresh = Fresh({(id_, repeat): 0.1 * id_ for id_ in (0, 2, 3) for repeat in (0, 1)})
    assert choose(SMALL, ledger, fresh, ranked=newest_first, reporter=Silent()).id == 3
    assert {id_ for id_, _ in ledger.retrainings} == {2, 3}
    # Before evolution there was the fitness that was measured.
    assert best_of_first_generation(SMALL, ledger, fresh, reporter=Silent()).id == 0


@pytest.mark.parametrize("keep", [1, 2])
def test_without_retraining_the_strategy_says_who_wins(tmp_path, keep: int):
    """Also where an earlier winner stands for choice again, and however many are kept."""
    ledger = ledger_of(tmp_path, 0.95, 0.9, None, 0.6)
    ledger.add_change(Change("2026-11-28", 1, {"num_generations": 8}, False, winner=0))
    for none in ({"retrain_best": 0}, {"retrain_best": keep, "retrain_seeds": 0}):
        config = replace(SMALL, none | {"keep": keep})
        ranked = rank_best(config, ledger, Fresh({}), ranked=newest_first, reporter=Silent())
        assert [each.id for each in ranked] == [3, 1, 0][:keep] + [0]


def test_the_best_of_the_first_generation_is_trained_again_as_often(tmp_path):
    """It is among the best here, so nothing is left to train; else it is trained by itself."""
    ledger = ledger_of(tmp_path, 0.7, 0.9, 0.8)
    later = Individual(3, GENOMES[3], 1, (1,), fitness=0.95)
    ledger.add_candidate(Candidate(later, 1, 1))
    fresh = Fresh({(id_, repeat): 0.1 * id_ for id_ in (1, 3) for repeat in (0, 1)})
    told = []

    class Telling(Silent):
        def training(self, stage, done, total, *, note):
            told.append((stage, done, total))

    first = best_of_first_generation(SMALL, ledger, fresh, reporter=Telling())
    stage = "retraining the best of the first generation"
    assert (first.id, first.fitness, told) == (1, 0.1, [(stage, 1, 2), (stage, 2, 2)])
    winner = choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Silent())
    assert winner.id == 3 and len(fresh.asked) == 4
    assert best_of_first_generation(SMALL, ledger, fresh, reporter=Silent()) == first
    assert len(fresh.asked) == 4


def test_a_first_generation_whose_best_fails_again_is_not_compared(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, 0.8)
    fresh = Fresh({(1, 0): 0.9, (1, 1): None})
    assert best_of_first_generation(SMALL, ledger, fresh, reporter=Silent()) is None


def test_of_equals_the_older_wins(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, 0.8)
    fresh = Fresh({(id_, repeat): 0.5 for id_ in (1, 2) for repeat in (0, 1)})
    assert choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Silent()).id == 1
    ledger = ledger_of(tmp_path / "equal", 0.9, 0.9, 0.9)  # of which the older are trained again
    fresh = Fresh({(id_, repeat): 0.5 for id_ in (0, 1) for repeat in (0, 1)})
    assert choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Silent()).id == 0


def test_a_training_that_fails_counts_as_0(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, 0.8)
    fresh = Fresh({(1, 0): 1.0, (1, 1): None, (2, 0): 0.6, (2, 1): 0.6})
    winner = choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Silent())
    assert (winner.id, winner.fitness) == (2, 0.6)
    failed = history_of(tmp_path, "retraining")[1]
    assert (failed["fitness"], failed["failure"]) == (0.0, "diverged")


def test_of_isomorphic_ones_only_the_best_is_trained_again(tmp_path):
    genomes = [GENOMES[0], GENOMES[1], GENOMES[1], GENOMES[1]]
    ledger = ledger_of(tmp_path, 0.5, 0.8, 0.9, 0.7, genomes=genomes)

    def by_id(trials):
        return Outcome({2: 0.6, 0: 0.7}[trials[0].seed[2]])

    assert choose(SMALL, ledger, by_id, ranked=by_fitness, reporter=Silent()).id == 0
    assert [record["id"] for record in history_of(tmp_path, "retraining")] == [2, 2, 0, 0]


def test_without_retraining_the_fitness_of_the_search_decides(tmp_path):
    ledger = ledger_of(tmp_path, 0.7, 0.9, None, 0.8)
    settings = {"retrain_best": 0}
    winner = choose(
        replace(SMALL, settings), ledger, Fresh({}), ranked=by_fitness, reporter=Silent()
    )
    assert (winner.id, winner.fitness) == (1, 0.9)
    assert history_of(tmp_path, "retraining") == []


def test_fewer_candidates_than_are_to_be_trained_again(tmp_path):
    ledger = ledger_of(tmp_path, None, 0.9)
    fresh = Fresh({(1, 0): 0.5, (1, 1): 0.7})
    winner = choose(
        replace(SMALL, {"retrain_best": 3}), ledger, fresh, ranked=by_fitness, reporter=Silent()
    )
    assert (winner.id, winner.fitness) == (1, 0.6)


@pytest.mark.parametrize(("mean", "wins"), [(0.8, True), (0.7, True), (0.6, False)])
def test_an_earlier_winner_stays_if_it_is_still_the_best(tmp_path, mean, wins):
    """Individual 0 won; since the run went on, 1 and 2 are the best by fitness."""
    ledger = ledger_of(tmp_path, 0.7)
    fresh = Fresh({(0, 0): mean, (0, 1): mean, (1, 0): 0.7, (1, 1): 0.7, (2, 0): 0.1, (2, 1): 0.1})
    assert choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Silent()).id == 0
    ledger.add_change(Change("2026-11-28", 1, {"num_generations": 8}, False, winner=0))
    for id_, value in ((1, 0.9), (2, 0.8)):
        individual = Individual(id_, GENOMES[id_], 0, operators=("random",), fitness=value)
        ledger.add_candidate(Candidate(individual, 1, 1))
    told = []

    class Telling(Silent):
        def training(self, stage, done, total, *, note):
            told.append((done, total))

    winner = choose(SMALL, ledger, fresh, ranked=by_fitness, reporter=Telling())
    assert (winner.id, winner.fitness) == ((0, mean) if wins else (1, 0.7))
    assert told == [(3, 6), (4, 6), (5, 6), (6, 6)]  # its own trainings are known


@pytest.mark.parametrize("done", range(5))
def test_what_is_trained_is_not_trained_again(tmp_path, done: int):
    fitness = {(1, 0): 0.6, (1, 1): 0.7, (2, 0): 0.9, (2, 1): 0.5}
    first = dict(list(fitness.items())[:done])
    try:
        choose(
            SMALL,
            ledger_of(tmp_path, 0.7, 0.9, 0.8),
            Fresh(first),
            ranked=by_fitness,
            reporter=Silent(),
        )
    except KeyError:  # of the first training that is not in the table, as an interrupt
        assert done < 4
    rest = Fresh({names: value for names, value in fitness.items() if names not in first})
    winner = choose(SMALL, open_ledger(tmp_path), rest, ranked=by_fitness, reporter=Silent())
    assert (winner.id, winner.fitness) == (2, 0.7)
    assert len(rest.asked) == 4 - done
    assert len(history_of(tmp_path, "retraining")) == 4


def test_progress_is_told(tmp_path):
    told = []

    class Telling(Silent):
        def training(self, stage, done, total, *, note):
            told.append((stage, done, total, note))

    fresh = Fresh({(id_, repeat): 0.5 for id_ in (0, 1) for repeat in (0, 1)})
    choose(SMALL, ledger_of(tmp_path, 0.9, 0.9), fresh, ranked=by_fitness, reporter=Telling())
    assert told == [("retraining the best", number, 4, "") for number in (1, 2, 3, 4)]


def test_after_a_search_the_winner_is_the_best_of_fresh_trainings(tmp_path):
    explorer = make_explorer(tmp_path)
    explorer.run()
    winner = choose(SMALL, explorer.ledger, Table(), ranked=by_fitness, reporter=Silent())
    fresh: dict[int, list[float]] = {}
    for record in history_of(tmp_path, "retraining"):
        fresh.setdefault(record["id"], []).append(record["fitness"])
    assert len(fresh) == 2 and all(len(values) == 2 for values in fresh.values())
    assert winner.id == max(fresh, key=lambda id_: np.mean(fresh[id_]))
    assert winner.fitness == np.mean(fresh[winner.id])
    candidates = explorer.ledger.candidates
    trained = [each for each in candidates.values() if each.reused is None]
    fitness = sorted(each.fitness for each in trained if each.fitness is not None)
    assert sorted(candidates[id_].fitness for id_ in fresh) == fitness[-2:]
