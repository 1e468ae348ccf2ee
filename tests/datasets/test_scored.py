"""What a trained network is scored on, what was understood, and images that are on two sides."""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest
from builders_data import (
    LABELS,
    PIXELS,
    data_error,
    make_images,
    make_labels,
    unsplit_folder,
    write_folder,
)

from jaxevo.datasets import (
    Content,
    InputForm,
    count_duplicates,
    load_scored_data,
    load_search_data,
    load_test_data,
    load_training_data,
    was_trained_on,
)

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def own(tmp_path: pathlib.Path) -> pathlib.Path:
    return unsplit_folder(tmp_path / "own")


def scored(dataset: pathlib.Path, trained_on: str, digest: str = "") -> tuple[int, str]:
    data = load_scored_data(
        str(dataset),
        form=InputForm(8, 8, 1),
        class_names=("b", "a"),
        trained_on=trained_on,
        train_digest=digest,
    )
    expected = {
        image.tobytes(): "ba".index("ab"[y]) for image, y in zip(PIXELS, LABELS, strict=True)
    }
    assert [
        expected[image.tobytes()] for image in data.images.images
    ] == data.images.labels.tolist()
    return len(data.images), data.summary.describe()


def test_a_foreign_folder_is_scored_whole(own: pathlib.Path) -> None:
    number, line = scored(own, "digits")
    assert number == 50 and "50 for the test (all of them)" in line


def test_data_trained_on_are_scored_on_their_test_part(own: pathlib.Path) -> None:
    number, line = scored(own, str(own))
    assert number == 10 and "10 for the test (a fixed 20% of the images)" in line


def test_data_trained_on_are_known_under_another_path(own: pathlib.Path) -> None:
    digest = Content.of(load_training_data(str(own)).images).digest
    moved = shutil.copytree(own, own.with_name("moved"))
    assert scored(moved, str(own), digest)[0] == 10
    assert scored(moved, str(own), "0" * 64)[0] == 50
    options = {"form": InputForm(8, 8, 1), "train_digest": digest}
    assert was_trained_on(str(moved), **options) and not was_trained_on("digits", **options)


def test_a_foreign_test_part_is_scored(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "train", PIXELS, LABELS)
    write_folder(tmp_path / "test", PIXELS[:12], LABELS[:12])
    number, line = scored(tmp_path, "digits")
    assert number == 12 and "12 for the test (the data's own)" in line


def test_images_on_two_sides_are_counted(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "train", PIXELS, LABELS)
    write_folder(tmp_path / "test", np.concatenate([PIXELS[:3], 255 - PIXELS[:9]]), LABELS[:12])
    data = load_search_data(str(tmp_path))
    test = load_test_data(str(tmp_path))
    assert count_duplicates(test, data.train, data.validation) == 3
    assert count_duplicates(test, data.train, data.validation, data.train, test) == len(test)
    assert not any("training images too" in note for note in data.summary.notes if data.summary)
    shutil.copytree(tmp_path / "train", tmp_path / "val")
    data = load_search_data(str(tmp_path))
    assert data.summary is not None
    assert (
        "50 validation images are training images too, which flatters their accuracy"
        in data.summary.notes
    )


def test_the_line_before_a_run(tmp_path: pathlib.Path) -> None:
    write_folder(tmp_path / "train", make_images(50, (30, 20)), LABELS)
    write_folder(tmp_path / "train", make_images(50, (12, 16), 1), LABELS, ("a", "c"))
    write_folder(tmp_path / "test", make_images(9, (30, 20)), make_labels(9, 3), "abc")
    (tmp_path / "train" / "a" / "list.txt").write_text("")
    data = load_search_data(str(tmp_path), train_examples=30, validation_fraction=0.2)
    assert data.summary is not None
    assert data.summary.describe() == (
        f"{tmp_path}: 30 training images, 15 for validation (20% of the training images), 9 for "
        "the test (the data's own), 3 classes (a, b, c), 16x16 pixels, grey, values 0 to 255; "
        "images from 12x16 to 30x20 made 16x16 (image_size=... chooses another size); passed over: "
        "1 files that end in .txt, not as images do (train/a/list.txt)"
    )


def test_class_names_in_the_line_obey_nobody(tmp_path: pathlib.Path) -> None:
    labels = np.array(["a", "\x1b[31mb\n"])[make_labels(10, 2)]
    np.savez(tmp_path / "own.npz", x_train=make_images(10, (8, 8)), y_train=labels)
    data = load_search_data(str(tmp_path / "own.npz"), validation_fraction=0.3)
    assert data.summary is not None
    assert "2 classes (\\x1b[31mb\\n, a)" in data.summary.describe()


def test_another_form_of_a_network_is_demanded(own: pathlib.Path) -> None:
    form = InputForm(8, 8, 1, values=load_training_data(str(own)).form.values)
    assert load_scored_data(str(own), form=form, class_names=("a", "b"), trained_on="x").images
    data_error(
        lambda: load_scored_data(str(own), form=form, class_names=("a", "c"), trained_on="x"),
        "class b",
        "class_map=b=c",
    )
