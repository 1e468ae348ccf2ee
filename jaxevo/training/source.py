"""The data that a network was trained on, as its saved weights describe them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from jaxevo.datasets import Content, InputForm
from jaxevo.errors import printable


@dataclasses.dataclass(frozen=True)
class Source:
    """The data that a network was trained on.

    Attributes:
        dataset: A name, or the path at the time.
        class_names: In the order of the network's outputs.
        resize: How images of another size were resized; says no more than `form`.
        form: How any image becomes an input; None in weights of before version 0.3.
        content: Of the training images, by which they are known elsewhere.
    """

    dataset: str
    class_names: tuple[str, ...]
    resize: str
    form: InputForm | None = None
    content: Content = Content()

    def to_json(self) -> dict[str, Any]:
        """A document of plain values, read back by `from_json`."""
        document: dict[str, Any] = {
            "dataset": self.dataset,
            "class_names": list(self.class_names),
            "resize": self.resize,
        }
        if self.form is not None:
            document |= {"input": self.form.to_json()} | self.content.to_json()
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any], image_shape: tuple[int, int, int]) -> Source:
        """Reads a document of `to_json`, which may come from a stranger.

        A document of another form raises one of several errors.
        """
        names = tuple(printable(str(name)) for name in document["class_names"])
        form = None
        if "input" in document:
            form = InputForm.from_json(document["input"])
            if form.image_shape != image_shape or form.resize != document["resize"]:
                raise ValueError("the input form is not that of its images")
        return cls(
            printable(str(document["dataset"])),
            names,
            printable(str(document["resize"])),
            form,
            Content.from_json(document),
        )
