"""The search as a classifier of scikit-learn: fit and predict, in pipelines, in cross-validation.

Letters: `N` images of `H` x `W` pixels and `C` channels.
"""

from __future__ import annotations

import contextlib
import numbers
import os
import tempfile
from collections.abc import Callable
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from jaxevo.errors import InputError
from jaxevo.estimator_inputs import (
    as_rows,
    check_range,
    class_columns,
    image_shape_of,
    own_range,
    to_inputs,
)


class ImageClassifier(ClassifierMixin, BaseEstimator):
    """Searches for a network for the images, trains it, and classifies with it.

    The search has dozens of settings, which are taken as keyword arguments. scikit-learn leaves
    such arguments out of `get_params`, so this class adds them: `clone`, `set_params` and a grid
    search treat them as parameters. The search refuses unknown ones when `fit` is called.

    Args:
        preset: Named settings of `jaxevo.search`.
        time_limit: Seconds that the search may take; None: until it is done.
        workdir: Folder of the run, from which an interrupted `fit` on the same images goes on.
            Other images, such as another fold's, need another folder. None: a temporary one, so
            that nothing is kept but what the estimator holds.
        random_state: A number gives the same network again; None or a `RandomState` draws one.
        image_shape: `(H, W)` or `(H, W, C)` of images that come as rows; one side may be -1, as in
            `numpy.reshape`. None: rows are square images of one channel.
        learner: What is called in place of `jaxevo.search`, with the same arguments.
        **settings: More arguments of `jaxevo.search`, such as `strategy` or `num_generations`.

    Attributes:
        classes_: The distinct labels `[classes]`, sorted, as they were given.
        n_features_in_: Values of an image, H * W * C.
        image_shape_: `(H, W, C)`.
        pixel_range_: The values of X that are black and white.
        classifier_: The trained network, a `Classifier`.
        genome_: Its genome.
        validation_accuracy_: Its accuracy on images that were split off for that, from 0 to 1.
    """

    n_features_in_: int

    def __init__(
        self,
        preset: str = "auto",
        time_limit: float | None = None,
        workdir: str | os.PathLike[str] | None = None,
        *,
        random_state: int | np.random.RandomState | None = 0,
        image_shape: tuple[int, ...] | None = None,
        learner: Callable[..., Any] | None = None,
        **settings: Any,
    ):
        self.preset = preset
        self.time_limit = time_limit
        self.workdir = workdir
        self.random_state = random_state
        self.image_shape = image_shape
        self.learner = learner
        self._settings = settings

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, settings of the search among them."""
        return super().get_params(deep) | self._settings

    def set_params(self, **params: Any) -> ImageClassifier:
        """Changes parameters; a name that the constructor lacks is a setting of the search."""
        own = {name: params.pop(name) for name in self._get_param_names() if name in params}
        super().set_params(**own)
        self._settings = self._settings | params
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike) -> ImageClassifier:
        """Searches and trains.

        The range of pixels is decided here and holds for all later images: one of the usual ranges,
        such as 0 to 1, 0 to 16 or 0 to 255, if the values lie in one, else from the smallest to the
        largest value of X.

        Args:
            X: Finite numbers `[N, H, W]`, `[N, H, W, C]` or, as rows, `[N, H * W * C]`.
            y: Labels `[N]`, numbers or names, of at least two classes.

        Raises:
            InputError: The images or labels cannot be used (a `ValueError`).

        A `fit` that fails or is interrupted leaves an estimator that is not fitted.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        # Check images and labels as scikit-learn does.
        rows, shape = as_rows(X)
        checked: Any = validate_data(self, rows, cast(Any, y))
        rows, labels = checked
        check_classification_targets(labels)
        classes, numbers_of = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise InputError(f"y has one class, {classes[0]}: give images of at least two classes")
        # Hand the search images, and labels as names unless they are whole numbers.
        self.classes_ = classes
        self.image_shape_ = image_shape_of(shape, rows.shape[1], self.image_shape)
        images = rows.reshape(-1, *self.image_shape_)
        if labels.dtype.kind not in "iu":
            labels = np.array(self._names())[numbers_of]
        # Search, in the range of pixels that the values lie in.
        settings: dict[str, Any] = {}
        if values := own_range(rows):
            settings["pixel_range"] = f"{values.low},{values.high}"
        with self._folder() as folder:
            result = self._search(images, labels, settings | {"workdir": folder})
            classifier = result.classifier()
        self.pixel_range_ = classifier.form.values.low, classifier.form.values.high
        self._usual_range = "pixel_range" not in settings
        self.genome_ = result.genome
        self.validation_accuracy_ = result.validation_accuracy
        self.classifier_ = classifier
        return self

    def _folder(self) -> contextlib.AbstractContextManager[str | os.PathLike[str]]:
        """The folder of the run, which is deleted afterwards unless it was named."""
        if self.workdir is None:
            return tempfile.TemporaryDirectory(prefix="jaxevo-")
        return contextlib.nullcontext(self.workdir)

    def _search(self, images: np.ndarray, labels: np.ndarray, found: dict[str, Any]) -> Any:
        """The result of the search; settings that a person gave go over those `found`."""
        learner = self.learner
        if learner is None:
            from jaxevo.api import search as learner  # here, as it brings JAX
        seed = self.random_state
        if not isinstance(seed, numbers.Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        arguments = {
            "preset": self.preset,
            "time_limit": self.time_limit,
            "seed": int(seed),
            "compare_winner": False,  # nobody would be told
            "report": self.workdir is not None,  # nor see a page that is deleted
        }
        return learner((images, labels), **arguments | found | self._settings)

    def _names(self) -> list[str]:
        """The classes as a network names them; 1.0 is called 1."""
        labels = self.classes_.tolist()
        return [str(int(label) if isinstance(label, float) else label) for label in labels]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities, float32 `[N, classes]` in the order of `classes_`.

        Args:
            X: Images of the shape and scale that `fit` was given, as an array of images or as rows.

        Raises:
            InputError: They have another shape or scale (a `ValueError`).
        """
        check_is_fitted(self, "classifier_")
        rows, shape = as_rows(X)
        if shape is not None:
            image_shape_of(shape, self.n_features_in_, self.image_shape_)
        checked: Any = validate_data(self, rows, reset=False)
        if self._usual_range:
            check_range(checked, self.classifier_.form.values)
        inputs = to_inputs(checked, self.image_shape_, self.classifier_.form)
        columns = class_columns(self._names(), self.classifier_.class_names)
        return self.classifier_.predict_inputs(inputs)[:, columns]

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most likely label `[N]`, one of `classes_`; arguments as of `predict_proba`."""
        most_likely = self.predict_proba(X).argmax(1)
        return self.classes_[most_likely]
