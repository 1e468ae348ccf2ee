"""A trained network as a static page for a browser: draw a digit, or pick an image."""

from __future__ import annotations

import importlib.resources
import json
import pathlib
import shlex

from jaxevo.datasets import ValueRange
from jaxevo.errors import InputError
from jaxevo.files import drafted
from jaxevo.training.classifier import Classifier

_PAGE = ("index.html", "page.css", "page.js", "convert.js")
_SIXTEEN_BITS = ValueRange(0, 65535)  # of which a browser's 8 bits have the whole range
# The version that the page was tried with, and what it needs of it.
RUNTIME = "onnxruntime-web@1.30"
RUNTIME_FILES = (
    *("ort.wasm.min.js", "ort-wasm-simd-threaded.mjs"),
    "ort-wasm-simd-threaded.wasm",
)


def save_page(classifier: Classifier, model: bytes, folder: pathlib.Path) -> None:
    """Writes a new folder with the page and the model, to which `RUNTIME_FILES` are to be added.

    Raises `InputError` where a browser cannot read such images, and `OSError`.
    """
    values = classifier.form.values
    if not drawn(classifier) and values.high > 255 and values != _SIXTEEN_BITS:
        raise InputError(
            f"a page for images of values {values} is not possible, as a browser reads 8 bits of "
            "each: use another format, or train on images of 8 bits"
        )
    source = importlib.resources.files("jaxevo.export") / "page"
    with drafted(folder) as draft:
        draft.mkdir()
        for name in _PAGE:
            (draft / name).write_bytes((source / name).read_bytes())
        (draft / "model.onnx").write_bytes(model)
        (draft / "model.json").write_text(json.dumps(_description(classifier), indent=2) + "\n")


def _description(classifier: Classifier) -> dict[str, object]:
    """What the page has to know; a browser's runtime cannot read a model's own metadata."""
    return {
        "class_names": classifier.class_names,
        "form": classifier.form.to_json(),
        "drawn": drawn(classifier),
    }


def drawn(classifier: Classifier) -> str:
    """How a drawing becomes an input, one of `datasets.METHODS`; empty: it cannot.

    A drawing is a square of white strokes on black. MNIST's images are boxed already, so a network
    of them was not told to box; a drawing has to be.
    """
    form = classifier.form
    if form.channels != 1 or form.height != form.width:
        return ""
    return "mnist_box" if classifier.source.dataset == "mnist" else form.resize


def remaining_steps(folder: pathlib.Path) -> str:
    """What is left to a person: the runtime, which is not part of this program, and a server."""
    files = " ".join(f"package/dist/{name}" for name in RUNTIME_FILES)
    place = shlex.quote(str(folder))
    return (
        f"add onnxruntime-web: npm pack {RUNTIME} && tar xf onnxruntime-web-*.tgz && "
        f"cp {files} {place}\n"
        f"then open the page: python -m http.server --bind 127.0.0.1 --directory {place}"
    )
