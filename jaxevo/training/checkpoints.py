"""Checkpoints and saved weights: the only module that imports orbax and TensorStore.

A checkpoint is a flat dict of arrays beside one JSON document. Arrays are named by their place in
the tree they came from, and a tree is filled only from a checkpoint with exactly its names, shapes
and types: weights of another architecture are refused rather than restored in part.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import jax
import numpy as np

from jaxevo.errors import InputError
from jaxevo.files import check_weights_place, checkpoint_steps, numbered_folders

Tree = TypeVar("Tree")

MAX_DOCUMENT_BYTES = 4 << 20  # of a JSON file; a search's state has about a thousand an individual
MAX_RATIO = 10  # of what the arrays claim to the files' bytes: trained weights hardly pack
MAX_UNPACKED_BYTES = 32 << 20  # below it any ratio is possible
_METADATA = "_CHECKPOINT_METADATA"  # orbax writes it last
_PARTS = ("arrays", "data")
_HEADER = b"/zarr.json"  # ends the key of an array's header
_KEEP = 3  # checkpoints; should the newest be damaged, an older one is used


class CheckpointError(InputError):
    """A checkpoint that cannot be read or does not fit."""


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree by the name of their place."""
    return {
        _name(path): np.asarray(leaf)
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    }


def unflatten(template: Tree, arrays: Mapping[str, Any]) -> Tree:
    """A tree like `template` with these arrays.

    Raises `CheckpointError` if a name, shape or type differs.
    """
    leaves, treedef = jax.tree_util.tree_flatten_with_path(template)
    expected = {_name(path): (tuple(leaf.shape), str(leaf.dtype)) for path, leaf in leaves}
    found = {name: (tuple(array.shape), str(array.dtype)) for name, array in arrays.items()}
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            raise CheckpointError(
                f"the weights belong to another network: {name} is {found.get(name, 'missing')} in "
                f"the checkpoint and {expected.get(name, 'unknown')} here"
            )
    return jax.tree_util.tree_unflatten(
        treedef, [np.asarray(arrays[_name(path)]) for path, _ in leaves]
    )


def digest(data: Mapping[str, Any], arrays: Mapping[str, Any]) -> str:
    """Equal for the same document and the same values, so that damage shows."""
    hashed = hashlib.sha256(json.dumps(json.loads(json.dumps(data)), sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        hashed.update(f"{name} {array.dtype} {array.shape}".encode())
        hashed.update(array.tobytes())
    return hashed.hexdigest()


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


class Checkpoints:
    """The numbered checkpoints in a folder; each appears whole or not at all.

    Raises `CheckpointError` for a link.
    """

    def __init__(self, folder: pathlib.Path):
        if folder.is_symlink():  # what it leads to is not ours to delete
            raise CheckpointError(f"{folder} is a link; checkpoints must lie in the folder itself")
        self.folder = folder.resolve()

    def save(
        self, step: int, data: dict[str, Any], arrays: Mapping[str, Any] | None = None
    ) -> None:
        """Writes a checkpoint, and removes those not needed any more, later ones among them.

        Raises `OSError` where that is not possible, as on a full disk; the earlier checkpoints
        stay. Raises `InputError` for a path in which there can be none.
        """
        from orbax.checkpoint import v1 as ocp

        check_weights_place(self.folder)
        for path in numbered_folders(self.folder):
            # Later ones are damaged or of another course; orbax would save nothing beside them.
            if int(path.name) > step:
                shutil.rmtree(path)
        # Orbax writes the checkpoint and keeps the newest ones.
        folder = str(self.folder)
        policy = ocp.training.preservation_policies.LatestN(_KEEP)
        settings: Any = {"context": _context(), "preservation_policy": policy}
        with (
            _writing(self.folder / str(step)),
            ocp.training.Checkpointer(folder, **settings) as checkpointer,
        ):
            checkpointer.save_checkpointables(step, _content(data, arrays), overwrite=True)

    def steps(self) -> list[int]:
        """Numbers of the checkpoints, newest first."""
        return checkpoint_steps(self.folder)[::-1]

    def load(self, step: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """JSON document and arrays of a checkpoint. Raises `CheckpointError`."""
        return load_weights(self.folder / str(step))

    def load_newest(
        self, message: Callable[[str], None] = lambda text: None
    ) -> tuple[int, dict[str, Any], dict[str, np.ndarray]] | None:
        """Number, JSON document and arrays of the newest readable checkpoint.

        `message` is told which checkpoints are passed over.
        """
        for step in self.steps():
            try:
                return step, *self.load(step)
            except CheckpointError as error:
                message(f"{error}; it is passed over")
        return None


def save_weights(folder: pathlib.Path, data: dict[str, Any], arrays: Mapping[str, Any]) -> None:
    """Writes weights with their JSON document to a folder, in place of what may be there.

    Raises `InputError` where something else is there or no weights can be, and `OSError`.
    """
    from orbax.checkpoint import v1 as ocp

    check_weights_place(folder)
    if folder.is_symlink():  # what it leads to is not ours to delete
        folder.unlink()
    folder = folder.resolve()
    _check_replaceable(folder)
    if folder.exists():
        shutil.rmtree(folder)
    with _writing(folder), _context():
        ocp.save_checkpointables(str(folder), _content(data, arrays))


def _check_replaceable(folder: pathlib.Path) -> None:
    """Raises `CheckpointError` for a file, and for a folder of anything but saved weights."""
    empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    # Damaged weights, which lack a part, may be replaced too.
    ours = (folder / _METADATA).is_file() or all((folder / part).is_dir() for part in _PARTS)
    if not empty and not ours:
        raise CheckpointError(
            f"{folder} exists and holds no saved weights, so it is not replaced; remove it or give "
            "another folder"
        )


def load_weights(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """JSON document and arrays of saved weights. Raises `CheckpointError` naming the folder.

    Arrays are read by TensorStore, on which orbax is built, one by one: orbax allocates whatever
    their headers claim, and of those that it has half read when another turns out to be damaged,
    tracebacks appear at some later time.
    """
    folder = folder.resolve()
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise CheckpointError(
            f"{folder} {problem}; give the folder of saved weights, such as runs/.../best"
        )
    if not (folder / "data").is_dir() or not (folder / _METADATA).is_file():
        raise CheckpointError(
            f"{folder} holds no checkpoint of this program; give a folder such as runs/.../best"
        )
    # Read the JSON document and the arrays, once the sizes of all files are known.
    size = _check_files(folder)
    try:
        data = json.loads((folder / "data" / "data.json").read_text("utf-8"))
        arrays = _read_arrays(folder / "arrays", size) if (folder / "arrays").is_dir() else {}
    except Exception as error:  # TensorStore raises several kinds
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise CheckpointError(
            f"{folder} is damaged and cannot be read ({problem}); train again or use a copy"
        ) from error
    if not isinstance(data, dict):
        raise CheckpointError(
            f"{folder} is a checkpoint of another program: it has no data document"
        )
    # The digest tells of any damage. Weights of before version 0.12 have the fingerprint of a tree
    # in its place. Checkpoints of then have neither: their steps are done again.
    saved = data.pop("digest", None)
    earlier = saved is None and "fingerprint" in data
    if not earlier and saved != digest(data, arrays):
        problem = "is damaged: it is not what was saved"
        if saved is None:
            problem = "has no digest: it is damaged, or a checkpoint of before version 0.12"
        raise CheckpointError(f"{folder} {problem}; train again or use a copy")
    return data, arrays


def _check_files(folder: pathlib.Path) -> int:
    """Bytes of all files of a folder.

    Raises `CheckpointError` for links, pipes and documents too large to be parsed.
    """
    size = 0
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise CheckpointError(
                f"{path} is a link or no regular file; use weights that were not tampered with"
            )
        length = path.stat().st_size if path.is_file() else 0
        # Arrays, which may be large, lie in folders d.
        if length > MAX_DOCUMENT_BYTES and "d" not in path.relative_to(folder).parts[1:-1]:
            raise CheckpointError(
                f"{path} is larger than {MAX_DOCUMENT_BYTES} bytes; this is another kind of file"
            )
        size += length
    return size


def _read_arrays(folder: pathlib.Path, size: int) -> dict[str, np.ndarray]:
    """Reads the arrays by name.

    Raises `ValueError` if the arrays, or the chunks they are read by, claim far more than `size`.
    """
    import tensorstore as ts

    # List the names of the arrays in the database.
    database = {"driver": "ocdbt", "base": {"driver": "file", "path": f"{folder}/"}}
    keys = ts.KvStore.open(database).result().list().result()
    names = sorted(key.removesuffix(_HEADER).decode() for key in keys if key.endswith(_HEADER))
    # Open each array, which reads its header alone, and add up the bytes that it claims.
    arrays = {}
    claimed = 0
    for name in names:
        array = arrays[name] = ts.open(
            {"driver": "zarr3", "kvstore": database | {"path": f"{name}/"}}
        ).result()
        layout = array.chunk_layout
        dtype = array.dtype.numpy_dtype
        if dtype.hasobject:
            raise ValueError(f"{name} is no array of numbers")
        shapes = array.shape, layout.read_chunk.shape, layout.write_chunk.shape
        claimed += (
            max(math.prod(side or 1 for side in shape or ()) for shape in shapes) * dtype.itemsize
        )
        if claimed > max(MAX_RATIO * size, MAX_UNPACKED_BYTES):
            raise ValueError(f"its arrays claim {claimed} bytes, its files have {size}")
    # Only now is anything allocated.
    return {name: np.asarray(array.read().result()) for name, array in arrays.items()}


def _content(data: dict[str, Any], arrays: Mapping[str, Any] | None) -> dict[str, Any]:
    arrays = dict(arrays or {})
    return {"data": data | {"digest": digest(data, arrays)}} | (
        {"arrays": arrays} if arrays else {}
    )


@contextlib.contextmanager
def _writing(folder: pathlib.Path) -> Iterator[None]:
    """Turns errors of orbax and tensorstore into an `OSError` of one sentence.

    They raise many kinds for a full or broken disk.
    """
    shown = sys.unraisablehook

    def hook(error: Any) -> None:
        if str(error.exc_value) != "Event loop is closed":
            shown(error)

    # The other arrays' writes find orbax's loop closed when one has failed, and each complains,
    # some when all is over; so after a failure the hook stays.
    sys.unraisablehook = hook
    with _quiet():
        try:
            yield
            sys.unraisablehook = shown
        except (OSError, RuntimeError, ValueError) as error:
            # tensorstore's: each layer's words, then the system's, then a specification in brackets
            cause = (
                str(error)
                if isinstance(error, OSError)
                else str(error).split(" [")[0].split(": ")[-1]
            )
            raise OSError(f"{folder} cannot be written ({cause})") from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences orbax's log, which tells of damage in many lines; the error tells it in one."""
    loggers = [logging.getLogger(name) for name in ("absl", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _context() -> Any:
    """Orbax's settings: `data` is written as one JSON file."""
    from orbax.checkpoint import v1 as ocp

    registry = ocp.handlers.local_registry()
    registry.add(ocp.handlers.JsonHandler, checkpointable_name="data")
    context = ocp.Context()
    context.checkpointables.registry = registry
    return context
