"""The search as a classifier of scikit-learn: its checks with a stub learner, shapes, scales."""

from __future__ import annotations

import dataclasses
import pathlib
import pickle
import sys
import types
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from jaxevo import estimator_inputs
from jaxevo.datasets import InputForm, ReadOptions, ValueRange, load_test_data, load_train_data
from jaxevo.datasets.array_pixels import ArrayPixels
from jaxevo.errors import InputError
from jaxevo.estimator import ImageClassifier
from jaxevo.run.reporter import Silent


@dataclasses.dataclass(frozen=True)
class Nearest:
    """Stands for a trained network: the nearer a class's mean image, the likelier the class."""

    class_names: tuple[str, ...]
    form: InputForm
    means: np.ndarray  # [classes, H, W, C]
    spread: float

    def predict_inputs(self, inputs: np.ndarray) -> np.ndarray:
        assert inputs.dtype == np.uint8 and inputs.shape[1:] == self.form.image_shape
        differences = inputs[:, None].astype(float) - self.means
        logits = -(differences**2).sum((2, 3, 4)) / self.spread
        powers = np.exp(logits - logits.max(1, keepdims=True))
        return (powers / powers.sum(1, keepdims=True)).astype(np.float32)


@dataclasses.dataclass(frozen=True)
class StubResult:
    """Stands for the result of a search."""

    network: Nearest
    settings: dict[str, Any]
    genome: str = "genome"
    validation_accuracy: float = 0.5

    def classifier(self) -> Nearest:
        return self.network


class Stub:
    """Stands for `jaxevo.search`: names classes by their labels, here sorted as text.

    Its name is the same in every process, as names of tests must be.
    """

    def __repr__(self) -> str:
        return "stub"

    def __reduce__(self) -> str:
        return "stub"

    def __call__(self, data: tuple[np.ndarray, np.ndarray], **settings: Any) -> StubResult:
        images, labels = data
        options = ReadOptions.of(settings.get("pixel_range", ""))
        pixels = ArrayPixels.of("x_train", images)
        values = options.pixel_range or pixels.measure().values
        form = InputForm(*images.shape[1:], values=values)
        inputs = pixels.read(form, False, lambda done, total: None).images
        names, numbers = np.unique(labels.astype(str), return_inverse=True)
        means = np.stack([inputs[numbers == k].mean(0) for k in range(len(names))])
        spread = 1.0 + inputs.astype(float).var(0).sum()
        return StubResult(Nearest(tuple(names.tolist()), form, means, spread), settings)


stub = Stub()


@parametrize_with_checks([ImageClassifier(image_shape=(1, -1), learner=stub)])
def test_scikit_learns_checks(estimator, check):
    """None is expected to fail.

    With `image_shape=None` those cannot hold whose rows of 2, 3 or 10 values are no square images.
    With a network in place of the stub, `check_methods_subset_invariance` cannot hold: a batch's
    size decides how a compiled program rounds, and the check allows 1e-7.
    """
    check(estimator)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Rows of 64 values from 0 to 16."""
    rows, labels = load_digits(return_X_y=True)
    return rows[:300], labels[:300]


def fitted(X: Any, y: Any, **parameters: Any) -> ImageClassifier:
    return ImageClassifier(learner=stub, **parameters).fit(X, y)


# Parameters


def seen(estimator: ImageClassifier) -> list[dict[str, Any]]:
    """The arguments that a fit hands to the learner."""
    calls: list[dict[str, Any]] = []

    def learner(data: tuple[np.ndarray, np.ndarray], **settings: Any) -> StubResult:
        calls.append(settings)
        return stub(data, **settings)

    estimator.set_params(learner=learner).fit(np.eye(4).reshape(4, 2, 2), [0, 1, 0, 1])
    return calls


def test_parameters_reach_the_search():
    (arguments,) = seen(ImageClassifier())
    assert not pathlib.Path(arguments.pop("workdir")).exists()  # it was temporary
    assert arguments == {
        "preset": "auto",
        "time_limit": None,
        "seed": 0,
        "compare_winner": False,
        "report": False,
    }
    estimator = ImageClassifier("quick", 60, "run", random_state=5, strategy="random", channels=8)
    assert seen(estimator) == [
        {
            "preset": "quick",
            "time_limit": 60,
            "workdir": "run",
            "seed": 5,
            "compare_winner": False,
            "report": True,
            "strategy": "random",
            "channels": 8,
        }
    ]


def test_a_random_state_draws_the_seed():
    drawn = np.random.RandomState(7).randint(2**31 - 1)
    assert seen(ImageClassifier(random_state=np.random.RandomState(7)))[0]["seed"] == drawn
    assert seen(ImageClassifier(random_state=np.int64(7)))[0]["seed"] == 7
    first, second = (seen(ImageClassifier(random_state=None))[0]["seed"] for _ in range(2))
    assert first != second  # but once in 2 ** 31 times


def test_without_a_learner_the_library_searches(monkeypatch, digits):
    monkeypatch.setitem(sys.modules, "jaxevo.api", types.SimpleNamespace(search=stub))
    assert ImageClassifier().fit(*digits).score(*digits) > 0.8


def test_settings_are_parameters():
    estimator = ImageClassifier("quick", channels=8)
    assert estimator.get_params() == {
        "preset": "quick",
        "time_limit": None,
        "workdir": None,
        "random_state": 0,
        "image_shape": None,
        "learner": None,
        "channels": 8,
    }
    copy = clone(estimator).set_params(channels=4, num_generations=3, preset="smoke")
    assert (copy.get_params()["channels"], copy.get_params()["num_generations"]) == (4, 3)
    assert copy.preset == "smoke"
    assert (
        estimator.get_params()["channels"] == 8 and "num_generations" not in estimator.get_params()
    )
    assert repr(estimator) == "ImageClassifier(channels=8, preset='quick')"
    assert "channels" in estimator._repr_html_()


def test_in_pipelines_cross_validation_and_grid_search(digits):
    pipeline = make_pipeline(MinMaxScaler(), ImageClassifier(learner=stub))
    assert cross_val_score(pipeline, *digits, cv=3).min() > 0.7
    search = GridSearchCV(ImageClassifier(learner=stub, channels=4), {"channels": [4, 8]}, cv=2)
    search.fit(*digits)
    assert [each["channels"] for each in search.cv_results_["params"]] == [4, 8]
    assert search.score(*digits) > 0.7


def test_a_fitted_one_is_pickled(digits):
    estimator = fitted(*digits, channels=8)
    again = pickle.loads(pickle.dumps(estimator))
    assert again.get_params() == estimator.get_params()
    np.testing.assert_array_equal(
        again.predict_proba(digits[0]), estimator.predict_proba(digits[0])
    )


# Shapes


def test_rows_and_images_are_the_same(digits):
    rows, labels = digits
    expected = fitted(rows, labels).predict_proba(rows)
    for shape in ((8, 8), (8, 8, 1)):
        images = rows.reshape(-1, *shape)
        for given in (None, (8, 8), (8, 8, 1), (8, -1), [8, 8]):
            estimator = fitted(images, labels, image_shape=given)
            assert (estimator.n_features_in_, estimator.image_shape_) == (64, (8, 8, 1))
            np.testing.assert_array_equal(estimator.predict_proba(images), expected)
        np.testing.assert_array_equal(estimator.predict_proba(rows), expected)
        np.testing.assert_array_equal(estimator.predict_proba(images.tolist()), expected)


def test_rows_of_colours():
    images = np.random.default_rng(0).integers(0, 256, (20, 4, 3, 3), dtype=np.uint8)
    labels = np.arange(20) % 2
    estimator = fitted(images.reshape(20, 36), labels, image_shape=(4, 3, 3))
    assert estimator.image_shape_ == (4, 3, 3)
    expected = fitted(images, labels).predict_proba(images)
    np.testing.assert_array_equal(estimator.predict_proba(images), expected)


@pytest.mark.parametrize(
    ("shape", "wanted", "message"),
    [
        ((5,), None, "rows of 5 values are no square images: give image_shape="),
        ((6,), (2, 4), r"rows of 6 values do not have the image_shape \(2, 4\): give one"),
        ((6,), (6,), r"rows of 6 values do not have the image_shape \(6,\)"),
        ((6,), (-1, -1), r"rows of 6 values do not have the image_shape \(-1, -1\)"),
        ((2, 3), (3, 2), r"images of \[2, 3\] do not have the image_shape \(3, 2\)"),
        ((2, 3, 3), (2, 9), r"images of \[2, 3, 3\] do not have the image_shape \(2, 9\)"),
        ((3, 2, 2), None, r"images of \[3, 2, 2\] would have 2 channels: give 1 or 3, as the last"),
        ((8,), (1, 2, 4), r"images of \[1, 2, 4\] would have 4 channels"),
        ((1, 2, 3, 3), None, r"X has the shape \[4, 1, 2, 3, 3\]: give \[N, H, W\] or"),
    ],
)
def test_other_shapes_are_refused(shape, wanted, message):
    images = np.random.default_rng(0).random((4, *shape))
    with pytest.raises(InputError, match=f"^{message}"):
        fitted(images, [0, 1, 0, 1], image_shape=wanted)


def test_later_images_have_the_shape_of_the_first():
    estimator = fitted(np.random.default_rng(0).random((4, 2, 3)), [0, 1, 0, 1])
    with pytest.raises(InputError, match=r"^images of \[3, 2\] do not have the image_shape \(2, 3"):
        estimator.predict(np.zeros((1, 3, 2)))
    with pytest.raises(ValueError, match="X has 4 features, but ImageClassifier is expecting 6"):
        estimator.predict(np.zeros((1, 4)))


# Scales


@pytest.mark.parametrize(
    ("values", "pixel_range", "given"),
    [
        (np.array([0.0, 0.2, 0.9]), (0, 1), False),
        (np.array([False, True]), (0, 1), False),
        (np.array([0, 1], np.uint8), (0, 1), False),
        (np.array([0.0, 8.0, 15.5]), (0, 15.5), True),
        (np.array([0.0, 8.0, 16.0]), (0, 16), False),
        (np.array([3, 100, 254], np.uint8), (0, 255), False),
        (np.array([3.4, 100.0, 254.6]), (0, 255), False),
        (np.array([-1.0, 0.0, 1.0]), (-1, 1), False),
        (np.array([0, 60_000], np.uint16), (0, 65535), False),
        (np.array([-5, 0, 250]), (-5, 250), True),
        (np.array([-1.5, 0.0, 2.25]), (-1.5, 2.25), True),
    ],
)
def test_the_range_is_that_of_all_data_or_the_images_own(values, pixel_range, given):
    rows = np.stack([values, values[::-1]])
    found = estimator_inputs.own_range(rows)
    assert found == (ValueRange(*pixel_range) if given else None)
    estimator = fitted(rows, [0, 1], image_shape=(1, -1))
    assert estimator.pixel_range_ == pixel_range
    assert estimator.classifier_.form.values == ValueRange(*pixel_range)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([-1e308, 1e308], r"X has values from -1e\+308 to 1e\+308: give pixels from 0 to 255"),
        ([0, 2e9], r"X has values from 0 to 2e\+09: give pixels from 0 to 255"),
        ([-3, -3], "X has the value -3 everywhere: give images that differ"),
    ],
)
def test_values_that_are_no_images_are_refused(values, words):
    with pytest.raises(InputError, match=f"^{words}$"):
        fitted(np.array([values, values]), [0, 1], image_shape=(1, -1))


def test_the_form_alone_converts_and_many_rows_are_as_few():
    form = InputForm(2, 2, 1, values=ValueRange(0, 1))
    rows = np.random.default_rng(0).random((2500, 4)) * 1.2 - 0.1
    inputs = estimator_inputs.to_inputs(rows, (2, 2, 1), form)
    images = np.clip(rows, 0, 1).reshape(-1, 2, 2, 1)  # what lies outside is black or white
    np.testing.assert_array_equal(inputs, form.to_input(images, "x"))
    small = dataclasses.replace(form, height=1, width=1)
    found = estimator_inputs.to_inputs(rows, (2, 2, 1), small)
    np.testing.assert_array_equal(found, small.to_input(images, "x"))


def test_a_range_that_is_given_holds(digits):
    rows, labels = digits
    estimator = fitted(rows, labels, pixel_range="0,32")
    assert estimator.pixel_range_ == (0, 32)
    assert fitted(rows, labels).pixel_range_ == (0, 16)


def test_digits_are_the_images_of_the_data_set(digits):
    images = np.concatenate([load_train_data("digits")[0].images, load_test_data("digits").images])
    form = InputForm(8, 8, 1, values=ValueRange(0, 16))
    found = estimator_inputs.to_inputs(digits[0], (8, 8, 1), form)
    known = {image.tobytes() for image in images}
    assert all(image.tobytes() in known for image in found)


def test_later_images_are_converted_like_the_first(digits):
    rows, labels = digits
    estimator = fitted(rows, labels)
    assert estimator.pixel_range_ == (0, 16)
    dark = np.minimum(rows[:5], 3.0)  # not brightened, though their own largest value is 3
    expected = estimator.classifier_.predict_inputs(
        np.round(dark * 255 / 16).astype(np.uint8).reshape(-1, 8, 8, 1)
    )
    np.testing.assert_array_equal(estimator.predict_proba(dark), expected)
    with pytest.raises(InputError) as caught:
        estimator.predict(rows * (255 / 16))
    assert str(caught.value) == (
        "X has values from 0 to 255 and the images of fit had 0 to 16: give both on one scale"
    )
    with pytest.raises(InputError, match="values from 0 to 1 and the images of fit had 0 to 16"):
        estimator.predict(rows / 16)
    assert estimator.predict(np.zeros((1, 64))).shape == (1,)  # black is on every scale
    with pytest.raises(InputError, match="values from -32 to 16 and the images of fit had 0 to 16"):
        estimator.predict(np.where(np.arange(300)[:, None] < 200, -2 * rows, rows))
    centred = (rows - rows.mean()) / rows.std()
    for scaled in (rows / 8 - 1, centred, rows > 8, rows // 16):
        with pytest.raises(InputError, match="give both on one scale"):
            estimator.predict(scaled)
    few = np.where(rows == 16, 40, rows)  # outliers become white
    np.testing.assert_array_equal(estimator.predict_proba(few), estimator.predict_proba(rows))


def test_a_range_of_its_own_takes_outliers():
    rows = np.random.default_rng(0).normal(size=(20, 4))
    estimator = fitted(rows, np.arange(20) % 2)
    assert estimator.pixel_range_ == (rows.min(), rows.max())
    assert estimator.predict(100 * rows).shape == (20,)


# Labels


@pytest.mark.parametrize(
    "labels",
    [
        np.array([9, 10, 11]),  # as text, 9 comes last
        np.array([-1, 0, 10], np.int8),
        np.array(["ant", "bee", "cat"]),
        np.array(["ant", "bee", "cat"], object),
        np.array([1.0, 2.0, 10.0]),
    ],
)
def test_labels_are_kept_as_given(digits, labels):
    keep = digits[1] < 3
    rows, numbers = digits[0][keep], digits[1][keep]
    estimator = fitted(rows, labels[numbers])
    np.testing.assert_array_equal(estimator.classes_, labels)
    assert estimator.classes_.dtype == labels.dtype
    expected = fitted(rows, numbers)
    np.testing.assert_array_equal(estimator.predict_proba(rows), expected.predict_proba(rows))
    np.testing.assert_array_equal(estimator.predict(rows), labels[expected.predict(rows)])
    assert estimator.score(rows, labels[numbers]) == expected.score(rows, numbers)


def test_whole_floats_name_classes_as_integers_do(digits):
    estimator = fitted(digits[0], digits[1].astype(float))
    assert estimator.classifier_.class_names == tuple("0123456789")


def test_truth_values_are_labels(digits):
    rows, labels = digits
    estimator = fitted(rows, labels == 0)
    assert estimator.classes_.tolist() == [False, True]
    assert estimator.score(rows, labels == 0) > 0.8


def test_one_class_is_refused():
    with pytest.raises(InputError, match="^y has one class, cat: give images of at least two"):
        fitted(np.eye(4), ["cat"] * 4)


# With a search


@pytest.mark.slow
def test_with_a_search_in_place_of_the_stub(digits):
    rows, labels = digits
    small = {"num_generations": 0, "population_size": 2, "retrain_best": 1, "retrain_seeds": 1}
    network = {"channels": 4, "num_normal_cells": 1, "max_nodes": 2, "final_batch_size": 16}
    estimator = ImageClassifier("quick", reporter=Silent(), **small, **network)
    estimator.fit(rows, np.array(list("abcdefghij"))[labels])
    assert estimator.classes_.tolist() == list("abcdefghij")
    found = estimator.predict_proba(rows)
    assert found.shape == (300, 10) and found.dtype == np.float32
    assert np.mean(estimator.predict(rows) == np.array(list("abcdefghij"))[labels]) > 0.5
    alone = np.concatenate([estimator.predict_proba(rows[k : k + 1]) for k in range(3)])
    np.testing.assert_allclose(alone, found[:3], rtol=1e-4, atol=1e-7)


def test_a_fit_that_fails_leaves_nothing_of_the_one_before(digits):
    """Else the first network would answer in the classes of the second call."""
    X, y = digits
    estimator = fitted(X, y)

    def interrupted(data: Any, **settings: Any) -> Any:
        raise KeyboardInterrupt

    estimator.set_params(learner=interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(X[y > 7], y[y > 7])
    for method in (estimator.predict, estimator.predict_proba):
        with pytest.raises(NotFittedError):
            method(X)
    assert (
        estimator.set_params(learner=stub).fit(X, y).predict(X) == fitted(X, y).predict(X)
    ).all()
