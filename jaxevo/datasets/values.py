"""The range of stored pixel values: chosen once from training images.

The range is then demanded of every other image.

Images are stored as 0 to 1, 0 to 16, 0 to 255, 0 to 4095 in 16 bits and in other ways. An array
alone does not say which: the darkest test set of 8 bits looks like one of 0 to 16. So the training
images decide, and an array that does not fit them is refused instead of guessed at.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from jaxevo.datasets.base import DataError

# Largest values of integers: 1 to 16 bits, and scikit-learn's digits.
_TOPS = (1, 15, 16, 255, 1023, 4095, 16383, 65535)
_STEPS = 255  # of the bytes that a network takes
SURE = 16  # no image of 8 bits with a larger value is stored in a smaller range than 0 to 255
_DARK = 10  # an array whose own range is so many times smaller was stored in another one
_FAR = 1000  # widths of a range
_MANY = 16  # images of which not all can be that dark by chance


@dataclasses.dataclass(frozen=True)
class Extent:
    """The values that some images have: `integers` if all are whole numbers."""

    low: float
    high: float
    integers: bool
    images: int

    @classmethod
    def of(cls, values: np.ndarray, what: str) -> Extent:
        """Extent of real numbers [M, ...]. Raises `DataError` if one is not finite."""
        low, high = float(values.min()), float(values.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise DataError(f"{what} has values that are not finite: use pixels from 0 to 255")
        integers = values.dtype.kind in "biu" or bool(np.all(values == np.round(values)))
        return cls(low, high, integers, len(values))

    def __or__(self, other: Extent) -> Extent:
        return Extent(
            min(self.low, other.low),
            max(self.high, other.high),
            self.integers and other.integers,
            self.images + other.images,
        )


@dataclasses.dataclass(frozen=True)
class ValueRange:
    """The values of black and of white."""

    low: float = 0.0
    high: float = 255.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise DataError(
                f"pixel_range={self.low:g},{self.high:g} is not possible: give the value of black, "
                "then the larger one of white, such as 0,255"
            )

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g}"

    @property
    def usual(self) -> bool:
        """True if images are often stored so, and not only those of a scaler."""
        return (self.low, self.high) == (-1, 1) or (self.low == 0 and self.high in _TOPS)

    @property
    def tolerance(self) -> float:
        """Tolerance for a fraction outside the range: half a step of 255.

        Rounding and resizing put fractions so far outside.
        """
        return (self.high - self.low) / (2 * _STEPS)

    def check_bounds(self, extent: Extent, what: str) -> None:
        """Raises `DataError` if a value lies outside this range."""
        slack = 0.0 if extent.integers else self.tolerance
        if extent.low < self.low - slack or extent.high > self.high + slack:
            raise DataError(self._refusal(extent, what))

    def check_scale(self, extent: Extent, what: str, *, dark: bool = True) -> None:
        """Raises `DataError` if images of that extent must have been stored in another range.

        They may lie in this range all the same. Fractions show another range at once; of whole
        numbers a few images may be as dark by chance, where they may be `dark` at all.
        """
        self.check_bounds(extent, what)
        many = extent.images >= _MANY or not dark
        if self.low < 0 <= extent.low and extent.high > 0 and many:
            raise DataError(self._refusal(extent, what))
        own = _smallest_range(extent)
        white = own.high if own else extent.high  # fractions a little outside a usual range
        known = own is not None or (self.usual and not extent.integers)
        dark_by_far = known and 0 < extent.high and white * _DARK <= self.high
        if dark_by_far and (many or not extent.integers):
            raise DataError(self._refusal(extent, what))

    def _refusal(self, extent: Extent, what: str) -> str:
        return (
            f"{what} has values from {extent.low:g} to {extent.high:g}, where the training images' "
            f"range is {self}: store all in one range, or name that of a data set by pixel_range "
            "(of other test data by test_pixel_range)"
        )

    def to_bytes(self, values: np.ndarray) -> np.ndarray:
        """Values in this range (or a little outside) as uint8 of the same shape."""
        if values.dtype == np.uint8 and (self.low, self.high) == (0, 255):
            return values
        # Far from 0 a number of 32 bits has too few digits for the differences.
        far = max(abs(self.low), abs(self.high)) > _FAR * (self.high - self.low)
        kind = np.float64 if far else np.float32
        scaled = (values.astype(kind) - kind(self.low)) * kind(_STEPS / (self.high - self.low))
        return np.clip(np.round(scaled), 0, _STEPS).astype(np.uint8)


BYTES = ValueRange()


def parse_range(text: str) -> ValueRange:
    """`black,white` as a range. Raises `DataError`."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise DataError(
            f"pixel_range={text} is not possible: write the values of black and white, as 0,255"
        ) from None
    return ValueRange(low, high)


def choose_range(extent: Extent, what: str) -> ValueRange:
    """The range in which images of that extent were stored.

    Raises `DataError` if it is none of the usual ones.
    """
    found = _smallest_range(extent)
    if found is None:
        raise DataError(
            f"{what} has values from {extent.low:g} to {extent.high:g}: use pixels from 0 to 255 "
            "or floats from 0 to 1, or give their pixel_range"
        )
    return found


def _smallest_range(extent: Extent) -> ValueRange | None:
    if extent.integers and extent.low >= 0:
        if extent.high == 0:
            return BYTES
        return next((ValueRange(0, top) for top in _TOPS if extent.high <= top), None)
    for low, high in ((0, 1), (-1, 1), (0, 255)):
        known = ValueRange(low, high)
        if extent.low >= low - known.tolerance and extent.high <= high + known.tolerance:
            # Fractions a little above 1, as resizing and noise leave them, are not of 0 to 255.
            return known if high <= 1 or extent.high > SURE else None
    return None
