"""Checkpoints: exact, whole or absent, refused if they belong elsewhere, and readable after damage
to the newest.
"""

from __future__ import annotations

import json
import logging
import pathlib
import shutil
from collections.abc import Iterator

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from full_disk import full_disk

from jaxevo.config import NetworkConfig
from jaxevo.errors import InputError
from jaxevo.networks.builder import split
from jaxevo.networks.genome_network import Network
from jaxevo.search_space.genome import Cell, Genome, Node, Op
from jaxevo.training.checkpoints import (
    CheckpointError,
    Checkpoints,
    digest,
    flatten,
    load_weights,
    save_weights,
    unflatten,
)
from jaxevo.training.trainer import Trainer

ARRAYS = {
    "a.kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a/b c": np.full((), 7, np.int32),
    "é": np.array([np.nan, np.inf, -0.0], np.float32),
}
SAVED = {"text": "é\n", "list": [1, None, 2.5], "true": True, "nested": {"1": {}}}


def build(*ops: Op, channels: int = 2) -> Network:
    cell = Cell((Node((0, 1), (ops[0], ops[1])),))
    return Network(
        Genome(cell, cell),
        NetworkConfig(channels=channels, num_normal_cells=1),
        (4, 4, 1),
        num_classes=3,
        seed=0,
    )


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray] = ARRAYS) -> None:
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert (array.dtype, array.shape) == (expected[name].dtype, expected[name].shape)
        assert array.tobytes() == expected[name].tobytes()


def damage(folder: pathlib.Path, size: int = 10) -> None:
    """Cuts every file short, as a full disk might."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[:size])


def names(folder: pathlib.Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder of saved weights, to be copied before it is damaged."""
    folder = tmp_path_factory.mktemp("saved") / "best"
    save_weights(folder, SAVED, ARRAYS)
    return folder


@pytest.fixture
def copy(saved: pathlib.Path, tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copytree(saved, tmp_path / "best"))


@pytest.fixture
def checkpoints(tmp_path: pathlib.Path) -> Iterator[Checkpoints]:
    yield Checkpoints(tmp_path / "checkpoints" / "search")


# Trees


def test_network_round_trip():
    _, params, stats = split(build(Op.CONV_3X3, Op.IDENTITY))
    arrays = flatten((params, stats))
    # The projection, the convolution with its 1x1, their two batch norms, the classifier with its
    # bias.
    assert len(arrays) == 1 + 2 + 2 * 4 + 2
    assert arrays["0.cells.0.operands.0.kernel.value"].shape == (2, 3, 3)
    doubled = {name: array * 2 for name, array in arrays.items()}
    _, other, _ = split(build(Op.CONV_3X3, Op.IDENTITY))
    filled = unflatten((other, stats), doubled)
    chex.assert_trees_all_equal(filled, jax.tree.map(lambda leaf: leaf * 2, (params, stats)))
    assert jax.tree.structure(filled) == jax.tree.structure((params, stats))


def test_training_state_round_trip(tmp_path: pathlib.Path):
    graphdef, params, stats = split(build(Op.MAX_POOL_3X3, Op.CONV_5X5))
    state = Trainer(graphdef, 8).start(params, stats)
    state = state._replace(
        optimizer=jax.tree.map(lambda leaf: leaf + 2, state.optimizer), step=jnp.int32(17)
    )
    Checkpoints(tmp_path).save(1, {}, flatten(state))
    _, arrays = Checkpoints(tmp_path).load(1)
    blank = Trainer(graphdef, 8).start(params, stats)
    restored = unflatten(blank, arrays)
    chex.assert_trees_all_equal(restored, state)
    chex.assert_trees_all_equal_dtypes(restored, state)
    assert type(restored) is type(state) and int(restored.step) == 17


KERNEL = "0.cells.0.operands.0.kernel.value is ((2, 3, 3), 'float32') in the checkpoint and "


@pytest.mark.parametrize(
    ("ops", "channels", "message"),
    [
        # Another kernel: of the names that differ, the first is told.
        ((Op.CONV_5X5, Op.IDENTITY), 2, KERNEL + "((2, 5, 5), 'float32') here"),
        ((Op.IDENTITY, Op.CONV_3X3), 2, KERNEL + "unknown here"),
        ((Op.IDENTITY, Op.IDENTITY), 2, KERNEL + "unknown here"),
        (
            (Op.CONV_3X3, Op.CONV_3X3),
            2,
            "0.cells.0.operands.1.kernel.value is missing in the checkpoint and ",
        ),
        (
            (Op.CONV_3X3, Op.IDENTITY),
            3,
            "0.cells.0.norm.bias.value is ((2,), 'float32') in the checkpoint and ((3,), "
            "'float32') here",
        ),
    ],
)
def test_another_architecture_is_refused(ops: tuple[Op, Op], channels: int, message: str):
    arrays = flatten(split(build(Op.CONV_3X3, Op.IDENTITY))[1:])
    with pytest.raises(CheckpointError) as caught:
        unflatten(split(build(*ops, channels=channels))[1:], arrays)
    assert str(caught.value).startswith("the weights belong to another network: " + message)


def test_another_type_is_refused():
    with pytest.raises(
        CheckpointError,
        match=r"x is \(\(2,\), 'float64'\) in the checkpoint and .* 'float32'\) here",
    ):
        unflatten({"x": np.zeros(2, np.float32)}, {"x": np.zeros(2)})


# Saved weights


def test_saved_weights_are_read_back_exactly(saved: pathlib.Path):
    data, arrays = load_weights(saved)
    assert data == SAVED
    assert_same(arrays)


@pytest.mark.parametrize("name", ["a[1]", "a\\b"])
def test_paths_in_which_orbax_would_lose_a_part_are_refused(tmp_path: pathlib.Path, name: str):
    words = "in its path, where no weights can be written; give another folder"
    with pytest.raises(InputError, match=words):
        Checkpoints(tmp_path / name).save(1, SAVED, ARRAYS)
    with pytest.raises(InputError, match=words):
        save_weights(tmp_path / name / "x", SAVED, ARRAYS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a b", "50%", "a?b*", "#1", "ü", "-x", "a{b}", "'a\"", "a]"])
def test_other_characters_of_a_path_are_no_trouble(tmp_path: pathlib.Path, name: str):
    save_weights(tmp_path / name, SAVED, ARRAYS)
    assert_same(load_weights(tmp_path / name)[1])


def test_a_flipped_bit_is_noticed_or_changes_nothing(saved: pathlib.Path, tmp_path: pathlib.Path):
    """TensorStore itself has no checksum of values."""
    rng, refused = np.random.default_rng(0), 0
    files = sorted(path for path in saved.rglob("*") if path.is_file() and path.stat().st_size)
    for number in range(120):
        copy = shutil.copytree(saved, tmp_path / str(number))
        path = copy / files[number % len(files)].relative_to(saved)
        content = bytearray(path.read_bytes())
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(content)
        try:
            data, arrays = load_weights(copy)
        except CheckpointError:
            refused += 1
            continue
        assert data == SAVED
        assert_same(arrays)
    assert refused > 20


def test_the_digest_is_of_document_and_values_in_any_order():
    base = digest({"a": 1, "b": (2.5, {3: None})}, ARRAYS)
    reverse = dict(reversed(ARRAYS.items()))
    assert digest({"b": [2.5, {"3": None}], "a": 1}, reverse) == base
    name = next(iter(ARRAYS))
    others = [
        digest({"a": 2, "b": (2.5, {3: None})}, ARRAYS),
        digest({"a": 1, "b": (2.5, {3: None})}, ARRAYS | {name: np.asarray(ARRAYS[name]) + 1}),
        digest({"a": 1, "b": (2.5, {3: None})}, {}),
    ]
    assert len({base, *others}) == 4


def test_weights_of_before_digests_are_read(copy: pathlib.Path):
    path = copy / "data" / "data.json"
    document = json.loads(path.read_text())
    del document["digest"]
    path.write_text(json.dumps(document))
    with pytest.raises(
        CheckpointError, match="has no digest: it is damaged, or a checkpoint of before"
    ):
        load_weights(copy)
    path.write_text(json.dumps(document | {"fingerprint": "of the tree"}))
    assert_same(load_weights(copy)[1])


def test_saving_replaces_what_was_there(copy: pathlib.Path):
    (copy / "stray").write_text("of an older version")
    save_weights(copy, {"second": 2}, {"x": np.ones(1)})
    data, arrays = load_weights(copy)
    assert data["second"] == 2 and "text" not in data
    assert_same(arrays, {"x": np.ones(1)})
    assert "stray" not in names(copy) and names(copy.parent) == {"best"}


def test_relative_folders_are_possible(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    save_weights(pathlib.Path("a/b"), SAVED, ARRAYS)
    assert_same(load_weights(pathlib.Path("a/b"))[1])


def test_nothing_is_pickled(saved: pathlib.Path):
    files = [path for path in saved.rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in files:
        content = path.read_bytes()
        # A pickle of protocol 2 or later begins with its number and ends with a stop.
        assert not (content[:1] == b"\x80" and content[-1:] == b"."), path
    data, arrays = load_weights(saved)
    stored = json.loads((saved / "data" / "data.json").read_text())
    assert stored == data | {"digest": digest(data, arrays)}


FOLDER_CASES = {
    "missing": (
        lambda folder: shutil.rmtree(folder),
        "does not exist; give the folder of saved weights",
    ),
    "file": (
        lambda folder: (shutil.rmtree(folder), folder.write_text("weights")),
        "is not a folder; give the folder of saved weights",
    ),
    "empty": (
        lambda folder: (shutil.rmtree(folder), folder.mkdir()),
        "holds no checkpoint of this program; give a",
    ),
    "without data": (
        lambda folder: shutil.rmtree(folder / "data"),
        "holds no checkpoint of this program; give a",
    ),
    "without metadata": (
        lambda folder: (folder / "_CHECKPOINT_METADATA").unlink(),
        "holds no checkpoint of this",
    ),
    "without arrays": (
        lambda folder: shutil.rmtree(folder / "arrays"),
        "is damaged: it is not what was saved",
    ),
    "cut short": (damage, "is damaged and cannot be read ("),
    "empty files": (lambda folder: damage(folder, 0), "is damaged and cannot be read ("),
    "arrays cut short": (
        lambda folder: damage(folder / "arrays"),
        "is damaged and cannot be read (",
    ),
    "arrays emptied": (
        lambda folder: damage(folder / "arrays", 0),
        "is damaged and cannot be read (",
    ),
    "a leaf lost": (
        lambda folder: shutil.rmtree(folder / "arrays" / "d"),
        "is damaged and cannot be read (",
    ),
    "not JSON": (
        lambda folder: (folder / "data/data.json").write_text("weights"),
        "cannot be read (JSONDecodeError: ",
    ),
    "not an object": (
        lambda folder: (folder / "data/data.json").write_text("[1]"),
        "is a checkpoint of another",
    ),
    "another digest": (
        lambda folder: (folder / "data/data.json").write_text('{"digest": "0"}'),
        "is damaged: it is not what was saved; train again or use a copy",
    ),
}


@pytest.mark.parametrize("name", FOLDER_CASES)
def test_unusable_folders_are_named_in_one_line(
    copy: pathlib.Path, caplog: pytest.LogCaptureFixture, name: str
):
    spoil, message = FOLDER_CASES[name]
    spoil(copy)
    with pytest.raises(CheckpointError) as caught:
        load_weights(copy)
    text = str(caught.value)
    assert (
        text.startswith(f"{copy} ")
        and message in text
        and "\n" not in text
        and len(text) < len(str(copy)) + 350
    )
    assert caplog.records == []  # orbax tells of damage in many lines of its own
    assert logging.getLogger("absl").level != logging.CRITICAL


def test_checkpoint_of_another_program_is_refused(tmp_path: pathlib.Path):
    from orbax.checkpoint import v1 as ocp

    ocp.save(tmp_path / "theirs", {"w": np.ones(2)})
    with pytest.raises(CheckpointError, match="holds no checkpoint of this program"):
        load_weights(tmp_path / "theirs")
    ocp.save_checkpointables(
        tmp_path / "similar", {"data": {"w": np.ones(2)}, "arrays": [np.ones(2)]}
    )
    with pytest.raises(CheckpointError):
        load_weights(tmp_path / "similar")


# Numbered checkpoints


def test_the_newest_three_are_kept(checkpoints: Checkpoints):
    assert checkpoints.steps() == [] and checkpoints.load_newest() is None
    for step in range(5):
        checkpoints.save(step, {"step": step}, {"x": np.full(2, step)} if step else None)
        assert checkpoints.steps() == [step, step - 1, step - 2][: step + 1]
    assert names(checkpoints.folder) == {"2", "3", "4"}
    step, data, arrays = checkpoints.load_newest(pytest.fail)
    assert (step, data) == (4, {"step": 4})
    assert_same(arrays, {"x": np.full(2, 4)})
    assert checkpoints.load(3)[0] == {"step": 3}
    with pytest.raises(CheckpointError, match="search/1 does not exist"):
        checkpoints.load(1)


def test_without_arrays(checkpoints: Checkpoints):
    checkpoints.save(0, SAVED)
    assert checkpoints.load(0) == (SAVED, {})


def test_a_step_can_be_written_again(checkpoints: Checkpoints):
    for step, text in ((1, "a"), (2, "b"), (2, "c")):
        checkpoints.save(step, {"text": text}, {"x": np.ones(3)})
    assert checkpoints.steps() == [2, 1]
    assert [checkpoints.load(step)[0]["text"] for step in (2, 1)] == ["c", "a"]


def test_an_older_one_is_used_if_the_newest_is_damaged(checkpoints: Checkpoints):
    for step in (1, 2, 3):
        checkpoints.save(step, {"step": step}, {"x": np.full(2, step)})
    damage(checkpoints.folder / "3")
    shutil.rmtree(checkpoints.folder / "2" / "data")
    problems: list[str] = []
    step, data, arrays = checkpoints.load_newest(problems.append)
    assert (step, data, arrays["x"].tolist()) == (1, {"step": 1}, [1, 1])
    assert len(problems) == 2
    assert problems[0].startswith(f"{checkpoints.folder / '3'} is damaged and cannot be read (")
    assert problems[1].startswith(f"{checkpoints.folder / '2'} holds no checkpoint of this program")
    # Going on from there: what is newer but damaged must not keep the next one from being saved.
    checkpoints.save(2, {"step": "2 again"})
    assert checkpoints.steps() == [2, 1]
    assert checkpoints.load_newest()[:2] == (2, {"step": "2 again"})
    damage(checkpoints.folder / "2")
    damage(checkpoints.folder / "1")
    problems.clear()
    assert checkpoints.load_newest(problems.append) is None and len(problems) == 2


def test_a_link_is_no_folder_of_checkpoints(tmp_path: pathlib.Path):
    (tmp_path / "elsewhere" / "2024").mkdir(parents=True)
    (tmp_path / "seed0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="seed0 is a link"):
        Checkpoints(tmp_path / "seed0")


def test_what_is_no_checkpoint_is_ignored(checkpoints: Checkpoints):
    checkpoints.save(1, {"step": 1})
    (checkpoints.folder / "9").mkdir()  # numbered and empty
    for name in ("2.orbax-checkpoint-tmp", "3.orbax-checkpoint-tmp-1700000000", "notes"):
        shutil.copytree(checkpoints.folder / "1", checkpoints.folder / name)
    (checkpoints.folder / "4").write_text("a file")
    assert checkpoints.steps() == [1]
    assert checkpoints.load_newest() == (1, {"step": 1}, {})
    # The empty folder must not pass for a newer checkpoint either, beside which nothing is saved.
    checkpoints.save(2, {"step": 2})
    assert checkpoints.steps() == [2, 1]
    assert checkpoints.load_newest() == (2, {"step": 2}, {})
    assert "notes" in names(checkpoints.folder)


@pytest.mark.parametrize("largest", [0, 300])
def test_a_disk_that_is_full_is_told_in_a_sentence_and_harms_no_earlier_checkpoint(
    tmp_path, largest
):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    arrays = {f"a{k}": np.arange(3000 + k, dtype=np.float32) for k in range(60)}
    checkpoints.save(1, {"number": 1}, arrays)
    with full_disk(largest):
        with pytest.raises(OSError, match=r"checkpoints/2 cannot be written \(.*File too large\)$"):
            checkpoints.save(2, {"number": 2}, arrays)
        with pytest.raises(OSError, match=r"weights cannot be written \(.*File too large\)$"):
            save_weights(tmp_path / "weights", {}, arrays)
    newest = checkpoints.load_newest()
    assert newest is not None and newest[:2] == (1, {"number": 1})
    checkpoints.save(2, {"number": 2}, arrays)
    assert checkpoints.steps() == [2, 1]
