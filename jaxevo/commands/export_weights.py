"""The part of `jaxevo export` that writes a trained network."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.console import say
from jaxevo.extras import need
from jaxevo.files import write_bytes

if TYPE_CHECKING:  # it brings JAX
    from jaxevo.training.classifier import Classifier

FLAGS = flags.FLAGS


def export_weights(console: Console, output: pathlib.Path) -> None:
    """Writes a trained network."""
    needed = {"zip": (), "stablehlo": ("flatbuffers",)}
    for package in needed.get(FLAGS.format, ("onnx", "onnxruntime")):
        need(package, "export")
    command.start_jax()
    from jaxevo.training import archive
    from jaxevo.training.classifier import Classifier

    classifier = Classifier.load(FLAGS.weights)
    if FLAGS.format == "zip":
        with archive.opened(pathlib.Path(FLAGS.weights)) as folder:
            archive.pack(folder, output)
        return
    if FLAGS.format == "stablehlo":
        from jaxevo.export.stablehlo import to_stablehlo

        write_bytes(output, to_stablehlo(classifier))
        return
    from jaxevo.export import browser, runtime

    # The model is compared with the network before anything is written.
    model = classifier.to_onnx()
    difference = runtime.verify(classifier, model)
    say(
        console,
        f"onnxruntime gives the network's probabilities; they differ by {difference:.1g} at most",
    )
    if FLAGS.quantize:
        model = _quantized(console, classifier, model)
    if FLAGS.format == "onnx":
        write_bytes(output, model)
        return
    browser.save_page(classifier, model, output)
    say(console, browser.remaining_steps(output))


def _quantized(console: Console, classifier: Classifier, model: bytes) -> bytes:
    """The model in 8 bits; its accuracy is told beside that of the one it was made of."""
    from jaxevo.datasets import ReadOptions, open_dataset
    from jaxevo.experiments.scored_images import load_tests, trained_on_note
    from jaxevo.export import quantized, runtime

    # Activations are measured on training images, accuracies on test images.
    dataset, form = FLAGS.dataset or classifier.source.dataset, classifier.form
    train, _ = open_dataset(dataset, FLAGS.data_dir).divided().train.read(form, ReadOptions())
    source, where = classifier.source, FLAGS.data_dir
    tests = load_tests(source, form, dataset, data_dir=where, trained_before=True)
    test = tests[form.resize]  # in the network's own form, as the training images are
    if note := trained_on_note(classifier, tests):
        say(console, note)
    small = quantized.quantize(model, quantized.calibration_images(train.images))
    for name, each in (("float32", model), ("int8", small)):
        right = runtime.accuracy(each, test.images)
        say(
            console,
            f"{name}: {len(each):,} bytes, test accuracy {right:.2%} ({len(test.images):,} images)",
        )
    if len(small) >= len(model):
        say(console, "a network as small as this gains nothing by 8 bits: leave --quantize out")
    return small
