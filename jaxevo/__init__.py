"""jaxevo: evolutionary search for small convolutional networks, in JAX.

    import jaxevo

    result = jaxevo.search("digits")        # searches, trains the winner, tests it once
    classifier = result.classifier()        # or jaxevo.load("runs/.../best")
    classifier.predict(images)              # class names

The names below are imported when they are first used, so that looking into a run needs no JAX.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxevo.api import evolve, load, search, train
    from jaxevo.estimator import ImageClassifier
    from jaxevo.run.result import Result
    from jaxevo.search_space.genome import Genome
    from jaxevo.training.classifier import Classifier

_MODULES = {
    "Classifier": "jaxevo.training.classifier",
    "Genome": "jaxevo.search_space.genome",
    "ImageClassifier": "jaxevo.estimator",
    "Result": "jaxevo.run.result",
    "evolve": "jaxevo.api",
    "load": "jaxevo.api",
    "search": "jaxevo.api",
    "train": "jaxevo.api",
}

__all__ = [
    "Classifier",
    "Genome",
    "ImageClassifier",
    "Result",
    "__version__",
    "evolve",
    "load",
    "search",
    "train",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("jaxevo")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'jaxevo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
