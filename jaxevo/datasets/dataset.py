"""A data set that was found and understood, but not yet read.

It has its parts, its classes, and notes on what was passed over.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.datasets.images import Images
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.pixels import Measured, Pixels, Progress
from jaxevo.datasets.splits import TEST_FRACTION, fixed_test_part
from jaxevo.datasets.summary import DataSummary
from jaxevo.datasets.values import ValueRange, parse_range

_LARGEST_OWN = 256  # pixels a side; larger images are made smaller unless an image_size is given
# Sides for images of differing sizes: the largest that half of the sizes reach.
_CHOSEN_SIDES = (64, 48, 32, 28, 16, 8)


@dataclasses.dataclass(frozen=True)
class ReadOptions:
    """A person's wishes on how images are understood, where the default does not fit.

    Attributes:
        pixel_range: The stored values of black and of white; `None`: decided by the training
            images.
        background: Behind transparent pixels, "white" or "black"; empty: decided by the training
            images.
        skip_unreadable: Leave image files out that cannot be read, instead of refusing the data
            set.
        class_map: The data's class names that mean another one of the network's.
        progress: Told of the images read, of how many.
    """

    pixel_range: ValueRange | None = None
    background: str = ""
    skip_unreadable: bool = False
    class_map: Mapping[str, str] = dataclasses.field(default_factory=dict)
    progress: Progress = lambda done, total: None

    @classmethod
    def of(
        cls, pixel_range: str = "", background: str = "auto", skip_unreadable: bool = False
    ) -> ReadOptions:
        """Reads options from settings as a person writes them. Raises `DataError`."""
        values = parse_range(pixel_range) if pixel_range else None
        behind = "" if background == "auto" else background
        return cls(values, behind, skip_unreadable)

    def apply(self, form: InputForm) -> InputForm:
        """The form with what this says instead."""
        values = self.pixel_range or form.values
        return dataclasses.replace(
            form, values=values, background=self.background or form.background
        )


@dataclasses.dataclass(frozen=True)
class Part:
    """One split as it is stored.

    Labels are int32 [M], positions in the data set's class names.
    """

    pixels: Pixels
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, indices: np.ndarray) -> Part:
        """The images at `indices`, sorted integers [K]."""
        return Part(self.pixels.take(indices), self.labels[indices])

    def read(self, form: InputForm, options: ReadOptions) -> tuple[Images, tuple[str, ...]]:
        """The images as inputs, and the files that were skipped as nobody can read them."""
        read = self.pixels.read(options.apply(form), options.skip_unreadable, options.progress)
        return Images(read.images, self.labels[read.positions]), read.skipped


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set as a reader found it.

    Attributes:
        name: As it is called in records and messages.
        class_names: In the order of the labels.
        train: The training images, from which validation images are split off unless `validation`
            has them.
        validation: The data's own validation split.
        test: Reads the test split: called only to test. `None`: the data have none.
        num_test: How many images `test` gives.
        notes: What else a person should know, each a phrase.
    """

    name: str
    class_names: tuple[str, ...]
    train: Part
    validation: Part | None = None
    test: Callable[[], Part] | None = None
    num_test: int = 0
    notes: tuple[str, ...] = ()
    # True: a fixed part of the training images becomes the test split where there is none.
    splits_test: bool = True
    fixed_test: bool = False  # `test` is a fixed part of images that come without an official split
    published: bool = False  # known by name, so that its test images are known to be readable

    @property
    def whole(self) -> bool:
        """True if the data come without a split into training and test images."""
        return self.test is None

    def divided(self) -> Dataset:
        """The data set with a fixed fifth as test images, where the data come without a split.

        Data that are to stay whole are left as they are.
        """
        if self.test is not None or not self.splits_test:
            return self
        rest, off = fixed_test_part(self.train.labels, self.name, self.class_names)
        test = self.train.take(off)
        return dataclasses.replace(
            self,
            train=self.train.take(rest),
            test=lambda: test,
            num_test=len(test),
            fixed_test=True,
        )

    def with_note(self, note: str) -> Dataset:
        """The data set with one more thing that a person should know."""
        return dataclasses.replace(self, notes=(*self.notes, note))

    def check_test(self, form: InputForm, options: ReadOptions) -> str:
        """Reads the test images of a person's data, and keeps of them only their digest.

        It is empty for published data, whose test images are not read. Raises `DataError` for what
        a test could not use, which a search would find at its end.
        """
        if self.test is None or self.published:
            return ""
        images, _ = self.test().read(form, options)
        return images.digest()

    def read_test(self) -> Part:
        """The test split of `divided` data."""
        if self.test is None:
            raise DataError(f"{self.name} has no test images: give some")
        return self.test()

    def summarize(
        self,
        form: InputForm,
        notes: tuple[str, ...],
        *,
        num_train: int,
        num_validation: int = 0,
        validation_from: str = "",
        test_from: str = "",
    ) -> DataSummary:
        """The summary of the data, whose images were read in this form."""
        own = f"a fixed {TEST_FRACTION:.0%} of the images" if self.fixed_test else "the data's own"
        return DataSummary(
            self.name,
            num_train,
            num_validation,
            self.num_test,
            self.class_names,
            validation_from,
            test_from or own,
            form,
            notes,
        )


def make_form(measured: Measured, image_size: int, resize: str) -> tuple[InputForm, str]:
    """The input form of training images like those measured, and a phrase on their sizes.

    The phrase is empty where all images stay as they are.

    Args:
        measured: What the training images are like.
        image_size: Side of an input in pixels; 0: as the images are, or one that suits them.
        resize: See `resize.resize_images`.
    """
    height, width = image_size, image_size
    note = ""
    smallest, largest = _extremes(measured.sides)
    spread = (
        f"of {_size(smallest)} pixels"
        if smallest == largest
        else f"from {_size(smallest)} to {_size(largest)}"
    )
    if not image_size:
        height, width = smallest
        if len(measured.sides) > 1 or max(largest) > _LARGEST_OWN:
            height = width = _suitable_side(measured.sides)
            note = f"images {spread} made {height}x{width} (image_size=... chooses another size)"
    elif measured.sides != ((height, width),):
        note = f"images {spread} made {height}x{width}"
    form = InputForm(height, width, measured.channels, resize, measured.values, measured.background)
    return form, note


def _suitable_side(sides: Sequence[tuple[int, int]]) -> int:
    """The largest side of those to choose from that half of the sizes' shorter sides reach."""
    shorter = sorted(min(side) for side in sides)[len(sides) // 2]
    fitting = [side for side in _CHOSEN_SIDES if side <= shorter]
    if not fitting:
        raise DataError(
            f"the images differ in size and half of the sizes are under {_CHOSEN_SIDES[-1]} "
            "pixels: give an image_size"
        )
    return fitting[0]


def _extremes(sides: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], tuple[int, int]]:
    by_area = sorted(sides, key=lambda side: (side[0] * side[1], side))
    return by_area[0], by_area[-1]


def _size(side: tuple[int, int]) -> str:
    return f"{side[0]}x{side[1]}"
