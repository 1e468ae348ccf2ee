"""Writes a run or a trained network in the form of another program.

# All candidates of a run as a table:
python -m jaxevo export --run=runs/digits-quick-seed0 --format=csv --output=candidates.csv
# The trained network for onnxruntime, and as a page to draw on:
python -m jaxevo export --weights=runs/digits-quick-seed0/best --format=onnx --output=digits.onnx
python -m jaxevo export --weights=runs/digits-quick-seed0/best --format=browser --output=page
"""

from __future__ import annotations

import pathlib

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.commands.command import say
from jaxevo.commands.export_weights import export_weights
from jaxevo.errors import InputError

FLAGS = flags.FLAGS
# The formats of each source.
FORMATS = {"run": ("csv", "parquet"), "weights": ("onnx", "stablehlo", "browser")}

flags.DEFINE(shared.PATH, "run", None, "folder of a run, such as runs/digits-quick-seed0")
flags.DEFINE(shared.PATH, "weights", None, "folder of a trained network, such as runs/.../best")
flags.DEFINE_enum(
    "format", None, [name for names in FORMATS.values() for name in names], "what is written"
)
flags.DEFINE(shared.PATH, "output", None, "new file to write, for a page a new folder")
flags.DEFINE_enum("quantize", None, ["int8"], "for onnx and browser: convolutions in 8 bits")
flags.DEFINE(
    shared.PATH, "dataset", None, "images to quantize by and to test on (default: the weights')"
)
shared.define_machine_flags()


def export_run(format: str, output: pathlib.Path) -> None:
    """Writes the candidates of a run."""
    from jaxevo.export import tables
    from jaxevo.run.reader import load_run
    from jaxevo.run.workdir import Workdir

    run = load_run(Workdir(pathlib.Path(FLAGS.run)))
    if not run.candidates:
        raise InputError(f"{FLAGS.run} has no candidate yet; let the search go on first")
    {"csv": tables.save_csv, "parquet": tables.save_parquet}[format](run, output)


def check_flags() -> None:
    """Refuses impossible flags before anything is computed."""
    given = [source for source in FORMATS if FLAGS[source].value]
    if len(given) != 1:
        listed = " and ".join(f"--{source}=..." for source in FORMATS)
        raise InputError(f"give one of {listed}" if len(FORMATS) > 1 else f"give {listed}")
    formats = FORMATS[given[0]]
    if FLAGS.format not in formats:
        raise InputError(f"with --{given[0]} give --format={'|'.join(formats)}")
    if not FLAGS.output:
        raise InputError("give --output=..., the name of a new file")
    if FLAGS.quantize and FLAGS.format not in ("onnx", "browser"):
        raise InputError("--quantize is for --format=onnx and --format=browser")
    if FLAGS.dataset and not FLAGS.quantize:
        raise InputError("--dataset is for --quantize")
    output = pathlib.Path(FLAGS.output)
    if output.exists() or output.is_symlink():
        raise InputError(f"--output={output} exists already; give the name of a new file")
    if not output.absolute().parent.is_dir():
        raise InputError(f"--output={output}: its folder does not exist; create it first")


def main(console: Console) -> None:
    """Flags in, one library call, words out."""
    check_flags()
    if FLAGS.run:
        export_run(FLAGS.format, pathlib.Path(FLAGS.output))
    else:
        export_weights(console, pathlib.Path(FLAGS.output))
    say(console, f"wrote {FLAGS.output}")


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, "nothing was changed", arguments=arguments)
