"""Studies of Optuna: read back by Optuna itself."""

import json
import pathlib

import pytest
from builders_runs import hash_run, table_records, write_run
from full_disk import full_disk

from jaxevo.config import CONV_KINDS
from jaxevo.errors import InputError
from jaxevo.run.reader import Run, load_run

optuna = pytest.importorskip("optuna", reason="the extra `export` is not installed")
from jaxevo.export.optuna_study import description, save_study  # noqa: E402


def study(run: Run, path: pathlib.Path):
    """The study that Optuna finds in a journal of the run."""
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    save_study(run, path)
    storage = JournalStorage(JournalFileBackend(str(path)))
    return optuna.load_study(study_name=None, storage=storage)


def test_the_table(tmp_path):
    run = load_run(write_run(tmp_path, table_records()))
    found = study(run, tmp_path / "study.log")
    assert found.study_name == "digits rea seed 0"
    assert found.best_trial.user_attrs["id"] == 3 and found.best_value == 0.7
    assert [trial.state.name for trial in found.trials] == ["COMPLETE", "FAIL", *["COMPLETE"] * 4]
    trial = found.trials[3]
    assert trial.params | {"normal_nodes": 1, "normal_identity": 1, "reduction_conv_3x3": 2} == (
        trial.params
    )
    assert "channels" not in trial.params  # the same for all
    assert trial.user_attrs["parents"] == [2, 0]
    genome = run.candidates[3].individual.genome
    assert json.loads(trial.user_attrs["genome"]) == genome.to_dict()
    # Trials follow each other; a candidate that reused a fitness took no time.
    durations = [trial.duration.total_seconds() for trial in found.trials]
    assert durations == pytest.approx([3.5, 3.5, 3.5, 3.5, 0.0, 3.5])
    assert all(
        earlier.datetime_complete == later.datetime_start
        for earlier, later in zip(found.trials, found.trials[1:], strict=False)
    )


def test_two_objectives_and_genes_of_the_layout(tmp_path):
    genes = {"min_channels": 4, "vary_conv_kind": True, "min_channel_multiplier": 1}
    run = hash_run(tmp_path, 40, **genes, strategy="nsga2")
    found = study(run, tmp_path / "study.log")
    assert [direction.name for direction in found.directions] == ["MAXIMIZE", "MINIMIZE"]
    assert found.metric_names == ["fitness", "parameters"]
    for trial, candidate in zip(found.trials, run.candidates.values(), strict=True):
        individual = candidate.individual
        expected = None if individual.fitness is None else [individual.fitness, individual.cost]
        assert trial.values == expected
        described = description(individual.genome, run)
        assert trial.params == {name: described[name] for name in trial.params}
        assert "channels" in trial.params and trial.params["conv_kind"] in CONV_KINDS
        assert trial.params["channel_multiplier"] == individual.genome.layout.channel_multiplier
    assert {trial.params["channels"] for trial in found.best_trials} != {24}


@pytest.mark.slow  # writes with SQLite for seconds
def test_a_data_base(tmp_path):
    run = load_run(write_run(tmp_path, table_records()))
    save_study(run, tmp_path / "study.db")
    found = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path / 'study.db'}")
    assert found.best_value == 0.7
    # A name that means something else in a URL.
    save_study(run, tmp_path / "a?b %41.db")
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["a?b %41.db", "study.db"]
    (tmp_path / "a?b %41.db").rename(tmp_path / "plain.db")
    found = optuna.load_study(study_name=None, storage=f"sqlite:///{tmp_path / 'plain.db'}")
    assert found.best_value == 0.7


@pytest.mark.parametrize(
    "room", [20_000, 150_000]
)  # not even for the tables, and not for all trials
def test_a_data_base_that_cannot_be_written_is_named(tmp_path, room: int):
    run = hash_run(tmp_path, 40)
    refusal = r"\.db cannot be written \(.*(full|disk).*\): make"
    with full_disk(room), pytest.raises(InputError, match=refusal):
        save_study(run, tmp_path / "study.db")
    assert not list(tmp_path.glob("*.db*"))
