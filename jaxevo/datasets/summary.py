"""A summary of a data set as it was understood, in one line before a run."""

from __future__ import annotations

import dataclasses

from jaxevo.datasets.input_form import InputForm
from jaxevo.errors import printable

_SHOWN = 4  # class names


@dataclasses.dataclass(frozen=True)
class DataSummary:
    """Counts, form and remarks.

    Attributes:
        name: The data set.
        num_train: Images to train on; 0: none are used.
        num_validation: Images that measure fitness; 0: none are used.
        num_test: Images of the test split.
        class_names: The classes.
        validation_from: Where the validation images are from.
        test_from: Where the test images are from.
        form: How any image becomes an input.
        notes: What was passed over and why, and what else a person should know.
    """

    name: str
    num_train: int
    num_validation: int
    num_test: int
    class_names: tuple[str, ...]
    validation_from: str
    test_from: str
    form: InputForm
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """The summary in one line."""
        counts = []
        if self.num_train:
            counts.append(f"{self.num_train:,} training images")
        if self.num_validation:
            counts.append(f"{self.num_validation:,} for validation ({self.validation_from})")
        if self.num_test:
            counts.append(f"{self.num_test:,} for the test ({self.test_from})")
        classes = _describe_classes(self.class_names)
        line = f"{self.name}: {', '.join(counts)}, {classes}, {self.form.describe()}"
        return "; ".join([line, *self.notes])


def _describe_classes(names: tuple[str, ...]) -> str:
    """How many, and the first of them: by these a person sees what was taken for a class."""
    number = len(names)
    if names == tuple(map(str, range(number))):
        return f"{number} classes (0 to {number - 1})"
    more = ", ..." if number > _SHOWN else ""
    return printable(f"{number} classes ({', '.join(names[:_SHOWN])}{more})")


def skipped_notes(names: tuple[str, ...]) -> tuple[str, ...]:
    """One note on files that were passed over; an empty tuple if there are none."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return (
        (f"passed over: {len(names)} files that cannot be read ({', '.join(names[:3])}{more})",)
        if names
        else ()
    )
