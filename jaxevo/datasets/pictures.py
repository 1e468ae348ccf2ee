"""Image files and encoded images: their headers, and their pixels as they are stored.

Pillow opens files from strangers here: only formats that start no other program, no more pixels
than a camera has, and whatever it raises becomes a `DataError` that names the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import pathlib
import re
import warnings
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageFile, ImageOps, TiffImagePlugin

from jaxevo.datasets.base import DataError

SUFFIXES = {
    *(".png", ".apng", ".jpg", ".jpeg", ".jpe", ".jfif", ".bmp", ".gif", ".webp", ".avif"),
    *(".tif", ".tiff", ".pbm", ".pgm", ".ppm", ".pnm"),
}
REMEDY = "replace or remove it"
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "AVIF", "TIFF", "PPM")
_GREY = {"1", "L", "LA"}
_DEEP = {"I;16", "I;16B", "I;16L", "I", "F"}  # grey, of more than 8 bits
_COLOUR = {"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}
_MAX_PIXELS = 90_000_000  # of an image that is decoded whole
_MAX_DRAFT_PIXELS = 170_000_000  # of a JPEG that is decoded to a fraction of its size
_ORIENTATION = 0x0112  # the EXIF tag
_HALVED = re.compile(";16[BLN]")  # in Pillow's name for pixels of 16 bits a channel
_PHOTOMETRIC, _SAMPLE_FORMAT = 262, 339  # tags of TIFF


@dataclasses.dataclass(frozen=True)
class Encoded:
    """An image file that lies in memory, with a name for messages."""

    name: str
    data: bytes

    def __str__(self) -> str:
        return self.name


Picture = pathlib.Path | Encoded


@dataclasses.dataclass(frozen=True)
class Header:
    """An image file's header: its size as shown and its kind of pixels.

    Cameras store a rotation, which the size allows for.
    """

    height: int
    width: int
    grey: bool
    deep: bool
    transparent: bool
    halved: bool  # stored with 16 bits a channel, of which Pillow reads the upper 8
    pages: bool  # holds several images, of which the first is read


def has_image_ending(path: pathlib.Path) -> bool:
    """True for a file's name that ends as those of images do."""
    return path.suffix.lower() in SUFFIXES


def read_header(picture: Picture) -> Header:
    """Reads an image file's header, without decoding a pixel."""
    with _opened(picture) as image:
        width, height = image.size
        raw = _raw(image)  # asked first, as what follows may load the image
        if _turned(image):
            width, height = height, width
        deep, transparent = image.mode in _DEEP, image.has_transparency_data
        grey = deep or image.mode in _GREY
        halved = not deep and bool(_HALVED.search(raw))
        # A camera's MPO file has other versions of one picture behind the first.
        pages = getattr(image, "is_animated", False) and image.format != "MPO"
        return Header(height, width, grey, deep, transparent, halved, pages)


def decode(
    picture: Picture, wanted: tuple[int, int] | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """The pixels as they are stored.

    Args:
        picture: What to decode.
        wanted: Height and width that the image will be shrunk to: a large JPEG is then decoded to
            about twice that size, which takes a fraction of the time and memory.

    Returns:
        Values [H, W, 1] if the image is grey, else uint8 [H, W, 3], and the opacity float32 [H, W]
        from 0 to 1, or `None` where all is opaque.
    """
    with _opened(picture) as image:
        if wanted and image.format == "JPEG":
            height, width = wanted if not _turned(image) else wanted[::-1]
            image.draft(None, (2 * width, 2 * height))
        shown = ImageOps.exif_transpose(image)
        if shown.mode in _DEEP:
            values = np.asarray(shown)
            if not np.isfinite(values).all():
                raise DataError(
                    f"{picture} cannot be read: it has values that are not finite; {REMEDY}"
                )
            return values[..., None], None
        grey = shown.mode in _GREY
        if not shown.has_transparency_data:
            pixels = np.asarray(shown.convert("L" if grey else "RGB"))
            return pixels.reshape(*pixels.shape[:2], -1), None
        pixels = np.asarray(shown.convert("LA" if grey else "RGBA"))
        opacity = pixels[..., -1].astype(np.float32) / 255
        return pixels[..., :-1], None if opacity.min() == 1 else opacity


def _raw(image: Image.Image) -> str:
    """Pillow's name for the pixels as they lie in the file, if it tells."""
    tiles = image.tile if isinstance(image, ImageFile.ImageFile) else []
    arguments = tiles[0].args if tiles else ""
    return str(arguments[0] if isinstance(arguments, tuple) else arguments)


def _turned(image: Image.Image) -> bool:
    # Pillow turns TIFF itself.
    return image.format != "TIFF" and image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8)


@contextlib.contextmanager
def _opened(picture: Picture) -> Iterator[Image.Image]:
    """Opens an image.

    Whatever Pillow raises on a damaged image, in the `with` block too, becomes a `DataError`.
    """
    encoded = isinstance(picture, Encoded)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            # By its path Pillow would map a file, and tear the rows of a TIFF on its side.
            with (
                io.BytesIO(picture.data) if encoded else picture.open("rb") as file,
                Image.open(file, formats=_FORMATS) as image,
            ):
                _check_pixels(picture, image)
                _check_kind(picture, image)
                yield image
        except DataError:
            raise
        except Exception as error:  # of many types
            reason = str(error)[:200] or type(error).__name__
            raise DataError(f"{picture} cannot be read as an image ({reason}): {REMEDY}") from error


def _check_pixels(picture: Picture, image: Image.Image) -> None:
    by_parts = image.format == "JPEG" and not image.info.get("progressive")
    limit = _MAX_DRAFT_PIXELS if by_parts else _MAX_PIXELS
    width, height = image.size
    if width * height > limit:
        raise DataError(
            f"{picture} has {height} x {width} pixels: make it at most {limit // 10**6} million"
        )


def _check_kind(picture: Picture, image: Image.Image) -> None:
    """Raises `DataError` for pixels that Pillow does not give as they are meant."""
    if image.mode not in _GREY | _DEEP | _COLOUR:
        raise DataError(
            f"{picture} has pixels of the kind {image.mode}: save it in grey or RGB with 8 bits a "
            "channel"
        )
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}
    deep = image.mode in _DEEP
    if deep and image.has_transparency_data:
        wrong = "transparent pixels of 16 bits"
    elif deep and tags.get(_PHOTOMETRIC) == 0:
        wrong = "pixels of 16 bits whose 0 is white"
    elif not deep and 2 in np.atleast_1d(tags.get(_SAMPLE_FORMAT, 1)):
        wrong = "signed pixels of 8 bits"
    else:
        return
    raise DataError(f"{picture} has {wrong}: save it with 8 bits a channel")
