"""The folder of a run: the paths of its files, a lock, and the configuration that it belongs to."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

from jaxevo.checked import CheckedFields
from jaxevo.config import LEARNING_KINDS, DataConfig, SearchConfig, flatten, leaf_fields
from jaxevo.config.changes import can_change
from jaxevo.config.presets import complete
from jaxevo.errors import explained
from jaxevo.files import FileError, read_json, write_json
from jaxevo.run.records import Change
from jaxevo.seeds import GUIDED_LAYOUT_STREAMS, STREAMS
from jaxevo.versions import versions

SCHEMA_VERSION = 1  # of `config.json`
TRAINING = "training.json"  # has the settings of the training that a folder belongs to
# What reads or divides the images.
_OF_IMAGES = {"seed", *leaf_fields(DataConfig)} - {"dataset", "train_examples"}


@dataclasses.dataclass(frozen=True)
class Workdir:
    """Paths of a run's files."""

    path: pathlib.Path

    @property
    def config(self) -> pathlib.Path:
        """Configuration, versions and device."""
        return self.path / "config.json"

    @property
    def history(self) -> pathlib.Path:
        """Everything that happened, a line each."""
        return self.path / "history.jsonl"

    @property
    def checkpoints(self) -> pathlib.Path:
        """The search's state after each generation."""
        return self.path / "checkpoints" / "search"

    @property
    def final_checkpoints(self) -> pathlib.Path:
        """The final training's state after each epoch."""
        return self.path / "checkpoints" / "final"

    @property
    def best_genome(self) -> pathlib.Path:
        """The winner's genome."""
        return self.path / "best.json"

    @property
    def best_weights(self) -> pathlib.Path:
        """The winner's trained weights."""
        return self.path / "best"

    @property
    def kept(self) -> pathlib.Path:
        """Genomes and trained weights of others that are kept, by their ids."""
        return self.path / "kept"

    @property
    def baseline_weights(self) -> pathlib.Path:
        """The trained weights of the small CNN that the winner is compared with."""
        return self.path / "small_cnn"

    @property
    def confusion(self) -> pathlib.Path:
        """Counts of the images that the result was measured on, by class and predicted class."""
        return self.path / "confusion.csv"

    @property
    def mistakes(self) -> pathlib.Path:
        """Pictures of some images that the result was measured on and that are misclassified."""
        return self.path / "mistakes.json"

    @property
    def report(self) -> pathlib.Path:
        """The run on one page for a browser."""
        return self.path / "report.html"

    @property
    def result(self) -> pathlib.Path:
        """File of the result; it exists when the run is complete."""
        return self.path / "result.json"

    @property
    def front(self) -> pathlib.Path:
        """The front of a search with two objectives."""
        return self.path / "front.json"

    def _files(self) -> tuple[pathlib.Path, ...]:
        return (
            *(self.config, self.history, self.best_genome),
            *(self.confusion, self.mistakes, self.front, self.result, self.report),
        )

    def _folders(self) -> tuple[pathlib.Path, ...]:
        return (
            *(self.checkpoints.parent, self.checkpoints, self.final_checkpoints),
            *(self.best_weights, self.kept, self.baseline_weights),
        )

    def weights(self, individual_id: int) -> pathlib.Path:
        """The trained weights of another individual that is kept beside the winner."""
        return self.kept / str(individual_id)

    def other_checkpoints(self, name: str) -> pathlib.Path:
        """A final training's state after each epoch, of another network than the winner's."""
        return self.path / "checkpoints" / f"final_{name}"

    def check_inside(self) -> None:
        """Raises `FileError` for links, pipes and devices in the folder.

        By a link, files elsewhere would be changed.
        """
        files, folders = self._files(), self._folders()
        for path in (*files, self.path / "lock", *folders):
            if path.is_symlink() or (
                path.exists() and not (path.is_dir() if path in folders else path.is_file())
            ):
                raise FileError(
                    f"{path} is a link or of a wrong kind; a run's files must lie in its folder "
                    "itself"
                )

    def check_usable(self) -> None:
        """Raises `FileError` if the folder is no run and has what one would replace."""
        own = (*self._files(), *self._folders(), self.path / TRAINING)
        found = next((path for path in own if path.exists()), None)
        if found is not None and not self.config.exists():
            raise FileError(
                f"{self.path} has {found.name} but no config.json, so it is no run that goes on; "
                "use another workdir, or restore config.json"
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Makes the folder and keeps other processes out within the block.

        Raises `FileError` if another process is in, or the folder cannot be made.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FileError(explained(error)) from error
        handle = self.lock()
        try:
            yield
        finally:
            os.close(handle)

    def lock(self) -> int:
        """Keeps other processes out of the folder.

        The lock lasts until the descriptor returned is closed, or this process ends.
        """
        self.check_inside()
        try:
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise FileError(explained(error)) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise FileError(
                f"another process is using {self.path}; wait for it or stop it"
            ) from None
        return handle

    def open(
        self, config: SearchConfig, extra: dict[str, Any], *, can_continue: bool = True
    ) -> dict[str, Any]:
        """Creates the run, or checks that the run in the folder is one of this configuration.

        Args:
            config: The configuration.
            extra: What else a new run writes. Its `data` is the digest of the images: where it is
                the run's, the images may lie in another place than they did. Its `test` is that of
                a person's own test images, which runs of before version 0.11 do not have.
            can_continue: Whether `--continue` may be named as a remedy.

        Returns:
            The content of `config.json`.

        Raises:
            FileError: The folder holds a run of another configuration or of other images, or what
                a new one would replace.
        """
        # A new run writes its configuration.
        if not self.config.exists():
            self.check_usable()
            document = {
                "schema": SCHEMA_VERSION,
                "config": flatten(config),
                "versions": versions(),
                "streams": _streams(config),
            } | extra
            write_json(self.config, document)
            return document
        # An existing run must have the same configuration and images.
        document = self.read_config()
        stored = self.settings(document)
        asked = flatten(config)
        if "data" in extra and document.get("data") == extra["data"]:
            asked["dataset"] = stored.get("dataset")
        differences = _differences(stored, asked)
        changeable = can_continue and all(map(can_change, differences))
        remedy = ", --continue to change that" if changeable else ""
        if document.get("data") != extra.get("data"):
            remedy = ""
            # Settings that read or divide the images otherwise say enough.
            if not _OF_IMAGES & differences.keys():
                differences["data"] = "the images are not those it began with"
        elif document.get("test", extra.get("test")) != extra.get("test"):
            differences["test"] = "the test images are not those it began with"
            remedy = ""
        if differences:
            listed = "; ".join(differences.values())
            raise FileError(
                f"{self.path} holds a run of another configuration ({listed}); give the same flags "
                f"to go on with it{remedy}, or another --workdir"
            )
        # Only what is complete can be of a version that drew otherwise.
        if not self.result.exists():
            self.check_streams(document, config)
        return document

    def check_streams(self, document: Mapping[str, Any], config: SearchConfig) -> None:
        """Raises `FileError` for a run of a version that drew otherwise: it cannot go on."""
        if document.get("streams", 1) != _streams(config):
            state = "a finished" if self.result.exists() else "an unfinished"
            raise FileError(
                f"{self.path} holds {state} run of a version that drew other genomes by its seed; "
                "go on with the version in its config.json, or begin anew in another workdir"
            )

    def settings(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The present settings by flag name: those it began with, and what has changed since."""
        settings = complete(document["config"])
        for change in self.changes(document):
            settings |= change.settings
        return settings

    def changes(self, document: Mapping[str, Any]) -> list[Change]:
        """The changes of settings since the run began, oldest first. Raises `FileError`."""
        fields = CheckedFields(str(self.config), {"changes": []} | dict(document))
        entries = enumerate(fields.items("changes", dict), 1)
        return [
            Change.read(CheckedFields(f"{self.config}, change {number}", entry))
            for number, entry in entries
        ]

    def add_change(self, change: Change) -> None:
        """Writes a change of settings into `config.json`. Raises `OSError`."""
        document = self.read_config()
        changes = [*document.get("changes", []), change.to_dict()]
        write_json(self.config, document | {"changes": changes})

    def read_config(self) -> dict[str, Any]:
        """The content of `config.json`. Raises `FileError`."""
        self.check_inside()
        document = read_json(self.config)
        if not isinstance(document, dict) or not isinstance(document.get("config"), dict):
            raise FileError(f"{self.config} is not the configuration of a run; use another workdir")
        if document.get("schema") != SCHEMA_VERSION:
            raise FileError(
                f"{self.config} has schema {document.get('schema')!r} and this version reads "
                f"{SCHEMA_VERSION}; go on with the version that wrote it"
            )
        return document


def _streams(config: SearchConfig) -> int:
    """The number of the way in which a search draws."""
    learns = config.strategy in LEARNING_KINDS and config.layout_genes
    return GUIDED_LAYOUT_STREAMS if learns else STREAMS


def _differences(stored: dict[str, Any], asked: dict[str, Any]) -> dict[str, str]:
    """The settings that differ, by flag name, in words."""
    return {
        name: f"{name} was {stored.get(name, 'unknown')!r}, is {asked.get(name, 'unknown')!r}"
        for name in sorted(stored.keys() | asked.keys())
        if stored.get(name) != asked.get(name)
    }
