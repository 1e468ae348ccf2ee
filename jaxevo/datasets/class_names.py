"""Classes of one data set by the names of another.

A network's outputs keep the order of its training data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.errors import printable

_NAMED = 8  # class names in a message


def map_classes(
    found: Sequence[str],
    known: Sequence[str],
    dataset: str,
    *,
    class_map: Mapping[str, str] | None = None,
) -> np.ndarray:
    """Position of each class found among the known classes.

    Args:
        found: The data's class names.
        known: The network's class names, in the order of its outputs.
        dataset: Names the data in messages.
        class_map: The data's names that mean another one of the network's.

    Returns:
        int32 [len(found)].

    Raises:
        DataError: A class is none of the network's, or two are the same.
    """
    renamed = class_map or {}
    absent = sorted(set(renamed) - set(found))
    if absent:
        raise DataError(
            f"class_map names {absent[0]}, which is no class of {dataset}: it has {listed(found)}"
        )
    # Every class must mean exactly one of the network's, whose names were made printable.
    shown = {printable(name): name for name in known}
    meant = [shown.get(printable(target := renamed.get(name, name)), target) for name in found]
    unknown = [name for name, target in zip(found, meant, strict=True) if target not in known]
    if unknown:
        free = [name for name in known if name not in meant]
        raise DataError(
            f"{dataset} has the class {unknown[0]}, which the network has not (it has "
            f"{listed(known)}): say which is meant by class_map={_proposal(unknown, free)}, or "
            "leave those images out"
        )
    twice = sorted({name for name in meant if meant.count(name) > 1})
    if twice:
        raise DataError(f"{dataset} has two classes for the network's {twice[0]}: change class_map")
    return np.array([list(known).index(name) for name in meant], np.int32)


def parse_class_map(text: str) -> dict[str, str]:
    """`old=new,old=new` as a dictionary."""
    pairs = [item.split("=") for item in text.split(",") if item.strip()]
    if any(len(pair) != 2 or not all(name.strip() for name in pair) for pair in pairs):
        raise DataError(
            f"class_map={text} is not possible: write it as the data's name=the network's name,..."
        )
    renamed = {old.strip(): new.strip() for old, new in pairs}
    if len(renamed) < len(pairs):
        raise DataError(f"class_map={text} is not possible: it names a class twice")
    return renamed


def listed(names: Sequence[str]) -> str:
    """The first few names."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _proposal(unknown: Sequence[str], free: Sequence[str]) -> str:
    """Pairs of class names to propose to a person.

    Names that differ in the case of letters alone are paired already, and so are the last two.
    """
    if len(unknown) == len(free) == 1:
        return f"{unknown[0]}={free[0]}"
    folded = {name.casefold(): name for name in free}
    return ",".join(f"{name}={folded.get(name.casefold(), '...')}" for name in unknown[:_NAMED])
