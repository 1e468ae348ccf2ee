"""Image files that are to be classified: found in a folder, and read as a network's input."""

from __future__ import annotations

import os
import pathlib

import numpy as np

from jaxevo.datasets.base import DataError
from jaxevo.datasets.file_pixels import read_input
from jaxevo.datasets.files import check_regular, read_errors
from jaxevo.datasets.folder import check_inside
from jaxevo.datasets.input_form import InputForm
from jaxevo.datasets.pictures import SUFFIXES, has_image_ending

_REMEDY = "replace or remove it"


def find_images(folder: pathlib.Path) -> list[pathlib.Path]:
    """The image files in a folder and in the folders within, sorted.

    Hidden files and folders are left out, and links to folders, which may lead anywhere.

    Raises:
        DataError: There are none, one is a link that leads out of the folder, or one is no file.
    """
    paths: list[pathlib.Path] = []
    with read_errors(folder, "check that you may read it"):
        for parent, folders, names in os.walk(folder, onerror=_refuse):
            folders[:] = [name for name in folders if name[0] != "."]
            paths += [pathlib.Path(parent, name) for name in names if name[0] != "."]
    images = sorted(path for path in paths if has_image_ending(path))
    if not images:
        raise DataError(f"{folder} has no images ({', '.join(sorted(SUFFIXES))}): add some")
    for path in images:
        check_inside(path, folder)
        check_regular(path, _REMEDY)
    return images


def _refuse(error: OSError) -> None:
    raise error


def read_image(path: pathlib.Path, form: InputForm) -> np.ndarray:
    """Reads an image file as a network's input.

    Args:
        path: The file.
        form: How any image becomes an input of the network.

    Returns:
        uint8 `[*form.image_shape]`.

    Raises:
        DataError: It is no image that can be read, or was stored in another range of values than
            the training images.
    """
    check_regular(path, _REMEDY)
    image, extent = read_input(path, form)
    form.values.check_scale(extent, str(path))
    return image
