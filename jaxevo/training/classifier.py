"""Trained networks: saved in a folder, read back, and used.

The folder has all that is needed to use a network again.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxevo.config import NetworkConfig
from jaxevo.datasets import Images, InputForm
from jaxevo.datasets.class_names import map_classes
from jaxevo.errors import InputError
from jaxevo.files import home_expanded, write_bytes
from jaxevo.networks.baselines import Architecture, describe, from_description
from jaxevo.networks.builder import NetworkBuilder, set_weights, split
from jaxevo.search_space.complexity import network_settings
from jaxevo.search_space.genome import Genome
from jaxevo.training import archive
from jaxevo.training.checkpoints import (
    CheckpointError,
    flatten,
    load_weights,
    save_weights,
    unflatten,
)
from jaxevo.training.inputs import check_images, class_numbers
from jaxevo.training.onnx_model import onnx_model
from jaxevo.training.prediction import Predictor
from jaxevo.training.source import Source
from jaxevo.training.trainer import Trainer

_BATCH_SIZE = 64  # of scoring
# Sizes are products of settings, which take long for numbers of many digits.
_MAX_SETTING = 10**12


@dataclasses.dataclass(frozen=True)
class Classifier:
    """A trained network with the model, the images' form and the classes it was made for.

    `trainer` is a compiled program of its architecture.
    """

    model: Architecture
    builder: NetworkBuilder
    source: Source
    network: Any  # a `Network`, or a baseline's module
    trainer: Trainer

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.builder.image_shape))
        parameters = self.builder.complexity(self.model).parameters
        return f"<Classifier: {len(self.class_names)} classes, {size}, {parameters:,} parameters>"

    @classmethod
    def of(
        cls, model: Architecture, builder: NetworkBuilder, source: Source, *, network: Any
    ) -> Classifier:
        """A classifier of the trained network, with a program of its own."""
        return cls(model, builder, source, network, Trainer(split(network).graphdef, _BATCH_SIZE))

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Classifier:
        """Reads a folder that `save` has written, or a zip file of one.

        Raises `CheckpointError` if the folder is damaged or holds another architecture.
        """
        with archive.opened(pathlib.Path(folder)) as unpacked:
            document, weights = load_weights(unpacked)
        try:
            # The model, the shape of its images, and the data it was trained on.
            model = from_description(document)
            height, width, channels = (int(side) for side in document["image_shape"])
            if min(height, width, channels) < 1:
                raise ValueError(f"image_shape is {document['image_shape']}")
            source = Source.from_json(document, (height, width, channels))
            if any(
                isinstance(value, int) and abs(value) > _MAX_SETTING
                for value in document["network"].values()
            ):
                raise ValueError(f"a setting is larger than {_MAX_SETTING}")
            builder = NetworkBuilder(
                NetworkConfig(**document["network"]),
                (height, width, channels),
                len(source.class_names),
            )
            # Before anything of that size is allocated: a document may claim any.
            parameters = builder.complexity(model).parameters
            if parameters > sum(array.size for array in weights.values()):
                raise ValueError(f"it needs {parameters} parameters, more than were saved")
            # Building takes time for every cell.
            if isinstance(model, Genome):
                settings = network_settings(model, builder.network)
                if len(settings.stack()) > len(weights):
                    raise ValueError("it needs more cells than were saved")
            network = load_network(builder, model, weights)
        except CheckpointError:
            raise
        except (
            AttributeError,
            KeyError,
            OverflowError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            reason = f"{type(error).__name__}: {error}"
            raise CheckpointError(
                f"{folder} does not describe its network ({reason}); train again"
            ) from None
        return cls.of(model, builder, source, network=network)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the weights with the model, the shape of the images, and the data trained on.

        They take the place of weights that the folder may hold; a folder of anything else is
        refused.

        Raises:
            CheckpointError: The folder holds something else.
            OSError: It cannot be written.
        """
        document = {
            **describe(self.model),
            "network": dataclasses.asdict(self.builder.network),
            "image_shape": list(self.builder.image_shape),
            **self.source.to_json(),
        }
        path = pathlib.Path(home_expanded(folder))
        save_weights(path, document, flatten(split(self.network)[1:]))

    def to_onnx(self) -> bytes:
        """The network as an ONNX model.

        It takes `images`, uint8 `[N, H, W, C]` as `predict_inputs` does, and gives
        `probabilities`, float32 `[N, classes]`. See `onnx_model` for what it tells of itself.

        Raises:
            InputError: The package `onnx` is not installed.
        """
        metadata = {
            **describe(self.model),
            "network": dataclasses.asdict(self.builder.network),
            "class_names": list(self.class_names),
            "input_form": self.form.to_json(),
            # Of a path only the name: the file may go to others.
            "dataset": pathlib.PurePath(self.source.dataset).name,
            "content": self.source.content.digest,
        }
        return onnx_model(self.network, self.image_shape, metadata)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes `to_onnx` to a file. Raises `OSError` too."""
        write_bytes(pathlib.Path(home_expanded(path)), self.to_onnx())

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, in the order of the network's outputs."""
        return self.source.class_names

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Height, width and channels of the images that the network takes."""
        return self.builder.image_shape

    @property
    def form(self) -> InputForm:
        """The form in which any image becomes an input of the network."""
        return self.source.form or InputForm.assumed(self.image_shape, self.source.resize)

    @functools.cached_property
    def _predictor(self) -> Predictor:
        return Predictor(self.network, len(self.class_names))

    def predict_proba(self, images: ArrayLike) -> np.ndarray:
        """The probability of each class for any number of images.

        Args:
            images: uint8 from 0 to 255, `[M, H, W, C]`; see `inputs.check_images` for what else.

        Returns:
            float32 `[M, classes]` in the order of `class_names`; the first call compiles.

        Raises:
            InputError: The images have another size or scale than the network takes.
        """
        return self.predict_inputs(check_images(images, self.image_shape, self.source.form))

    def predict_inputs(self, inputs: np.ndarray) -> np.ndarray:
        """`predict_proba` of inputs that `form` made, uint8 `[M, *image_shape]`."""
        return self._predictor(inputs)

    def predict(self, images: ArrayLike) -> np.ndarray:
        """Names `[M]` of the most likely classes; arguments and errors as of `predict_proba`."""
        return np.array(self.class_names)[self.predict_proba(images).argmax(-1)]

    def accuracy(self, images: Images | ArrayLike, labels: ArrayLike | None = None) -> float:
        """The part of the images that is classified rightly, from 0 to 1.

        Args:
            images: `Images`, or pixels as `predict_proba` takes them.
            labels: Only beside pixels: names of classes or numbers `[M]`, see
                `inputs.class_numbers`.

        Raises:
            InputError: The images do not fit the network, or the labels not the images.
        """
        # Pixels and class numbers, of either kind of images.
        if isinstance(images, Images):
            pixels = check_images(images.images, self.image_shape)
            own = self.source.form
            if images.form is not None and own is not None and images.form != own:
                raise InputError(
                    f"the images became {images.form.describe()}, and those of the training "
                    f"{own.describe()}: load them with form=classifier.form"
                )
            numbers = images.labels
            if images.class_names not in ((), self.class_names):
                numbers = map_classes(images.class_names, self.class_names, "images")[numbers]
        else:
            pixels = check_images(images, self.image_shape, self.source.form)
            numbers = class_numbers([] if labels is None else labels, self.class_names)
        if len(numbers) != len(pixels) or len(pixels) == 0:
            raise InputError(
                f"{len(pixels)} images and {len(numbers)} labels: give one label an image"
            )
        return self.trainer.measure(split(self.network)[1:], (), Images(pixels, numbers)).accuracy

    def predict_numbers(self, inputs: np.ndarray) -> np.ndarray:
        """Positions in `class_names` of the most likely classes, int32 `[M]`.

        Args:
            inputs: uint8 `[M, *image_shape]`, as `form` makes them.
        """
        return self.trainer.predict(split(self.network)[1:], (), inputs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Serves pickle and copies: compiled programs stay behind and are made anew."""
        weights = flatten(split(self.network)[1:])
        return _restore, (self.model, self.builder, self.source, weights)


def load_network(
    builder: NetworkBuilder, model: Architecture, weights: Mapping[str, np.ndarray]
) -> Any:
    """The model's network with saved weights.

    Raises `CheckpointError` if the weights belong to another model.
    """
    network = builder.build(model)
    _, params, stats = split(network)
    set_weights(network, unflatten((params, stats), weights))
    return network


def _restore(
    model: Architecture, builder: NetworkBuilder, source: Source, weights: dict[str, np.ndarray]
) -> Classifier:
    return Classifier.of(model, builder, source, network=load_network(builder, model, weights))
