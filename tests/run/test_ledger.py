"""The ledger answers from memory what is on the disk, and a reopened one answers the same."""

from __future__ import annotations

import errno
import os

import pytest
from builders import SMALL, chain, history_of, make_explorer, open_ledger

from jaxevo.config import replace
from jaxevo.files import FileError
from jaxevo.run.records import Candidate, Change, Retraining, Stagnation, Stop
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.strategies.individual import Individual


def candidate(id_: int, fitness: float | None, **fields) -> Candidate:
    """One of the first generation, whose cells have `id_ + 1` nodes unless it is given."""
    genome = fields.pop("genome", None) or chain(id_ + 1)
    individual = Individual(id_, genome, 0, operators=("random",), fitness=fitness)
    if fitness is None:
        fields |= {"failure": "by hand"}
    return Candidate(individual, 10 * id_, 100 * id_, **fields)


def test_a_new_ledger_knows_nothing(tmp_path):
    ledger = open_ledger(tmp_path)
    assert ledger.candidates == ledger.retrainings == {}
    assert ledger.stagnations == ledger.changes == [] and ledger.stop is None
    assert ledger.trainings == ledger.earlier_retrainings == 0
    assert ledger.generation(0) == [] and ledger.trained(chain(1)) is None


@pytest.fixture
def ledgers(tmp_path):
    """The ledger that wrote these records, and the one that reads them."""
    ledger = open_ledger(tmp_path)
    ledger.add_candidate(candidate(0, 0.5, seconds={"compile": 9.0, "train": 2.0}))
    ledger.add_candidate(candidate(1, None, seconds={"train": 0.5}))
    ledger.add_candidate(candidate(2, 0.5, genome=chain(1), reused=0))
    ledger.add_candidate(candidate(3, 0.8, genome=chain(3)))
    ledger.add_stop(Stop("by hand"))
    ledger.add_retraining(Retraining(0, 0, 0.4))
    ledger.add_retraining(Retraining(0, 1, 0.0, "diverged", {"train": 1.0}))
    return ledger, open_ledger(tmp_path)


def test_both_answer_alike(ledgers):
    for ledger in ledgers:
        assert list(ledger.candidates) == [0, 1, 2, 3]
        assert [each.fitness for each in ledger.generation(0)] == [0.5, None, 0.5, 0.8]
        assert ledger.generation(1) == []
        assert ledger.trainings == 3  # with the one that failed, without the one that was reused
        assert ledger.stop == Stop("by hand")
        assert list(ledger.retrainings) == [(0, 0), (0, 1)]
        assert ledger.retrainings[0, 1].failure == "diverged"
    assert ledgers[0].candidates == ledgers[1].candidates
    assert ledgers[0].retrainings == ledgers[1].retrainings


def test_trained_finds_isomorphic_genomes_and_neither_failed_nor_reused_ones(ledgers):
    swapped = Cell((Node((1, 0), (Op.IDENTITY, Op.CONV_3X3)),))
    for ledger in ledgers:
        known = ledger.trained(Genome(swapped, swapped))
        assert known is not None and known.id == 0
        assert ledger.trained(chain(2)) is None  # it failed
        assert ledger.trained(chain(3)).id == 3
        assert ledger.trained(chain(1, Op.CONV_7X7)) is None


def test_what_is_not_on_the_disk_is_not_known(tmp_path, monkeypatch):
    ledger = open_ledger(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for add, record in (
            (ledger.add_candidate, candidate(0, 0.5)),
            (ledger.add_retraining, Retraining(0, 0, 0.4)),
            (ledger.add_stagnation, Stagnation("soft", 3, 0)),
            (ledger.add_stop, Stop("by hand")),
            (ledger.add_change, CHANGE),
        ):
            with pytest.raises(OSError, match="No space left"):
                add(record)
    assert ledger.candidates == ledger.retrainings == {} and ledger.trainings == 0
    assert ledger.stagnations == ledger.changes == [] and ledger.stop is None


CHANGE = Change("2026-11-28", 1, {"num_generations": 8}, lifts_stop=True)


def test_a_change_lifts_the_stop_and_another_session_can_end_the_run(tmp_path):
    ledger = open_ledger(tmp_path)
    ledger.add_stop(Stop("by hand"))
    ledger.add_session({"train": 1.0})
    ledger.add_change(CHANGE)
    for each in (ledger, open_ledger(tmp_path)):
        assert each.stop is None and each.changes == [CHANGE]
    open_ledger(tmp_path).add_session({"train": 2.0})
    open_ledger(tmp_path).add_session({"train": 3.0})
    sessions = [line["session_seconds"] for line in history_of(tmp_path, "session")]
    assert sessions == [{"train": 1.0}, {"train": 2.0}]


def test_retrainings_from_before_a_change_are_counted(tmp_path):
    ledger = open_ledger(tmp_path)
    ledger.add_candidate(candidate(0, 0.5))
    ledger.add_retraining(Retraining(0, 0, 0.4))
    ledger.add_change(CHANGE)
    ledger.add_retraining(Retraining(0, 1, 0.4))
    for each in (ledger, open_ledger(tmp_path)):
        assert (len(each.retrainings), each.earlier_retrainings) == (2, 1)


def test_the_session_that_ends_a_run_is_recorded_once(tmp_path):
    ledger = open_ledger(tmp_path)
    ledger.add_session({"train": 1.0})
    ledger.add_session({"train": 2.0})
    open_ledger(tmp_path).add_session({"train": 3.0})
    sessions = history_of(tmp_path)
    assert sessions == [{"kind": "session", "session_seconds": {"train": 1.0}}]


def test_stagnations_are_those_of_the_strategy(tmp_path):
    config = replace(SMALL, {"num_generations": 12})
    explorer = make_explorer(tmp_path, config)
    explorer.run()
    written = explorer.ledger.stagnations
    assert {stagnation.event for stagnation in written} == {"soft", "hard"}
    assert open_ledger(tmp_path, config).stagnations == written
    open_ledger(tmp_path, config).add_stagnation(Stagnation("soft", 99, 0))
    with pytest.raises(FileError, match="would not avoid stagnation here"):
        open_ledger(tmp_path, config)


def test_after_a_search_a_reopened_ledger_answers_as_the_one_that_wrote_it(tmp_path):
    explorer = make_explorer(tmp_path)
    explorer.run()
    before, after = explorer.ledger, open_ledger(tmp_path)
    assert before.candidates == after.candidates
    assert before.trainings == after.trainings
    for number in range(SMALL.evolution.num_generations + 2):
        assert before.generation(number) == after.generation(number)
