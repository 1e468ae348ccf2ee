"""Event files of TensorBoard: their records, read back by tensorboardX's own messages."""

import json
import pathlib
import struct

import pytest
from builders_runs import LAST, RESULT, hash_run, individual_record, table_records, write_run
from full_disk import full_disk

from jaxevo.run.reader import load_run

pytest.importorskip("tensorboardX", reason="the extra `export` is not installed")
from jaxevo.export.tensorboard import save_events  # noqa: E402


def values(folder: pathlib.Path):
    """Step and value of each tag in the event files of a folder, not of those within."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, list] = {}
    for path in folder.glob("events.*"):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            for value in event.summary.value:
                found.setdefault(value.tag, []).append((event.step, value))
    return found


def scalars(found, tag: str) -> list[tuple[int, float]]:
    return [(step, pytest.approx(value.simple_value)) for step, value in found[tag]]


def test_the_table(tmp_path):
    workdir = write_run(tmp_path / "run", [*table_records(), individual_record(LAST)])
    workdir.result.write_text(json.dumps(RESULT))
    save_events(load_run(workdir), tmp_path / "events")
    found = values(tmp_path / "events")
    fitness = [(0, 0.5), (2, 0.6), (3, 0.7), (4, 0.6), (5, 0.65), (6, 0.1)]
    assert scalars(found, "candidate/fitness") == fitness
    best = [(0, 0.5), (2, 0.6), (3, 0.7), (4, 0.7), (5, 0.7), (6, 0.7)]
    assert scalars(found, "candidate/best_fitness_so_far") == best
    assert scalars(found, "generation/best") == [(0, 0.6), (1, 0.7), (2, 0.7)]
    assert scalars(found, "final_training/loss") == [(1, 0.5), (2, 0.25)]
    assert scalars(found, "final_training/validation_accuracy") == [(1, 0.55), (2, 0.6)]
    ((step, image),) = found["cells"]
    assert step == 2 and image.image.encoded_image_string.startswith(b"\x89PNG")
    hyperparameters = values(tmp_path / "events" / "hyperparameters")
    assert scalars(hyperparameters, "result/test_accuracy") == [(0, 0.55)]


def test_a_run_under_way(tmp_path):
    run = hash_run(tmp_path / "run", 30)
    save_events(run, tmp_path / "events")
    found = values(tmp_path / "events")
    valid = [known for known, each in run.candidates.items() if each.fitness is not None]
    assert [step for step, _ in found["candidate/fitness"]] == valid
    assert "final_training/loss" not in found


def test_on_a_full_disk_it_ends_in_an_error_and_leaves_nothing(tmp_path):
    """tensorboardX itself would wait for ever for the thread in which it writes."""
    run = hash_run(tmp_path / "run", 30)
    with full_disk(1000), pytest.raises(OSError) as caught:
        save_events(run, tmp_path / "events")
    assert caught.value.filename == str(tmp_path / "events")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
