"""Image files: their pixels as they are stored, rotation, depth, palettes and transparency."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from builders_data import data_error, make_labels, write_folder
from PIL import Image

from jaxevo.datasets import (
    InputForm,
    ReadOptions,
    ValueRange,
    load_search_data,
    load_test_data,
    load_training_data,
)
from jaxevo.datasets.pictures import Encoded, Header, decode, read_header

pytestmark = pytest.mark.usefixtures("offline")


def test_sixteen_bits(tmp_path: pathlib.Path) -> None:
    deep = np.arange(12, dtype=np.uint16).reshape(3, 4) * 300
    Image.fromarray(deep).save(tmp_path / "deep.png")
    assert read_header(tmp_path / "deep.png") == Header(
        3, 4, grey=True, deep=True, transparent=False, halved=False, pages=False
    )
    pixels, alpha = decode(tmp_path / "deep.png")
    np.testing.assert_array_equal(pixels[..., 0], deep)
    assert alpha is None


@pytest.mark.parametrize("name", ["turned.jpg", "turned.tif"])
def test_a_stored_rotation_is_applied(tmp_path: pathlib.Path, name: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (4, 3)).save(tmp_path / name, exif=exif)
    header = read_header(tmp_path / name)
    assert decode(tmp_path / name)[0].shape == (header.height, header.width, 3) == (4, 3, 3)


@pytest.mark.parametrize(
    "ending, pages", [("tiff", True), ("gif", True), ("png", True), ("webp", True), ("mpo", False)]
)
def test_files_of_several_images(tmp_path: pathlib.Path, ending: str, pages: bool) -> None:
    # A camera's MPO file is a JPEG with more versions of its picture behind the first.
    first, second = (Image.new("RGB", (4, 3), colour) for colour in ("red", "blue"))
    first.save(tmp_path / f"several.{ending}", save_all=True, append_images=[second])
    first.save(tmp_path / f"one.{ending}")
    assert read_header(tmp_path / f"several.{ending}").pages is pages
    assert not read_header(tmp_path / f"one.{ending}").pages
    assert decode(tmp_path / f"several.{ending}")[0].mean((0, 1))[0] > 240


def test_a_palette(tmp_path: pathlib.Path) -> None:
    Image.new("RGB", (4, 3), (1, 2, 3)).quantize(2).save(tmp_path / "palette.gif")
    assert (decode(tmp_path / "palette.gif")[0] == [1, 2, 3]).all()


@pytest.mark.parametrize("kind", ["LA", "RGBA", "P", "L"])
def test_transparent_pixels(tmp_path: pathlib.Path, kind: str) -> None:
    path = tmp_path / "clear.png"
    if kind in ("LA", "RGBA"):
        image = Image.new(kind, (2, 1), (90, 255) if kind == "LA" else (90, 90, 90, 255))
        image.putpixel((1, 0), (0, 51) if kind == "LA" else (0, 0, 0, 51))
        image.save(path)
    else:  # one value, or one colour of the palette, is transparent
        image = Image.new(kind, (2, 1), 1)
        if kind == "P":
            image.putpalette([0, 0, 0, 90, 90, 90])
        image.putpixel((1, 0), 0)
        image.save(path, transparency=0)
    pixels, alpha = decode(path)
    assert read_header(path).transparent and alpha is not None
    np.testing.assert_allclose(alpha, [[1, 0.2 if "A" in kind else 0]])
    assert pixels[0, 0, 0] == (1 if kind == "L" else 90)


def test_an_opaque_alpha_channel_is_none(tmp_path: pathlib.Path) -> None:
    Image.new("RGBA", (3, 3), (1, 2, 3, 255)).save(tmp_path / "opaque.png")
    assert decode(tmp_path / "opaque.png")[1] is None


def test_an_encoded_image_is_named(tmp_path: pathlib.Path) -> None:
    data_error(
        lambda: decode(Encoded("rows.parquet, row 7,", b"nothing")),
        "rows.parquet, row 7, cannot be read",
    )


def write_ink(root: pathlib.Path, ink: int, split: str = "train", number: int = 12) -> None:
    """Strokes of one colour on transparent pixels, whose stored colour is black."""
    for i in range(number):
        image = Image.new("LA", (8, 8), (0, 0))
        for x in range(2, 6):
            image.putpixel((x, 1 + i % 6), (ink, 255))
        path = root / split / "ab"[i % 2] / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)


@pytest.mark.parametrize(
    ("ink", "background"), [(0, "white"), (255, "black"), (40, "white"), (220, "black")]
)
def test_the_background_keeps_the_contrast(
    tmp_path: pathlib.Path, ink: int, background: str
) -> None:
    write_ink(tmp_path, ink)
    write_ink(tmp_path, ink, "test")
    data = load_search_data(str(tmp_path))
    assert data.form is not None and data.form.background == background
    behind = 255 if background == "white" else 0
    for images in (data.train, data.validation, load_test_data(str(tmp_path))):
        assert np.unique(images.images).tolist() == sorted({ink, behind})
        assert (images.images == ink).sum(axis=(1, 2, 3)).tolist() == [4] * len(images)
    assert data.summary and f"transparent pixels on {background}" in data.summary.describe()


def test_a_flag_overrides_the_background(tmp_path: pathlib.Path) -> None:
    write_ink(tmp_path, 40)
    data = load_training_data(str(tmp_path), options=ReadOptions(background="black"))
    assert data.form.background == "black" and np.unique(data.images.images).tolist() == [0, 40]


def test_later_images_get_the_same_background_or_are_refused(tmp_path: pathlib.Path) -> None:
    write_ink(tmp_path / "ink", 0, "test")
    write_ink(tmp_path / "ink", 0)
    black = InputForm(8, 8, 1, background="black")
    assert not load_test_data(str(tmp_path / "ink"), form=black).images.any()
    opaque = InputForm(8, 8, 1)
    data_error(
        lambda: load_test_data(str(tmp_path / "ink"), form=opaque),
        "00.png",
        "transparent",
        "background",
    )


def test_the_range_of_16_bit_files_is_that_of_the_training_images(tmp_path: pathlib.Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 4096, (20, 6, 6)).astype(np.uint16)
    pixels[0, 0, 0] = 4095
    for split in ("train", "test"):
        write_folder(tmp_path / split, pixels, make_labels(20, 2))
    data = load_training_data(str(tmp_path))
    assert data.form.values == ValueRange(0, 4095) and "values 0 to 4095" in data.summary.describe()
    order = np.argsort(make_labels(20, 2), kind="stable")
    np.testing.assert_array_equal(
        data.images.images[..., 0], np.round(pixels[order] * (255 / 4095))
    )
    eight = tmp_path / "test" / "a" / "0000.png"
    Image.fromarray(np.full((6, 6), 200, np.uint8)).save(eight)
    data_error(lambda: load_test_data(str(tmp_path)), eight, "8 bits", "0 to 4095")
    Image.fromarray(np.full((6, 6), 9000, np.uint16)).save(eight)
    data_error(lambda: load_test_data(str(tmp_path)), eight, "9000", "0 to 4095")
    Image.fromarray(np.full((6, 6), 200, np.uint8)).save(tmp_path / "train" / "a" / "0000.png")
    data_error(lambda: load_training_data(str(tmp_path)), "8 bits", "16", "same depth")
