"""A person's data as folders of images.

Folders are `<folder>/<class>/*`, or the same in `train/`, `test/` and perhaps `val/`.

Nothing is left out without a word: files that are no images, folders that are no split, and links
are counted and named with the reason.
"""

from __future__ import annotations

import collections
import dataclasses
import os
import pathlib
import unicodedata
from collections.abc import Sequence

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.datasets.dataset import Dataset, Part
from jaxevo.datasets.file_pixels import FilePixels
from jaxevo.datasets.files import check_regular, read_errors
from jaxevo.datasets.labels import lacking
from jaxevo.datasets.pictures import SUFFIXES, has_image_ending
from jaxevo.datasets.split_names import check_no_splits_as_classes, role_of

_REMEDY = "replace or remove it"


@dataclasses.dataclass
class PassedOver:
    """Counts what is not read, by the reason, and remembers the first of each."""

    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    first: dict[str, str] = dataclasses.field(default_factory=dict)

    def add(self, reason: str, name: str, number: int = 1) -> None:
        """Counts `number` of which the first is called `name`."""
        self.counts[reason] += number
        self.first.setdefault(reason, name)

    def notes(self) -> tuple[str, ...]:
        """A phrase for each reason."""
        return tuple(
            f"passed over: {number} {reason} ({self.first[reason]}{', ...' if number > 1 else ''})"
            for reason, number in self.counts.items()
        )


@dataclasses.dataclass(frozen=True)
class _Listing:
    """The image files below class folders and their labels, positions in `class_names`."""

    folder: pathlib.Path
    paths: tuple[pathlib.Path, ...]
    labels: np.ndarray
    class_names: tuple[str, ...]

    def part(self, class_names: Sequence[str]) -> Part:
        """The part with labels that are positions in `class_names`, which has all its classes."""
        positions = np.array([list(class_names).index(name) for name in self.class_names], np.int32)
        return Part(FilePixels(str(self.folder), self.paths), positions[self.labels])


def open_folder(folder: pathlib.Path) -> Dataset:
    """Lists the image files.

    Raises `DataError` if it is no such folder, or a split has a class that cannot be learned.
    """
    passed = PassedOver()
    with read_errors(folder, "check that you may read it"):
        places = _split_folders(folder, passed)
        if not places:
            # Without folders of splits, the folder holds the classes itself.
            listing = _list_classes(folder, folder, passed)
            _check_no_splits_inside(folder)
            return Dataset(
                str(folder),
                listing.class_names,
                listing.part(listing.class_names),
                notes=passed.notes(),
            )
        listings = {
            role: _list_classes(place, folder, passed, fewest=2 if role == "train" else 1)
            for role, place in places.items()
        }
    # The training images decide the classes; the other splits may lack some.
    names = listings["train"].class_names
    for role, listing in listings.items():
        if odd := sorted(set(listing.class_names) - set(names)):
            raise DataError(
                f"{folder} has the class {odd[0]} in {places[role].name}/ but not in "
                f"{places['train'].name}/: use the same classes in both"
            )
    parts = {role: listing.part(names) for role, listing in listings.items()}
    test = parts.get("test")
    notes = [note for role in parts for note in lacking(parts[role].labels, names, role)]
    return Dataset(
        str(folder),
        names,
        parts["train"],
        parts.get("validation"),
        None if test is None else lambda: test,
        0 if test is None else len(test),
        (*notes, *passed.notes()),
    )


def holds_training_classes(folder: pathlib.Path) -> bool:
    """True if there are at least two folders of images, in the folder or in its `train/`."""
    with read_errors(folder, "check that you may read it"):
        places = [path for path in _subfolders(folder) if role_of(path.name) == "train"]
        return any(map(_holds_classes, places or [folder]))


def _holds_classes(folder: pathlib.Path) -> bool:
    classes = [path for path in _subfolders(folder) if role_of(path.name) is None]
    return sum(any(map(has_image_ending, path.rglob("*"))) for path in classes) > 1


def _split_folders(folder: pathlib.Path, passed: PassedOver) -> dict[str, pathlib.Path]:
    """The folders of the splits, by role; nothing if the class folders lie in `folder` itself."""
    found: dict[str, pathlib.Path] = {}
    others = []
    for path in _subfolders(folder):
        role = role_of(path.name)
        if role is None or not _subfolders(path):
            others.append(path)
        elif role in found:
            raise DataError(
                f"{folder} has both {found[role].name}/ and {path.name}/: leave one of them"
            )
        else:
            found[role] = path
    if "train" not in found:
        if "test" in found:
            raise DataError(
                f"{folder} has {found['test'].name}/ but no train/ with class folders: add it"
            )
        check_no_splits_as_classes(folder, others)
        return {}
    # Other folders beside the splits are passed over, which is noted.
    for path in others:
        passed.add(
            f"folders beside {found['train'].name}/ that are no split or have no class folders",
            path.name,
        )
    _count_loose(folder, passed)
    return found


def _check_no_splits_inside(folder: pathlib.Path) -> None:
    """Raises `DataError` for `<class>/train/*`: its sub-folders would be mixed."""
    inside = [{role_of(path.name) for path in _subfolders(each)} for each in _subfolders(folder)]
    if all(roles >= {"train", "test"} for roles in inside):
        raise DataError(
            f"{folder} has train/ and test/ inside its class folders: put class folders into "
            "train/ and test/"
        )


def _subfolders(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")
    )


def _list_classes(
    folder: pathlib.Path, root: pathlib.Path, passed: PassedOver, *, fewest: int = 2
) -> _Listing:
    """The classes in a folder, of which there must be so many."""
    check_inside(folder, root)
    paths: list[pathlib.Path] = []
    labels: list[int] = []
    # Each class has a folder of its own, whose name can be printed.
    classes = _subfolders(folder)
    if len(classes) < fewest:
        inner = next((path for path in classes if len(_subfolders(path)) >= fewest), None)
        remedy = "put each class's images into a folder of its own"
        raise DataError(
            f"{folder} has {len(classes)} class folders, and {fewest} are needed: "
            + (f"name {inner}, or {remedy}" if inner else remedy)
        )
    _check_apart(classes, folder)
    for label, class_folder in enumerate(classes):
        if any(unicodedata.category(c) in ("Cc", "Cs") for c in class_folder.name):
            raise DataError(
                f"{class_folder} has control characters in its name, or is not in UTF-8: rename it"
            )
        images = _list_images(class_folder, root, passed)
        if not images:
            raise DataError(
                f"{class_folder} has no images ({', '.join(sorted(SUFFIXES))}): add some or "
                "remove it"
            )
        paths += images
        labels += [label] * len(images)
    _count_loose(folder, passed)
    # Systems write the same letters in different ways (é as one character or two).
    names = tuple(unicodedata.normalize("NFC", path.name) for path in classes)
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise DataError(f"{folder} has two folders whose names look alike, {twice}: join them")
    return _Listing(folder, tuple(paths), np.array(labels, np.int32), names)


def _check_apart(classes: Sequence[pathlib.Path], folder: pathlib.Path) -> None:
    """Raises `DataError` for links to folders by which the same images would be of two classes."""
    places: dict[pathlib.Path, pathlib.Path] = {}
    around = folder.resolve()
    for path in classes:
        place = path.resolve()
        if around.is_relative_to(place):
            raise DataError(f"{path} is a link to a folder that it lies in: remove it")
        if place in places:
            raise DataError(f"{places[place]} and {path} are the same folder: remove one of them")
        places[place] = path
    for place, path in places.items():
        if outer := next((places[each] for each in place.parents if each in places), None):
            raise DataError(f"{path} is a link to a folder inside {outer}: remove one of them")


def _list_images(
    class_folder: pathlib.Path, root: pathlib.Path, passed: PassedOver
) -> list[pathlib.Path]:
    """The image files in a class folder and in its sub-folders, sorted."""
    check_inside(class_folder, root)
    images = []
    for place, folders, files in os.walk(class_folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            # Links to folders are not followed.
            if (link := pathlib.Path(place, name)).is_symlink():
                check_inside(link, root)
                passed.add("links to folders", _inside(link, root))
        for path in (
            pathlib.Path(place, name) for name in sorted(files) if not name.startswith(".")
        ):
            if not has_image_ending(path):
                passed.add(
                    f"files that end in {path.suffix or 'nothing'}, not as images do",
                    _inside(path, root),
                )
                continue
            check_inside(path, root)
            check_regular(path, _REMEDY)
            images.append(path)
    return sorted(images)


def _count_loose(folder: pathlib.Path, passed: PassedOver) -> None:
    loose = sorted(
        path.name for path in folder.iterdir() if has_image_ending(path) and path.is_file()
    )
    loose = [name for name in loose if not name.startswith(".")]
    if loose:
        passed.add(f"images outside the class folders of {folder.name}/", loose[0], len(loose))


def _inside(path: pathlib.Path, root: pathlib.Path) -> str:
    return str(path.relative_to(root))


def check_inside(path: pathlib.Path, root: pathlib.Path) -> None:
    """Raises `DataError` for a link that leads out of the folder that was named.

    The folder may come from a stranger.
    """
    if path != root and path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        raise DataError(
            f"{path} is a link that leads out of {root}: put the images themselves there"
        )
