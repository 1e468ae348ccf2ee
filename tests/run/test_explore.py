"""The first phase by a table in place of training: what is recorded, reused, resumed and ended."""

from __future__ import annotations

import json
import pathlib
import statistics
import time

import numpy as np
import pytest
from builders import (
    LABELS,
    SMALL,
    STRATEGIES,
    Forgetful,
    Outcome,
    Table,
    config_of,
    damage_checkpoints,
    explore_and_choose,
    history_of,
    make_explorer,
    no_complexity,
)

from jaxevo.config import SearchConfig, replace
from jaxevo.files import FileError
from jaxevo.run.explore import SearchFailedError
from jaxevo.run.reader import load_run
from jaxevo.run.records import Stop
from jaxevo.run.reporter import Silent
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.complexity import Complexity
from jaxevo.search_space.genome import Genome
from jaxevo.stopwatch import Stopwatch


@pytest.mark.parametrize(
    ("strategy", "lag"),
    [*((strategy, 1) for strategy in STRATEGIES), ("rea", 5), ("aco", 5), ("nsga2", 5)],
)
def test_interrupted_after_any_number_of_trainings_it_comes_to_the_same_end(
    tmp_path, strategy, lag
):
    config = config_of(strategy, lag=lag)
    table = Table()
    winner = explore_and_choose(tmp_path / "whole", config, evaluate=table)
    assert table.count > 20
    expected = history_of(tmp_path / "whole")
    kinds = {record["kind"] for record in expected}
    assert kinds == {"individual", "retraining"} | ({"stagnation"} if strategy == "rea" else set())
    # At every place of a generation; the model of `guided` takes long.
    for limit in range(1, table.count, 15 if strategy == "guided" else 5):
        path = tmp_path / str(limit)
        with pytest.raises(KeyboardInterrupt):
            explore_and_choose(path, config, evaluate=Table(limit))
        again, reporter = Table(), Silent()
        assert explore_and_choose(path, config, evaluate=again, reporter=reporter) == winner
        # Its own checkpoints are used.
        assert not any("is not of this search" in message for message in reporter.messages)
        assert history_of(path) == expected
        assert again.count == table.count - limit  # nothing was trained twice


RACE = {"fitness": "speed", "racing": 0.05, "epochs": 4}


@pytest.mark.parametrize(("strategy", "lag"), [("rea", 1), ("rea", 5), ("guided", 1), ("aging", 5)])
def test_a_race_comes_to_the_same_end_wherever_it_is_interrupted(tmp_path, strategy, lag):
    config = config_of(strategy, lag=lag, **RACE)
    table, reporter = Table(racing=True), Silent()
    path = tmp_path / "whole"
    winner = explore_and_choose(path, config, evaluate=table, reporter=reporter)
    expected = history_of(path)
    trained = [each for each in expected if "losses" in each and each["reused"] is None]
    epochs = [len(each["losses"]) for each in trained]
    assert (
        f"racing ended {sum(number < 4 for number in epochs)} of {len(trained)} trainings early: "
        f"they all took {sum(epochs)} of {4 * len(trained)} epochs"
    ) in reporter.messages
    assert 4 < epochs.count(4) < len(epochs)  # the first four have no rival
    for limit in range(1, table.count, 7):
        path = tmp_path / str(limit)
        with pytest.raises(KeyboardInterrupt):
            explore_and_choose(path, config, evaluate=Table(limit, racing=True))
        again = Table(racing=True)
        assert explore_and_choose(path, config, evaluate=again) == winner
        assert history_of(path) == expected
        assert again.count == table.count - limit


def test_in_a_race_the_rival_is_the_last_of_the_best_so_far(tmp_path):
    """Retraced from the history: with a lag of 1 a rival is of all candidates before."""
    config = config_of("rea", stagnation_avoidance=False, **RACE)
    make_explorer(tmp_path, config, evaluate=Table(racing=True)).run()
    candidates = history_of(tmp_path, "individual")
    number = config.evolution.population_size
    generations = [each["generation"] for each in candidates]
    for place, candidate in enumerate(candidates):
        ranked = sorted(candidates[:place], key=lambda each: (-each["fitness"], each["id"]))
        rival = ranked[number - 1]["id"] if generations[place] else None
        assert candidate.get("rival") == rival
        if rival is not None and candidate["reused"] is None:
            ended_early = len(candidate["losses"]) < 4
            assert not ended_early or candidate["fitness"] < ranked[number - 1]["fitness"]


def test_isomorphic_candidates_under_way_wait_for_the_first(tmp_path):
    """The trials that may be begun early are as many as the lag lets, no two of one network."""
    asked: list[list[str]] = []
    table = Table()

    def evaluate(trials):
        asked.append([trial.genome.canonical_key() for trial in trials])
        return table(trials)

    rates = {"op_mutation_prob": 0.1, "edge_mutation_prob": 0.1}
    config = config_of("rea", lag=5, max_trainings=30, num_generations=99, **rates)
    explore_and_choose(tmp_path, config, evaluate=evaluate)
    candidates = [each for each in history_of(tmp_path) if each["kind"] == "individual"]
    assert any(each["reused"] is not None for each in candidates)
    searched, trained = asked[:30], set()
    assert max(map(len, searched)) == 5
    for number, keys in enumerate(searched):
        assert len(set(keys)) == len(keys) <= 30 - number
        assert not trained & set(keys)
        trained.add(keys[0])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_search_ends_after_so_many_trainings_also_when_resumed(tmp_path, strategy):
    config = config_of(strategy, max_trainings=15)
    table = Table()
    winner = explore_and_choose(tmp_path / "whole", config, evaluate=table)
    assert table.count == 15 + 4  # two of the best, trained twice more
    for limit in (3, 8, 16):
        path = tmp_path / str(limit)
        with pytest.raises(KeyboardInterrupt):
            explore_and_choose(path, config, evaluate=Table(limit))
        again = Table()
        assert explore_and_choose(path, config, evaluate=again) == winner
        assert history_of(path) == history_of(tmp_path / "whole")
        assert again.count == table.count - limit
    run = load_run(Workdir(tmp_path / "whole"))
    assert run.searched and run.replay.population
    candidates = run.candidates.values()
    assert sum(candidate.reused is None for candidate in candidates) == 15
    fitness = [candidate.fitness for candidate in candidates if candidate.fitness is not None]
    assert run.replay.best is not None and run.replay.best.fitness == max(fitness)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_search_ends_with_the_first_that_is_good_enough_also_when_resumed(tmp_path, strategy):
    config = config_of(strategy, target_accuracy=0.9, num_generations=20)
    winner = explore_and_choose(tmp_path / "whole", config)
    records = history_of(tmp_path / "whole", "individual")
    fitness = [record["fitness"] or 0.0 for record in records]
    assert max(fitness[:-1]) < 0.9 <= fitness[-1]
    assert load_run(Workdir(tmp_path / "whole")).searched
    path = tmp_path / "cut"
    for limit in (1, len(records) // 2):
        with pytest.raises(KeyboardInterrupt):
            explore_and_choose(path, config, evaluate=Table(limit))
    assert explore_and_choose(path, config) == winner
    assert history_of(path) == history_of(tmp_path / "whole")


def test_the_last_candidate_of_a_budget_is_a_training(tmp_path):
    settings = {"max_nodes": 2, "min_nodes": 1, "num_generations": 50, "max_trainings": 20}
    explorer = make_explorer(tmp_path, replace(SMALL, settings))
    explorer.run()
    reused = [record["reused"] is not None for record in history_of(tmp_path, "individual")]
    assert reused.count(False) == 20 and any(reused) and not reused[-1]
    assert explorer.evaluate.count == explorer.ledger.trainings == 20
    assert load_run(Workdir(tmp_path)).searched


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_readable_checkpoints_the_history_suffices(tmp_path, strategy):
    config = config_of(strategy)
    winner = explore_and_choose(tmp_path, config)
    expected = history_of(tmp_path)
    damage_checkpoints(tmp_path)
    table, reporter = Table(), Silent()
    assert explore_and_choose(tmp_path, config, evaluate=table, reporter=reporter) == winner
    assert table.count == 0
    assert history_of(tmp_path) == expected
    assert any("it is passed over" in message for message in reporter.messages)
    assert reporter.messages[-1].startswith("resuming: ")


def stagnating(tmp_path: pathlib.Path) -> tuple[SearchConfig, list[str]]:
    """A search that ends with a candidate after which stagnation is avoided, and its history."""
    explorer = make_explorer(tmp_path / "any", checkpoints=Forgetful())
    explorer.run()
    records = history_of(tmp_path / "any")
    place = [record["kind"] for record in records].index("stagnation")
    trained = sum(record.get("reused", 0) is None for record in records[:place])
    config = replace(SMALL, {"max_trainings": trained})
    make_explorer(tmp_path / "whole", config).run()
    lines = Workdir(tmp_path / "whole").history.read_text().splitlines(keepends=True)
    assert json.loads(lines[-1])["kind"] == "stagnation"
    return config, lines


@pytest.mark.parametrize("saved", [True, False])
def test_a_lost_line_of_stagnation_is_written_again(tmp_path, saved):
    """The process may die between the line of a candidate and that of the stagnation after it."""
    config, lines = stagnating(tmp_path)
    Workdir(tmp_path / "whole").history.write_text("".join(lines[:-1]))
    table, reporter = Table(), Silent()
    fields = {"reporter": reporter} | ({} if saved else {"checkpoints": Forgetful()})
    make_explorer(tmp_path / "whole", config, evaluate=table, **fields).run()
    assert Workdir(tmp_path / "whole").history.read_text() == "".join(lines)
    assert table.count == 0 and "stagnation avoidance" in reporter.messages[-1]


class Newest(Forgetful):
    """Checkpoints whose newest is the one given."""

    def __init__(self, state: dict):
        self.state = state

    def load_newest(self, message):
        return 3, self.state, {}


def test_a_checkpoint_of_another_search_is_passed_over(tmp_path):
    winner = explore_and_choose(tmp_path)
    expected = history_of(tmp_path)
    for state in ({}, {"pending": 7}, {"pending": [], "population": [{"id": 0}], "next_id": 1}):
        table, reporter = Table(), Silent()
        fields = {"checkpoints": Newest(state), "reporter": reporter}
        assert explore_and_choose(tmp_path, evaluate=table, **fields) == winner
        assert table.count == 0 and history_of(tmp_path) == expected
        assert reporter.messages[0].startswith("checkpoint 3 is not of this search (")
        assert reporter.messages[0].endswith("); going on from the history")


def test_a_history_of_other_genomes_is_refused(tmp_path):
    explore_and_choose(tmp_path)
    history = Workdir(tmp_path).history
    lines = history.read_text().splitlines()
    record = json.loads(lines[0])
    cell = [{"inputs": [0, 0], "ops": ["identity", "identity"]}]
    record["genome"]["normal"] = record["genome"]["reduction"] = cell
    history.write_text("\n".join([json.dumps(record), *lines[1:]]) + "\n")
    damage_checkpoints(tmp_path)
    with pytest.raises(FileError, match="another genome for individual 0"):
        explore_and_choose(tmp_path)


def test_isomorphic_genomes_reuse_a_fitness_and_failures_are_never_reused(tmp_path):
    make_explorer(tmp_path, replace(SMALL, {"num_generations": 12})).run()
    records = history_of(tmp_path, "individual")
    by_id = {record["id"]: record for record in records}
    trained: dict[str, int] = {}
    hits = 0
    for record in records:
        key = Genome.from_dict(record["genome"]).canonical_key()
        if record["reused"] is not None:
            hits += 1
            assert record["reused"] == trained[key]
            assert record["fitness"] == by_id[trained[key]]["fitness"]
        else:
            assert key not in trained
            if record["failure"] is None:
                trained[key] = record["id"]
    assert hits > 0
    assert any(record["failure"] for record in records)


def test_without_bounds_on_size_only_what_is_recorded_is_measured(tmp_path):
    measured: list[Genome] = []

    def complexity(genome: Genome) -> Complexity:
        measured.append(genome)
        return no_complexity(genome)

    make_explorer(tmp_path / "free", complexity=complexity).run()
    assert len(measured) == len(history_of(tmp_path / "free", "individual"))
    measured.clear()
    bounded = replace(SMALL, {"max_parameters": 10**9})
    make_explorer(tmp_path / "bounded", bounded, complexity=complexity).run()
    assert len(measured) == 2 * len(history_of(tmp_path / "bounded", "individual"))


def test_without_reuse_everything_is_trained(tmp_path):
    explorer = make_explorer(tmp_path, replace(SMALL, {"reuse_fitness": False}))
    explorer.run()
    records = history_of(tmp_path, "individual")
    assert all(record["reused"] is None for record in records)
    assert explorer.evaluate.count == explorer.ledger.trainings == len(records)


def test_trials_are_told_ahead_once_each_and_not_those_that_may_be_reused(tmp_path):
    explorer = make_explorer(tmp_path, replace(SMALL, {"mating_pool": "survivors"}))
    explorer.run()
    asked = explorer.evaluate.trials
    assert [seed[2] for seed in asked[0]] == [0, 1, 2, 3]  # the first generation
    records = {record["id"]: record for record in history_of(tmp_path, "individual")}
    for seeds in asked:
        ids = [seed[2] for seed in seeds]
        assert len({records[id_]["generation"] for id_ in ids}) == 1
        keys = [Genome.from_dict(records[id_]["genome"]).canonical_key() for id_ in ids]
        assert len(set(keys)) == len(keys)
    trained = [id_ for id_, record in records.items() if record["reused"] is None]
    assert [seeds[0] for seeds in asked] == [(SMALL.seed, 0, id_) for id_ in trained]


def test_failures_in_a_row_end_the_search_with_the_last_reason(tmp_path):
    def fail(trials):
        return Outcome(None, "out of memory")

    config = replace(SMALL, {"max_consecutive_failures": 3})
    words = "3 candidates in a row failed, the last with: out of memory"
    with pytest.raises(SearchFailedError, match=words):
        explore_and_choose(tmp_path, config, evaluate=fail)
    assert len(history_of(tmp_path)) == 3


def test_trainings_that_are_used_up_by_failures_end_the_search_also_when_resumed(tmp_path):
    config = replace(SMALL, {"max_trainings": 3})
    words = "ended and all of its candidates failed, the last with: out of memory; remove the cause"
    for _ in range(2):
        with pytest.raises(SearchFailedError, match=words):
            explore_and_choose(tmp_path, config, evaluate=lambda _: Outcome(None, "out of memory"))
        assert len(history_of(tmp_path)) == 3


def test_a_success_begins_the_count_of_failures_anew(tmp_path):
    def fail_two_of_three(trials):
        number = trials[0].seed[2]
        return Outcome(0.5) if number % 3 == 2 else Outcome(None, "out of memory")

    settings = {"max_consecutive_failures": 3, "reuse_fitness": False, "num_generations": 2}
    make_explorer(tmp_path, replace(SMALL, settings), evaluate=fail_two_of_three).run()
    assert load_run(Workdir(tmp_path)).searched


def test_the_traceback_of_a_failure_is_recorded(tmp_path):
    def fail_first(trials):
        return (
            Outcome(0.5) if trials[0].seed[2] else Outcome(None, "ValueError: no", "Traceback ...")
        )

    make_explorer(tmp_path, evaluate=fail_first).run()
    first, *others = history_of(tmp_path, "individual")
    assert first["failure"] == "ValueError: no" and first["traceback"] == "Traceback ..."
    assert all("traceback" not in record for record in others)


def test_a_generation_that_learns_nothing_is_pointed_out(tmp_path):
    labels = np.append(LABELS, 3)
    commonest = np.bincount(labels).max() / len(labels)

    def learn_late(trials):
        return Outcome(commonest if trials[0].seed[2] < 8 else 0.5)

    reporter = Silent()
    fields = {"labels": labels, "reporter": reporter}
    make_explorer(tmp_path, evaluate=learn_late, **fields).run()
    told = [message for message in reporter.messages if "commonest class" in message]
    assert [message.split(":")[0] for message in told] == ["generation 0", "generation 1"]
    assert f"naming the commonest class each time {commonest:.2%}: check learning_rate" in told[0]
    assert "labels" in told[0] and "0 to 255" in told[0] and "class_weights=balanced" in told[0]


def test_too_few_images_to_tell_are_no_fault_of_the_settings(tmp_path):
    reporter = Silent()
    fields = {"labels": np.array([0, 1]), "reporter": reporter}
    make_explorer(tmp_path, evaluate=lambda trials: Outcome(1.0), **fields).run()
    told = [message for message in reporter.messages if "commonest class" in message]
    assert told[0] == (
        "generation 0: the best candidate has 100.00% of the validation images, naming the "
        "commonest class each time 50.00%: 2 images are too few to tell whether that is better"
    )


class Countdown:
    """Says that the time is over once it was asked so many times."""

    def __init__(self, number: int):
        self.left = number

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("asked", [0, 1, 7])
def test_a_search_whose_time_is_over_stops_there_also_when_resumed(tmp_path, strategy, asked):
    config = config_of(strategy, mating_pool="survivors", seed=1)
    reporter = Silent()
    fields = {"out_of_time": Countdown(asked), "reporter": reporter}
    winner = explore_and_choose(tmp_path, config, **fields)
    told = "the time limit is reached: no further candidate is begun"
    assert reporter.messages.count(told) == 1
    records = history_of(tmp_path)
    number = sum(record["kind"] == "individual" for record in records)
    assert 1 <= number <= asked + 2  # there is always one to go on with
    assert records[number] == {"kind": "stop", "reason": "the time limit was reached"}
    assert {record["kind"] for record in records[number + 1 :]} == {"retraining"}
    run = load_run(Workdir(tmp_path))
    assert run.searched and not run.replay.done

    again, reporter = Table(), Silent()  # without a limit
    assert explore_and_choose(tmp_path, config, evaluate=again, reporter=reporter) == winner
    assert again.count == 0 and history_of(tmp_path) == records
    assert not any("time limit" in message for message in reporter.messages)


def test_a_history_that_ends_before_its_first_candidate_is_refused(tmp_path):
    """No search writes one."""
    explorer = make_explorer(tmp_path)
    explorer.ledger.add_stop(Stop("by hand"))
    with pytest.raises(FileError, match="history.jsonl ends the search before its first candidate"):
        explorer.run()


def test_a_search_that_stops_and_is_interrupted_while_choosing_goes_on_with_choosing(tmp_path):
    fields = {"out_of_time": Countdown(7)}
    winner = explore_and_choose(tmp_path / "whole", **fields)
    expected = history_of(tmp_path / "whole")
    trained = sum(r["kind"] == "individual" and r["reused"] is None for r in expected)
    table = Table(trained + 1)
    with pytest.raises(KeyboardInterrupt):
        explore_and_choose(tmp_path / "cut", evaluate=table, out_of_time=Countdown(7))
    assert explore_and_choose(tmp_path / "cut") == winner
    assert history_of(tmp_path / "cut") == expected


def test_checkpoints_take_their_own_part_of_the_time(tmp_path):
    stopwatch = Stopwatch()
    make_explorer(tmp_path, stopwatch=stopwatch).run()
    assert stopwatch.seconds.keys() == {"checkpoint"}


class Timed(Silent):
    """Notes at which time of the processor, which no other load changes, each was recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def candidate(self, candidate, strategy) -> None:
        self.times.append(time.process_time())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "pool"),
    [
        ("rea", "growing"),
        ("rea", "survivors"),
        ("aging", "growing"),
        ("aging", "survivors"),
        ("random", "growing"),
        ("aco", "growing"),
    ],
)
def test_the_ten_thousandth_candidate_costs_as_much_as_the_first(tmp_path, strategy, pool):
    settings = {"population_size": 20, "num_offspring": 20, "num_generations": 499}
    settings |= {"stagnation_start": 50, "stagnation_patience": 10}
    settings |= {"min_nodes": 4, "max_nodes": 4}  # larger genomes would cost more
    config = config_of(strategy, mating_pool=pool, **settings | {"num_ants": 20})
    reporter = Timed()
    make_explorer(tmp_path, config, checkpoints=Forgetful(), reporter=reporter).run()
    assert len(reporter.times) >= 10_000
    costs = np.diff(reporter.times)
    first, last = statistics.median(costs[:1000]), statistics.median(costs[-1000:])
    print(f"{strategy} {pool}: {first * 1e3:.2f} ms a candidate at first, {last * 1e3:.2f} at last")
    assert last <= 2 * first
