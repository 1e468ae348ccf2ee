"""Which classes a network takes for which others: counts of labelled images, kept as a table.

JAX is not imported. Letters: `M` images, `K` classes.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import pathlib
from collections.abc import Sequence

import numpy as np

from jaxevo.errors import printable
from jaxevo.files import FileError, write_text

MAX_CLASSES = 1000  # of a table; more would be a file of many megabytes that nobody reads
_MAX_BYTES = 16 << 20
_MAX_COUNT = 10**9
_CORNER = "class"  # the first cell of the table


@dataclasses.dataclass(frozen=True, eq=False)
class Confusion:
    """Counts of images by their class and by the class that a network takes them for.

    Attributes:
        class_names: In the order of rows and columns.
        counts: int64 `[K, K]`, images of the row's class that are taken for the column's.
    """

    class_names: tuple[str, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, predicted: np.ndarray, class_names: Sequence[str]) -> Confusion:
        """Counts classes int `[M]` and predictions int `[M]`, positions in `class_names`."""
        from sklearn.metrics import confusion_matrix  # here, as its import takes a second

        everything = np.arange(len(class_names))
        return cls(tuple(class_names), confusion_matrix(labels, predicted, labels=everything))

    @property
    def images(self) -> np.ndarray:
        """Images of each class, `[K]`."""
        return self.counts.sum(1)

    @property
    def accuracies(self) -> list[float | None]:
        """The part of each class that is classified rightly; None for a class without images."""
        right = self.counts.diagonal().tolist()
        return [
            number / images if images else None
            for number, images in zip(right, self.images.tolist(), strict=True)
        ]

    @property
    def balanced_accuracy(self) -> float:
        """The mean accuracy of the classes that have images: each class counts alike."""
        known = [accuracy for accuracy in self.accuracies if accuracy is not None]
        return sum(known) / len(known) if known else 0.0

    def mistakes(self) -> list[tuple[int, int, int]]:
        """Class, the class it is taken for, and how many images; the most frequent first."""
        wrong = self.counts.copy()
        np.fill_diagonal(wrong, 0)
        found = [(int(a), int(b), int(wrong[a, b])) for a, b in np.argwhere(wrong)]
        return sorted(found, key=lambda mistake: -mistake[2])

    def write(self, path: pathlib.Path) -> None:
        """Writes the table as CSV: a row a class, a column for each that it is taken for."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([_CORNER, *self.class_names])
        for name, row in zip(self.class_names, self.counts.tolist(), strict=True):
            writer.writerow([name, *row])
        write_text(path, file.getvalue())

    @classmethod
    def read(cls, path: pathlib.Path) -> Confusion | None:
        """Reads a table, which may come from a stranger; None where there is none.

        Raises `FileError`.
        """
        if not path.exists():
            return None
        if path.stat().st_size > _MAX_BYTES:
            raise FileError(
                f"{path} is larger than {_MAX_BYTES} bytes; this is another kind of file"
            )
        try:
            header, *rows = csv.reader(io.StringIO(path.read_text("utf-8")))
            counts = np.array([[int(cell) for cell in row[1:]] for row in rows], np.int64)
            names = [row[0] for row in rows]
        except (csv.Error, IndexError, OverflowError, ValueError) as error:
            raise FileError(f"{path} is damaged ({error}); restore it from a copy") from None
        square = counts.shape == (len(names), len(names)) and 0 < len(names) <= MAX_CLASSES
        if not square or header != [_CORNER, *names] or not _possible(counts):
            raise FileError(f"{path} is no table of classes; restore it from a copy")
        return cls(tuple(printable(name) for name in names), counts)


def _possible(counts: np.ndarray) -> bool:
    return bool(np.all((counts >= 0) & (counts <= _MAX_COUNT)))
