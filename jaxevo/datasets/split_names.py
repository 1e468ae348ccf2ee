"""Names of folders, files and arrays that hold a split, and folders that only seem to."""

from __future__ import annotations

import pathlib
import re
from collections.abc import Sequence

from jaxevo.datasets.base import DataError

SPLITS = {
    "train": ("train", "training"),
    "validation": ("val", "valid", "validation", "dev"),
    "test": ("test", "testing"),
}
# Words by which a folder seems to be a split.
_SPLIT_WORDS = {word: role for role, words in SPLITS.items() for word in words} | {
    "trainset": "train",
    **dict.fromkeys(("testset", "eval", "evaluation", "holdout"), "test"),
}


def role_of(name: str) -> str | None:
    """The split that a folder or a file of that name holds."""
    return next((role for role, names in SPLITS.items() if name.casefold() in names), None)


def check_no_splits_as_classes(folder: pathlib.Path, classes: Sequence[pathlib.Path]) -> None:
    """Raises `DataError` for `train/*.jpg`, `test/*.jpg`, and for `cats_train/`, `cats_test/`.

    The network would learn to tell training images from test images.
    """
    splits: dict[str, str] = {}  # a folder that is called so, by role
    seeming = 0
    for path in classes:
        words = re.findall(r"[a-z]+", path.name.casefold())
        role = next((found for word in words if (found := _SPLIT_WORDS.get(word))), None)
        if role is not None:
            seeming += 1
            splits[role] = path.name
    if len(splits) > 1 and 2 * seeming >= len(classes):
        named = " and ".join(f"{name}/" for name in sorted(splits.values()))
        raise DataError(
            f"{folder} has {named}, which seem to be no classes but splits: call them train/ and "
            "test/, and give each a folder for each class; or rename them if they are classes"
        )
