"""A person's data as folders of images: `<folder>/<class>/*`, or `<folder>/train/<class>/*` and the same in `test/`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import pathlib
import warnings
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageOps

from jaxevo.datasets.base import MAX_SIDE, DataError, Images, check_image_array, check_unpacked
from jaxevo.datasets.files import check_regular, read_errors
from jaxevo.datasets.resize import resize_images
from jaxevo.datasets.splits import fixed_test_part

_SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".pgm", ".ppm"}
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")  # no format that starts another program
_GREY = {"1", "L", "LA", "I;16", "I;16B", "I;16L"}
_COLOUR = {"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"}
_ALLOWANCE = 1 << 30  # bytes of pixels; drawings of even colours have 100 times their files
_ORIENTATION = 0x0112  # the EXIF tag
_REMEDY = "replace or remove it"


@dataclasses.dataclass(frozen=True)
class Listing:
    """The image files of a split and their labels (int32 [M]), not yet read."""

    folder: pathlib.Path
    paths: tuple[pathlib.Path, ...]
    labels: np.ndarray
    class_names: tuple[str, ...]


def list_split(folder: pathlib.Path, split: str) -> Listing:
    """Lists the files of `split` ("train" or "test"); without such sub-folders, a fixed fifth is the test split."""
    with read_errors(folder, "check that you may read it"):
        parts = [folder / name for name in ("train", "test")]
        if not all(part.is_dir() and _subfolders(part) for part in parts):
            if any(part.is_dir() and _subfolders(part) for part in parts):
                raise DataError(f"{folder} has only one of train/ and test/ with class folders: add the other")
            return _fixed_part(_list_classes(folder, folder), split)
        listings = {part.name: _list_classes(part, folder) for part in parts}
    train, test = listings["train"].class_names, listings["test"].class_names
    if train != test:
        odd = sorted(set(train) ^ set(test))
        raise DataError(f"{folder} has the class {odd[0]} in train/ or in test/ only: use the same classes in both")
    return listings[split]


def _subfolders(folder: pathlib.Path) -> list[pathlib.Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _list_classes(folder: pathlib.Path, root: pathlib.Path) -> Listing:
    _check_inside(folder, root)
    paths: list[pathlib.Path] = []
    labels: list[int] = []
    classes = _subfolders(folder)
    if len(classes) < 2:
        raise DataError(f"{folder} has {len(classes)} class folders: put each class's images into a folder of its own")
    for label, class_folder in enumerate(classes):
        _check_inside(class_folder, root)
        images = sorted(p for p in class_folder.iterdir() if p.suffix.lower() in _SUFFIXES and p.name[0] != ".")
        for path in images:
            _check_inside(path, root)
            check_regular(path, _REMEDY)
        if not images:
            raise DataError(f"{class_folder} has no images ({', '.join(sorted(_SUFFIXES))}): add some or remove it")
        paths += images
        labels += [label] * len(images)
    return Listing(folder, tuple(paths), np.array(labels, np.int32), tuple(path.name for path in classes))


def _check_inside(path: pathlib.Path, root: pathlib.Path) -> None:
    """Raises `DataError` for a link that leads out of the folder that was named, which may come from a stranger."""
    if path != root and path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
        raise DataError(f"{path} is a link that leads out of {root}: put the images themselves there")


def _fixed_part(listing: Listing, split: str) -> Listing:
    train, test = fixed_test_part(listing.labels, str(listing.folder))
    indices = test if split == "test" else train
    paths = tuple(listing.paths[i] for i in indices)
    return dataclasses.replace(listing, paths=paths, labels=listing.labels[indices])


def read_listing(listing: Listing, size: tuple[int, int] | None, method: str) -> Images:
    """Reads the files.

    Args:
        listing: The files.
        size: Height and width that every image gets by `method`; `None` demands that all have the same.
        method: See `resize.resize_images`.

    Returns:
        Images [M, H, W, 1] if every image is grey, else [M, H, W, 3].
    """
    headers = [_header(path) for path in listing.paths]
    channels = 1 if all(grey for _, grey in headers) else 3
    shape = (*(size or headers[0][0]), channels)
    for path, (found, _) in zip(listing.paths, headers, strict=True):
        if size is None and found != shape[:2]:
            raise DataError(
                f"{path} has {found[0]} x {found[1]} pixels, {listing.paths[0]} has {shape[0]} x {shape[1]}: "
                "give an image_size to resize all"
            )
    check_image_array(listing.folder, (len(listing.paths), *shape))
    if size is None:
        values, packed = len(listing.paths) * math.prod(shape), sum(path.stat().st_size for path in listing.paths)
        check_unpacked(listing.folder, values, packed, "give an image_size", _ALLOWANCE)
    images = np.empty((len(listing.paths), *shape), np.uint8)
    for i, path in enumerate(listing.paths):
        pixels = _decode(path, channels)
        if size is None and pixels.shape != shape:
            raise DataError(f"{path} has other pixels than its header says: {_REMEDY}")
        images[i] = pixels if size is None else resize_images(pixels[None], shape, method)[0]
    return Images(images, listing.labels)


def _header(path: pathlib.Path) -> tuple[tuple[int, int], bool]:
    """Height and width as shown (cameras store a rotation), and whether the image is grey."""
    with _opened(path) as image:
        width, height = image.size
        if max(width, height) > MAX_SIDE:
            raise DataError(f"{path} has {height} x {width} pixels: make it at most {MAX_SIDE} a side")
        if image.mode not in _GREY | _COLOUR:
            raise DataError(f"{path} has pixels of the kind {image.mode}: save it with 8 bits a channel")
        turned = image.format != "TIFF" and image.getexif().get(_ORIENTATION, 1) in (5, 6, 7, 8)  # Pillow turns TIFF
        return ((width, height) if turned else (height, width)), image.mode in _GREY


def _decode(path: pathlib.Path, channels: int) -> np.ndarray:
    """uint8 [H, W, channels]."""
    with _opened(path) as image:
        image = ImageOps.exif_transpose(image)
        if image.mode.startswith("I;16"):  # Pillow would clip 16 bits to 8 instead of scaling
            image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
        pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
    return pixels.reshape(*pixels.shape[:2], channels)


@contextlib.contextmanager
def _opened(path: pathlib.Path) -> Iterator[Image.Image]:
    """Opens an image; whatever Pillow raises on a damaged one, in the `with` block too, becomes a `DataError`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with Image.open(path, formats=_FORMATS) as image:
                yield image
        except DataError:
            raise
        except Exception as error:  # of many types
            reason = str(error)[:200] or type(error).__name__
            raise DataError(f"{path} cannot be read as an image ({reason}): {_REMEDY}") from error
