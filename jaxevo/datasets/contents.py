"""Images known again by their pixels: on two sides of a split, or under another path."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxevo.errors import printable

if TYPE_CHECKING:
    from jaxevo.datasets.images import Images


_SKETCH = 512  # hashes that a content keeps
_HASH = ">u8"  # in a document


@dataclasses.dataclass(frozen=True)
class Content:
    """By what training images are known again, whatever their names, labels and order.

    Attributes:
        digest: Of all images; empty in weights of before version 0.3.
        sketch: The smallest hashes of single images, ascending, all of them if they are few; empty
            in weights of before version 0.9. Which images these are is as good as random.
    """

    digest: str = ""
    sketch: tuple[int, ...] = ()

    @classmethod
    def of(cls, images: Images) -> Content:
        """The content of images, in the form in which a network gets them."""
        hashes = np.unique(_hashes(images))
        hashed = hashlib.sha256(f"{images.images.shape}".encode())
        for image in hashes:
            hashed.update(image)
        return cls(hashed.hexdigest(), tuple(map(int, hashes[:_SKETCH])))

    def to_json(self) -> dict[str, Any]:
        """A document of plain values, read back by `from_json`."""
        sketch = np.array(self.sketch, _HASH).tobytes().hex()
        return {"content": self.digest, "sketch": sketch}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Content:
        """Reads a document of `to_json`; of an earlier version it may lack either.

        Raises `ValueError` for another form.
        """
        sketch = np.frombuffer(bytes.fromhex(str(document.get("sketch", ""))), _HASH)
        if len(sketch) > _SKETCH:
            raise ValueError(f"a sketch of {len(sketch)} hashes; at most {_SKETCH} are kept")
        return cls(printable(str(document.get("content", ""))), tuple(map(int, sketch)))

    def count_known(self, images: Images) -> tuple[int, int]:
        """How many images are among the training images, and of how many that can be told.

        Without a sketch it can be told of none.
        """
        hashes = _hashes(images)
        if len(self.sketch) == _SKETCH:
            # Of a larger hash it is not known whether a training image has it.
            hashes = hashes[hashes <= self.sketch[-1]]
        checked = len(hashes) if self.sketch else 0
        return int(np.isin(hashes, np.array(self.sketch, np.uint64)).sum()), checked


def count_duplicates(images: Images, *among: Images) -> int:
    """Number of images that are, pixel for pixel, among others too."""
    others = np.concatenate([_hashes(each) for each in among])
    return int(np.isin(_hashes(images), others).sum())


def _hashes(images: Images) -> np.ndarray:
    """8 bytes an image, [M]."""
    digests = (
        hashlib.blake2b(np.ascontiguousarray(image).data, digest_size=8).digest()
        for image in images.images
    )
    return np.frombuffer(b"".join(digests), "V8").view("u8")
