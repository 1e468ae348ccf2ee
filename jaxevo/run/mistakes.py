"""A few images that a run's winner takes for another class, kept as small pictures.

They are chosen when the winner is scored, as nothing reads the test images again for a report.
JAX is not imported. Letters: `M` images.
"""

from __future__ import annotations

import base64
import binascii
import collections
import dataclasses
import io
import pathlib
import struct
from collections.abc import Sequence

import numpy as np
from PIL import Image

from jaxevo.checked import CheckedFields
from jaxevo.datasets import Images
from jaxevo.files import read_json, write_json

MAX_MISTAKES = 24
_PER_PAIR = 3  # of a class and the class that it is taken for
_SIDE = 48  # pixels of a picture at most
_MAX_BYTES = 16_000  # of a picture: more than a coloured one of that size has
_BEGIN = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"


@dataclasses.dataclass(frozen=True)
class Mistake:
    """An image that is taken for another class."""

    index: int  # among the images that the winner was scored on, counted from 0
    class_name: str
    taken_for: str
    png: bytes


def choose_mistakes(
    images: Images, predicted: np.ndarray, class_names: Sequence[str]
) -> list[Mistake]:
    """The first images of the most frequent mistakes; `predicted` are classes int `[M]`."""
    wrong = np.flatnonzero(images.labels != predicted)
    pairs = [(int(images.labels[place]), int(predicted[place])) for place in wrong]
    of_pair: dict[tuple[int, int], list[int]] = {}
    for place, pair in zip(wrong.tolist(), pairs, strict=True):
        of_pair.setdefault(pair, []).append(place)
    # The most frequent pairs first, then by class: the order does not depend on that of the images.
    frequent = sorted(collections.Counter(pairs).items(), key=lambda item: (-item[1], item[0]))
    chosen = [(place, pair) for pair, _ in frequent for place in of_pair[pair][:_PER_PAIR]][
        :MAX_MISTAKES
    ]
    return [
        Mistake(place, class_names[true], class_names[taken], _png(images.images[place]))
        for place, (true, taken) in chosen
    ]


def write_mistakes(path: pathlib.Path, mistakes: Sequence[Mistake]) -> None:
    """Writes the pictures as a JSON document. Raises `OSError`."""
    entries = [
        {
            "index": each.index,
            "class": each.class_name,
            "taken_for": each.taken_for,
            "png": base64.b64encode(each.png).decode(),
        }
        for each in mistakes
    ]
    write_json(path, {"mistakes": entries})


def read_mistakes(path: pathlib.Path) -> list[Mistake] | None:
    """Reads the pictures, which may come from a stranger; None where there are none.

    Raises `FileError`.
    """
    if not path.exists():
        return None
    entries = CheckedFields(str(path), {"file": read_json(path)}).inner("file")
    found = [
        _read(CheckedFields(f"{path}, mistake {number}", entry))
        for number, entry in enumerate(entries.items("mistakes", dict), 1)
    ]
    if len(found) > MAX_MISTAKES:
        raise entries.error(f"it has {len(found)} mistakes, more than {MAX_MISTAKES}")
    return found


def _read(fields: CheckedFields) -> Mistake:
    text = fields.take("png", str)
    try:
        png = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise fields.error(f"png is no base64 ({error})") from None
    # Nothing decodes the picture here, and a browser would: its size is in the first bytes.
    sides = struct.unpack(">II", png[16:24]) if len(png) >= 24 else (0, 0)
    small = png.startswith(_BEGIN) and len(png) <= _MAX_BYTES
    if not small or not all(0 < side <= _SIDE for side in sides):
        raise fields.error(f"png is no PNG picture of at most {_SIDE} pixels a side")
    return Mistake(
        fields.take("index", int), fields.take("class", str), fields.take("taken_for", str), png
    )


def _png(pixels: np.ndarray) -> bytes:
    """A picture of uint8 `[H, W, 1]` or `[H, W, 3]`, made smaller where it is too large."""
    picture = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    picture.thumbnail((_SIDE, _SIDE))
    file = io.BytesIO()
    picture.save(file, "PNG", optimize=True)
    return file.getvalue()
