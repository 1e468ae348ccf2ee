"""The card of a trained network: what it is, what it is good for, and how it is used.

It lies beside the weights as Markdown. Names of classes and of data sets may come from anyone and
are escaped.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from jaxevo.errors import printable
from jaxevo.files import write_text
from jaxevo.networks.baselines import Baseline
from jaxevo.search_space.complexity import network_settings
from jaxevo.training.classifier import Classifier
from jaxevo.versions import versions

FILE_NAME = "MODEL_CARD.md"
_MAX_CLASSES = 100  # that are listed


def write_card(
    folder: pathlib.Path,
    classifier: Classifier,
    results: Sequence[str],
    *,
    training: Mapping[str, Any],
) -> None:
    """Writes the card of saved weights into their folder.

    Args:
        folder: Of the weights.
        classifier: The network.
        results: Sentences on how good it is.
        training: Settings of its training.

    Raises:
        OSError: The card cannot be written.
    """
    write_text(folder / FILE_NAME, _card(classifier, results, training=training))


def _card(classifier: Classifier, results: Sequence[str], *, training: Mapping[str, Any]) -> str:
    size = classifier.builder.complexity(classifier.model)
    names = classifier.class_names
    listed = ", ".join(map(escaped, names[:_MAX_CLASSES]))
    more = f" and {len(names) - _MAX_CLASSES:,} more" if len(names) > _MAX_CLASSES else ""
    settings = "\n".join(f"| {name} | {escaped(str(value))} |" for name, value in training.items())
    outcomes = "\n".join(f"- {escaped(sentence)}" for sentence in results)
    version = versions()["jaxevo"]
    return f"""---
library_name: jaxevo
pipeline_tag: image-classification
---
# An image classifier for {escaped(pathlib.PurePath(classifier.source.dataset).name)}

{_kind(classifier)}, with {size.parameters:,} parameters and {size.multiply_adds:,} multiply-adds
an image, made by jaxevo {version}.

- Classes ({len(names):,}): {listed}{more}.
- Input: {escaped(classifier.form.describe())}; any image is converted as the training images were.

## Results

{outcomes}

## Limits

- The network knows its classes only: it gives one of them to any image.
- Its probabilities were not calibrated. Images of another origin than the training images may be
  classified worse than the figures say.
- Nothing is known here of where the training images come from, nor of rights in them.

## Training

| setting | value |
|---|---|
{settings}

## Use

```python
import jaxevo

classifier = jaxevo.load("FOLDER")  # of this file, or a zip of it
classifier.predict(images)  # names of classes; images: uint8 [M, H, W, C]
```

`python -m jaxevo predict --weights=FOLDER IMAGE...` classifies image files.
"""


def _kind(classifier: Classifier) -> str:
    """The network in words."""
    if isinstance(classifier.model, Baseline):
        wide = classifier.model.width
        width = "" if wide == 1 else f", {wide:.3g} times as wide"
        return f"The hand-designed network {escaped(classifier.model.name)}{width}"
    normal, reduction = (cell.num_nodes for cell in classifier.model.cells)
    settings = network_settings(classifier.model, classifier.builder.network)
    full = settings.conv_kind == "full"
    network = "network of full convolutions, with" if full else "convolutional network of"
    return (
        f"A {network} two kinds of cells ({normal} nodes in the normal, {reduction} "
        "in the reduction cell)"
    )


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, in one line."""
    return re.sub(r"([\\`*_{}\[\]<>|~&$@])", r"\\\1", printable(" ".join(text.split())))
