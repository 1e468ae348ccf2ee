"""Prints the class of image files, or of all images in folders, by a trained network.

python -m jaxevo predict --weights=runs/digits-quick-seed0/best scan1.png scan2.png
python -m jaxevo predict --weights=runs/digits-quick-seed0/best --format=csv scans/
"""

from __future__ import annotations

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.errors import InputError
from jaxevo.predictions import FORMS, predict_lines

FLAGS = flags.FLAGS

flags.DEFINE(shared.PATH, "weights", None, "folder of a trained network, such as runs/.../best")
flags.DEFINE_enum("format", "text", list(FORMS), "how predictions are printed")
shared.define_compilation_cache_flag()


def start(arguments: list[str]) -> None:
    """Runs the command."""
    operands: list[str] = []

    def main(_: Console) -> None:
        """Flags and files in, one library call, lines out."""
        if not FLAGS.weights:
            raise InputError("give --weights=..., the folder of a trained network, and image files")
        if not operands:
            raise InputError("give the image files or folders to classify")
        command.start_jax()
        from jaxevo.training.classifier import Classifier

        for line in predict_lines(Classifier.load(FLAGS.weights), operands, FLAGS.format):
            print(line)

    command.run(main, __name__, "nothing was changed", arguments=arguments, operands=operands)
