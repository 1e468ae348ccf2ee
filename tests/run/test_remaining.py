"""The time left against the durations that real runs had, and what it counts."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from builders import chain

from jaxevo.config import SearchConfig, replace
from jaxevo.config.presets import preset
from jaxevo.run.reader import load_run
from jaxevo.run.records import Candidate, Retraining
from jaxevo.run.remaining import Pace, Remaining
from jaxevo.run.workdir import Workdir
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.individual import Individual

DOCS = pathlib.Path(__file__).parents[2] / "docs"
# Four runs of the preset quick on digits by jaxevo 0.2.0 and 0.3.0, engine native, on two cores of
# an AMD EPYC that other jobs used too, 2026-11-28. A candidate is its generation, and the seconds
# of its training and its measurement unless it was isomorphic to an earlier one.
RECORDED = json.loads((pathlib.Path(__file__).parent / "recorded_seconds.json").read_text())
# They compared no winner.
DIGITS = replace(
    SearchConfig(engine="native"),
    preset("quick", 1437) | {"compare_winner": False, "epochs": 6, "num_generations": 5},
)


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def ledger_of(candidates: list[Candidate], retrainings: list[Retraining] | None = None) -> Any:
    return SimpleNamespace(
        candidates={candidate.id: candidate for candidate in candidates},
        retrainings={(each.id, each.repeat): each for each in retrainings or []},
        trainings=sum(candidate.reused is None for candidate in candidates),
        stop=None,
        best_accuracy=0.5,
        earlier_retrainings=0,
    )


def candidate(number: int, train: float | None = None, evaluate: float = 0.0) -> Candidate:
    """A candidate that was trained for so many seconds; None: it reused a fitness."""
    individual = Individual(number, chain(1), 0, fitness=0.5)
    if train is None:
        return Candidate(individual, 1, 1, reused=0)
    seconds = {"compile": 50.0, "train": train, "evaluate": evaluate}
    return Candidate(individual, 1, 1, seconds=seconds)


def test_a_training_that_a_race_ended_tells_the_pace_of_the_epochs_it_had():
    config = replace(DIGITS, {"fitness": "speed", "racing": 0.1})
    whole = [candidate(k, 6.0, 1.0) for k in range(4)]
    early = [dataclasses.replace(candidate(k, 2.0, 1.0), losses=(1.0, 0.9)) for k in range(2, 4)]
    found = [remaining_of(config, ledger_of(each)).pace() for each in (whole, whole[:2] + early)]
    assert found[0] == found[1]


def remaining_of(config: SearchConfig, ledger: Any, **fields: Any) -> Remaining:
    clock = fields.pop("clock", Clock())
    return Remaining(
        config, ledger, Stopwatch(clock), num_train=fields.pop("num_train", 64), **fields
    )


class Case(NamedTuple):
    """The seconds left at a moment of a real run, as told and as they were."""

    told: float
    real: float


def cases_of_digits(name: str) -> list[Case]:
    """All moments of a recorded run from its second generation on."""
    run = RECORDED[name]
    candidates = [candidate(k, *row[1:]) for k, row in enumerate(run["candidates"])]
    seconds = [sum(row[1:]) for row in run["candidates"]]
    retrainings = [
        Retraining(k // 2, k % 2, 0.5, seconds={"train": train, "evaluate": evaluate})
        for k, (train, evaluate) in enumerate(run["retrainings"])
    ]
    seconds += [sum(row) for row in run["retrainings"]]
    # Their final trainings measured no accuracy after each epoch, as they do now.
    measuring = statistics.fmean(row[-1] for row in run["candidates"] if row[1:])
    end = run["final"] + DIGITS.final_training.epochs * measuring + run["test"]
    cases = []
    first = next(k for k, row in enumerate(run["candidates"]) if row[0] == 2)
    for done in range(first, len(seconds) + 1):
        ledger = ledger_of(candidates[:done], retrainings[: max(0, done - len(candidates))])
        left = remaining_of(DIGITS, ledger, num_train=1150, scored=(287 + 360) / 287)
        left.stopwatch.seconds["compile"] = run["compile"]
        cases.append(Case(left.total(), sum(seconds[done:]) + end))
    return cases


def cases_of(name: str) -> list[Case]:
    """The moments of the recorded run or the shipped search of this name."""
    return cases_of_digits(name) if name in RECORDED else cases_of_mnist(name)


def cases_of_mnist(name: str) -> list[Case]:
    """All moments of a shipped search from its second generation on, until its last candidate."""
    run = load_run(Workdir(DOCS / name.replace("mnist", "mnist-search")))
    records = list(run.candidates.values())
    trainings = sum(record.reused is None for record in records)
    config = replace(run.config, {"max_trainings": trainings})
    seconds = [
        sum(value for part, value in record.seconds.items() if part != "compile")
        for record in records
    ]
    cases = []
    first = next(k for k, record in enumerate(records) if record.individual.generation == 2)
    for done in range(first, len(records) - 1):
        left = remaining_of(config, ledger_of(records[:done]), num_train=57_000)
        cases.append(Case(left.search(), sum(seconds[done:])))
    return cases


def factors(cases: list[Case]) -> tuple[float, float]:
    """The smallest and the largest of told by real."""
    found = [told / real for told, real in cases]
    return min(found), max(found)


@pytest.mark.parametrize("name", ["digits-2", "digits-3", "digits-4", "mnist-b3", "mnist-b4"])
def test_from_the_second_generation_on_it_is_within_30_percent_of_what_real_runs_took(name):
    cases = cases_of(name)
    low, high = factors(cases)
    assert len(cases) > 30 and low > 0.7 and high < 1.3


@pytest.mark.parametrize(("name", "bounds"), [("digits-1", (0.9, 1.5)), ("mnist", (0.48, 1.0))])
def test_it_foresees_no_other_load_and_no_larger_networks(name, bounds):
    # Other jobs took half of the processor in the first half of digits-1. In the search on MNIST
    # networks became three times as large, and later candidates took five times as long.
    low, high = factors(cases_of(name))
    assert bounds[0] < low and high < bounds[1]


# 10 + 10 * 4 candidates of 2 epochs of 64 images; retraining 3 * 2; 10 epochs of 640 images.
COUNTED = replace(
    SearchConfig(),
    {"population_size": 10, "num_offspring": 10, "num_generations": 4, "batch_size": 32}
    | {"train_examples": 64, "epochs": 2, "final_epochs": 10, "final_batch_size": 32},
)


def test_it_counts_everything_to_the_end():
    # Before the first candidate the sample's pace counts: 128 images, and a second for measuring,
    # which the final training does after each of its ten epochs.
    fresh = remaining_of(COUNTED, None, num_train=650, scored=3.0)
    assert fresh.total() == 0
    fresh.sample = Pace(image=1 / 128, evaluation=1.0)
    assert (fresh.search(), fresh.choice(), fresh.final()) == (50 * 2.0, 6 * 2.0, 6400 / 128 + 13)
    # Ten candidates took 4 s each, two of them nothing: 40 are left, of which 32 are trained.
    some = [candidate(k, 3.0, 1.0) if k < 8 else candidate(k) for k in range(10)]
    ledger = ledger_of(some)
    left = remaining_of(COUNTED, ledger, num_train=650, scored=3.0)
    left.sample = Pace(99.0, 99.0)
    assert left.search() == pytest.approx(32 * 4)
    assert left.choice() == pytest.approx(6 * 4)
    assert left.final() == pytest.approx(3.0 * 6400 / 128 + 13)
    # At most 20 trainings: 12 are left. A time limit of 200 s leaves what 1.2 * 187 does not need.
    config = replace(COUNTED, {"max_trainings": 20})
    assert remaining_of(config, ledger, num_train=650).search() == pytest.approx(12 * 4)
    clock = Clock()
    fields = {"num_train": 650, "scored": 3.0, "time_limit": 250.0, "clock": clock}
    limited = remaining_of(COUNTED, ledger, **fields)
    clock.now = 10.0
    assert limited.search() == pytest.approx(250 - 10 - 1.2 * 187)
    # The last twenty trainings give the pace, the retrainings among them.
    slow = [Retraining(0, k, 0.5, seconds={"train": 5.0, "evaluate": 1.0}) for k in range(5)]
    left = remaining_of(COUNTED, ledger_of([candidate(k, 3.0) for k in range(50)], slow))
    assert left.search() == 0
    assert left.choice() == pytest.approx((15 * 3 + 5 * 6) / 20)


def test_it_counts_the_comparison_of_the_winner_and_what_is_kept():
    config = replace(COUNTED, {"keep": 2, "compare_winner": True})
    left = remaining_of(config, ledger_of([candidate(0, 2.0)]))
    # Two more trainings of the best of the first generation; the second best and the small CNN.
    assert left.choice() == pytest.approx(8 * 2.0)
    assert left.final() == pytest.approx(3 * 10.0)
    assert left.total(10) == pytest.approx(20.0)  # the winner's training is done
    # Once the winner is chosen, it is of no account how many trainings that took.
    left.chosen = True
    assert (left.search(), left.choice()) == (0, 0) and left.total() == left.final()


def test_retrainings_from_before_the_run_was_continued_do_not_count():
    again = [Retraining(0, k, 0.5, seconds={"train": 3.0}) for k in range(6)]
    ledger = ledger_of([candidate(k, 3.0) for k in range(40)], again)
    ended = remaining_of(COUNTED, ledger)
    assert (ended.search(), ended.choice()) == (0, 0)
    ledger.earlier_retrainings = 6
    assert ended.search() == pytest.approx(10 * 3.0)
    assert ended.choice() == pytest.approx(6 * 3.0)


@pytest.mark.parametrize("end", [{"stop": "the time limit"}, {"best_accuracy": 0.9}])
def test_nothing_is_left_of_a_search_that_has_ended(end):
    ledger = ledger_of([candidate(0, 3.0)])
    vars(ledger).update(end)
    left = remaining_of(replace(COUNTED, {"target_accuracy": 0.9}), ledger)
    assert left.search() == 0 and left.choice() > 0


def test_workers_share_what_can_be_done_at_once():
    ledger = ledger_of([candidate(k, 3.0) for k in range(10)])
    one, two = (remaining_of(COUNTED, ledger, workers=number) for number in (1, 2))
    assert (two.search(), two.choice()) == (one.search(), one.choice() / 2)
    for at_once in ({"mating_pool": "survivors"}, {"strategy": "random"}):
        config = replace(COUNTED, at_once)
        assert remaining_of(config, ledger, workers=2).search() == one.search() / 2


def test_compiling_counts_where_each_candidate_is_compiled():
    ledger = ledger_of([candidate(0, 3.0)])
    assert remaining_of(COUNTED, ledger).training() == pytest.approx(3.0)
    compiled = replace(COUNTED, {"engine": "compiled"})
    assert remaining_of(compiled, ledger).training() == pytest.approx(53.0)


def test_the_final_training_goes_by_its_own_pace_once_that_is_known():
    clock = Clock()
    left = remaining_of(COUNTED, ledger_of([candidate(0, 2.0)]), clock=clock)
    assert left.total(4) == pytest.approx(6 * 1.0)  # 64 images at 1/64 s
    clock.now = 10.0
    assert left.total(6) == pytest.approx(4 * 5.0)


def test_time_is_over_once_the_rest_is_needed_for_what_follows():
    # A candidate takes 2 s. One more, six of the best again, 10 s of final training: 24 s.
    ledger, clock = ledger_of([candidate(0, 2.0)]), Clock()
    unlimited = remaining_of(COUNTED, ledger, clock=clock)
    limited = remaining_of(COUNTED, ledger, clock=clock, time_limit=100.0)
    for clock.now, over in ((71.1, False), (71.3, True)):
        assert limited.out_of_time() == over and not unlimited.out_of_time()
    # Two more of the best of the first generation and two more final trainings: 24 s more.
    more = replace(COUNTED, {"keep": 2, "compare_winner": True})
    clock = Clock()
    limited = remaining_of(more, ledger, clock=clock, time_limit=100.0)
    for clock.now, over in ((42.3, False), (42.5, True)):
        assert limited.out_of_time() == over
