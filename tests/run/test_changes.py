"""A run that is continued: what is written, and that it is the run that was begun so.

A table stands for training.
"""

from __future__ import annotations

from typing import Any

import pytest
from builders import ABOUT, SMALL, Table, explore_and_choose, history_of, open_ledger
from builders_runs import LAST, RESULT, individual_record, table_records, write_run
from builders_runs import SMALL as TABLE_CONFIG

from jaxevo.config import SearchConfig, flatten, replace
from jaxevo.errors import InputError
from jaxevo.files import FileError, read_json, write_json
from jaxevo.run.changes import change_run, describe
from jaxevo.run.ledger import Ledger
from jaxevo.run.reader import Run, load_run, read_config
from jaxevo.run.records import Change, Stop
from jaxevo.run.workdir import Workdir
from jaxevo.seeds import STREAMS

SHORT: SearchConfig = replace(SMALL, {"num_generations": 3})
VARIANTS: dict[str, dict[str, Any]] = {
    "rea": {},
    "survivors": {"mating_pool": "survivors"},
    "aging": {"strategy": "aging"},
    "random": {"strategy": "random"},
    "guided": {"strategy": "guided"},
    # Its last iterations, of 16 and of 28 candidates, are cut short.
    "aco": {"strategy": "aco", "num_ants": 6},
}


def course(path) -> list[dict[str, Any]]:
    """The history without its ends: neither retrainings nor changes."""
    return [line for line in history_of(path) if line["kind"] in ("individual", "stagnation")]


@pytest.mark.parametrize("interrupted", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_with_more_generations_it_is_the_run_that_was_begun_with_them(tmp_path, name, interrupted):
    short, long = (replace(config, VARIANTS[name]) for config in (SHORT, SMALL))
    explore_and_choose(tmp_path / "long", long)
    path = tmp_path / "short"
    explore_and_choose(path, short)
    before = course(path)
    change_run(Workdir(path), long, ABOUT, time_limit=None)
    # Sessions that end at the first, the second and the fourth training of what follows.
    for limit in (0, 1, 2) if interrupted else ():
        with pytest.raises(KeyboardInterrupt):
            explore_and_choose(path, long, evaluate=Table(limit))
    explore_and_choose(path, long)
    assert course(path) == course(tmp_path / "long") and len(course(path)) > len(before)
    (change,) = history_of(path, "change")
    assert change["settings"] == {"num_generations": 6}
    assert change["candidates"] == sum(line["kind"] == "individual" for line in before)


def test_with_more_trainings_it_is_the_run_that_was_begun_with_them(tmp_path):
    few, many = (replace(SMALL, {"max_trainings": number}) for number in (6, 17))
    explore_and_choose(tmp_path / "many", many)
    explore_and_choose(tmp_path / "few", few)
    for config in (many, SMALL):
        change_run(Workdir(tmp_path / "few"), config, ABOUT, time_limit=None)
        explore_and_choose(tmp_path / "few", config)
        if config is many:
            assert course(tmp_path / "few") == course(tmp_path / "many")
    explore_and_choose(tmp_path / "all")
    assert course(tmp_path / "few") == course(tmp_path / "all")


@pytest.mark.parametrize(
    ("settings", "limit", "lifts"),
    [
        ({}, None, True),
        ({}, 60.0, True),
        ({"num_generations": 9}, None, True),
        ({"final_epochs": 9}, 60.0, True),
        ({"final_epochs": 9}, None, False),  # of which the search knows nothing
    ],
)
def test_a_search_goes_on_that_a_time_limit_has_ended(tmp_path, settings, limit, lifts):
    open_ledger(tmp_path).add_stop(Stop("the time limit was reached"))
    config = replace(SMALL, settings)
    change_run(Workdir(tmp_path), config, ABOUT, time_limit=limit)
    ledger = open_ledger(tmp_path, config)
    assert (ledger.stop is None) == lifts and ledger.changes[0].lifts_stop == lifts
    assert (Ledger.open(Workdir(tmp_path), config).stop is None) == lifts  # read back


def test_config_json_keeps_the_beginning_and_lists_what_has_changed(tmp_path):
    open_ledger(tmp_path, SHORT)
    workdir = Workdir(tmp_path)
    for settings in ({"num_generations": 4}, {"num_generations": 5, "final_epochs": 7}):
        config = replace(SHORT, settings)
        words = change_run(workdir, config, ABOUT, time_limit=None)
        listed = ", ".join(f"{name}={value}" for name, value in settings.items())
        assert words == f"continued after 0 candidates with {listed}"
        open_ledger(tmp_path, config)
    document = read_json(workdir.config)
    assert document["config"] == flatten(SHORT)
    first, second = document["changes"]
    assert first["settings"] == {"num_generations": 4} and first["time"] <= second["time"]
    assert read_config(workdir) == replace(SHORT, {"num_generations": 5, "final_epochs": 7})
    assert history_of(tmp_path, "change") == [first, second]
    assert [change.to_dict() for change in load_run(workdir).changes] == [first, second]


def test_without_a_change_nothing_is_written(tmp_path):
    open_ledger(tmp_path)
    written = Workdir(tmp_path).config.read_text()
    assert change_run(Workdir(tmp_path), SMALL, ABOUT, time_limit=None) is None
    assert (
        change_run(Workdir(tmp_path), SMALL, ABOUT, time_limit=60.0) is None
    )  # it was not stopped
    assert Workdir(tmp_path).config.read_text() == written
    open_ledger(tmp_path)
    assert history_of(tmp_path) == []


@pytest.mark.parametrize(
    ("settings", "about", "words"),
    [
        ({"channels": 3}, {}, "channels is 2 and cannot become 3"),
        ({"num_generations": 2}, {}, "only be continued beyond its end"),
        ({"num_generations": 9}, {"data": "other"}, "the images are not those it began with"),
    ],
)
def test_what_is_refused_leaves_the_run_as_it_was(tmp_path, settings, about, words):
    open_ledger(tmp_path)
    written = Workdir(tmp_path).config.read_text()
    with pytest.raises(InputError, match=words):
        change_run(Workdir(tmp_path), replace(SMALL, settings), ABOUT | about, time_limit=None)
    assert Workdir(tmp_path).config.read_text() == written


def test_the_images_may_lie_elsewhere(tmp_path):
    workdir, about = Workdir(tmp_path), ABOUT | {"data": "abc"}
    began = replace(SMALL, {"dataset": "photos/"})
    workdir.open(began, about)
    longer = replace(began, {"dataset": "/disk/photos", "num_generations": 9})
    words = change_run(workdir, longer, about, time_limit=None)
    assert words == "continued after 0 candidates with num_generations=9"
    assert workdir.open(longer, about)["config"]["dataset"] == "photos/"
    with pytest.raises(FileError, match="the images are not those it began with"):
        change_run(workdir, longer, ABOUT | {"data": "def"}, time_limit=None)


@pytest.mark.parametrize("state", ["a finished", "an unfinished"])
def test_a_run_that_drew_otherwise_is_not_continued(tmp_path, state):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    if state == "a finished":
        write_json(workdir.result, RESULT)
    write_json(workdir.config, read_json(workdir.config) | {"streams": STREAMS - 1})
    written = workdir.config.read_text()
    longer = replace(TABLE_CONFIG, {"num_generations": 3})
    with pytest.raises(FileError, match=f"holds {state} run of a version that drew other genomes"):
        change_run(workdir, longer, {}, time_limit=None)
    assert workdir.config.read_text() == written


def test_what_cannot_go_on_keeps_all_that_it_has(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    write_json(workdir.result, RESULT)
    written = workdir.config.read_text()

    def check(run: Run) -> None:
        assert run.config == TABLE_CONFIG
        raise FileError("it draws otherwise")

    with pytest.raises(FileError, match="it draws otherwise"):
        longer = replace(TABLE_CONFIG, {"num_generations": 3})
        change_run(workdir, longer, {}, time_limit=None, check=check)
    assert workdir.config.read_text() == written and workdir.result.exists()


def test_where_no_run_is_none_can_be_continued(tmp_path):
    with pytest.raises(
        FileError, match="config.json does not exist; .* is not the folder of a run"
    ):
        change_run(Workdir(tmp_path), SMALL, ABOUT, time_limit=None)


def test_a_process_that_ends_after_the_change_was_made_leaves_an_incomplete_run(tmp_path):
    workdir = write_run(tmp_path, [*table_records(), individual_record(LAST)])
    write_json(workdir.result, RESULT)
    config = replace(TABLE_CONFIG, {"num_generations": 3})
    change_run(workdir, config, {}, time_limit=None)
    assert workdir.result.exists() and load_run(workdir).result is None
    (change,) = load_run(workdir).changes
    assert (change.winner, change.validation_accuracy, change.test_accuracy) == (2, 0.6, 0.55)
    # The same change again is none, and the next session does what is left.
    assert change_run(workdir, config, {}, time_limit=None) is None
    ledger = open_ledger(tmp_path, config)
    assert ledger.changes == [change] and not workdir.result.exists()
    open_ledger(tmp_path, config)
    assert len(history_of(tmp_path, "change")) == 1


def test_a_change_in_words():
    change = Change("2026-11-28", 36, {"num_generations": 8, "final_epochs": 3}, True)
    both = "continued after 36 candidates beyond the time limit and with num_generations=8, "
    assert describe(change) == f"{both}final_epochs=3"
    lifted = Change("2026-11-28", 36, {}, True)
    assert describe(lifted) == "continued after 36 candidates beyond the time limit"
