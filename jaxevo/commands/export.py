"""Writes a network, a run or a genome in the form of another program.

# A trained network as one zip file, which predict, eval and jaxevo.load read:
python -m jaxevo export --weights=runs/digits-quick-seed0/best --format=zip --output=digits.zip
# All candidates of a run as a table:
python -m jaxevo export --run=runs/digits-quick-seed0 --format=csv --output=candidates.csv
# The trained network for onnxruntime, and as a page to draw on:
python -m jaxevo export --weights=runs/digits-quick-seed0/best --format=onnx --output=digits.onnx
python -m jaxevo export --weights=runs/digits-quick-seed0/best --format=browser --output=page
# As a study that optuna-dashboard shows, or as TensorBoard's event files:
python -m jaxevo export --run=runs/digits-quick-seed0 --format=optuna --output=study.log
python -m jaxevo export --run=runs/digits-quick-seed0 --format=tensorboard --output=events
# A genome in the notation of DARTS:
python -m jaxevo export --genome=evoA.json --format=darts --output=evoA.txt
"""

from __future__ import annotations

import pathlib

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.commands import flags as shared
from jaxevo.commands.export_weights import export_weights
from jaxevo.console import say
from jaxevo.errors import InputError
from jaxevo.extras import need
from jaxevo.files import check_file_place, check_place, write_text
from jaxevo.search_space import darts_text, genome_files

FLAGS = flags.FLAGS
# The formats of each source.
FORMATS = {
    "weights": ("onnx", "stablehlo", "browser", "zip"),
    "run": ("csv", "parquet", "optuna", "tensorboard"),
    "genome": ("darts",),
}
FOLDERS = ("browser", "tensorboard")  # formats that are folders

flags.DEFINE(
    shared.PATH, "weights", None, "folder or zip file of a trained network, such as runs/.../best"
)
flags.DEFINE(shared.PATH, "run", None, "folder of a run, such as runs/digits-quick-seed0")
flags.DEFINE(shared.PATH, "genome", None, "a genome file, or a shipped genome such as evoA.json")
flags.DEFINE_enum(
    "format", None, [name for names in FORMATS.values() for name in names], "what is written"
)
flags.DEFINE(
    shared.PATH,
    "output",
    None,
    "new file to write; with browser and tensorboard a new folder. With optuna a name that ends in "
    ".db or .sqlite3 makes an SQLite data base, any other a journal",
)
flags.DEFINE_enum("quantize", None, ["int8"], "for onnx and browser: convolutions in 8 bits")
flags.DEFINE(
    shared.PATH, "dataset", None, "images to quantize by and to test on (default: the weights')"
)
shared.define_machine_flags()


def export_run(output: pathlib.Path) -> None:
    """Writes the candidates of a run."""
    from jaxevo.export import tables
    from jaxevo.run.reader import load_run
    from jaxevo.run.workdir import Workdir

    run = load_run(Workdir(pathlib.Path(FLAGS.run)))
    if not run.candidates:
        raise InputError(f"{FLAGS.run} has no candidate yet; let the search go on first")
    match FLAGS.format:
        case "csv":
            tables.save_csv(run, output)
        case "parquet":
            tables.save_parquet(run, output)
        case "optuna":
            need("optuna", "export")
            from jaxevo.export.optuna_study import save_study

            save_study(run, output)
        case "tensorboard":
            need("tensorboardX", "export")
            from jaxevo.export.tensorboard import save_events

            save_events(run, output)


def export_genome(output: pathlib.Path) -> None:
    """Writes a genome."""
    genome = genome_files.find(FLAGS.genome)[0]
    try:
        write_text(output, darts_text.dumps(genome))
    except ValueError as error:
        raise InputError(f"--genome={FLAGS.genome}: {error}; take its layout out") from None


def check_flags() -> str:
    """Refuses impossible flags before anything is computed; returns the source."""
    given = [source for source in FORMATS if FLAGS[source].value]
    if len(given) != 1:
        raise InputError(f"give one of {', '.join(f'--{source}=...' for source in FORMATS)}")
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
    check = check_place if FLAGS.format in FOLDERS else check_file_place
    check("--output", FLAGS.output)
    return given[0]


def main(console: Console) -> None:
    """Flags in, one library call, words out."""
    source = check_flags()
    output = pathlib.Path(FLAGS.output)
    if source == "weights":
        export_weights(console, output)
    else:
        {"run": export_run, "genome": export_genome}[source](output)
    say(console, f"wrote {FLAGS.output}")


def start(arguments: list[str]) -> None:
    """Runs the command."""
    command.run(main, __name__, "nothing was changed", arguments=arguments)
