"""A run as event files of TensorBoard, written without TensorFlow. JAX is not imported."""

from __future__ import annotations

import io
import pathlib
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from tensorboardX import SummaryWriter
from tensorboardX.record_writer import register_writer_factory

from jaxevo import config as configs
from jaxevo.files import drafted
from jaxevo.reports import cell_pictures, summary
from jaxevo.run.reader import Run

_SCHEME = "jaxevo-memory"  # of paths that are in memory
_SCORES = ("fitness", "accuracy", "cross_entropy", "loss", "parameters", "multiply_adds")


def save_events(run: Run, folder: pathlib.Path) -> None:
    """Writes a new folder of event files of a run that has candidates.

    A step of `candidate/` is the id of a candidate, of `generation/` a generation, of
    `final_training/` an epoch. The best cells are an image, and the settings with the result are
    the hyperparameters.

    Raises:
        OSError: The files cannot be written.
    """
    memory = _Memory()
    register_writer_factory(_SCHEME, memory)
    with SummaryWriter(f"{_SCHEME}:", write_to_disk=True) as writer:
        _write_candidates(writer, run)
        _write_generations(writer, run)
        _write_result(writer, run)
    with drafted(folder) as draft:
        for name, file in memory.files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
    memory.files.clear()  # tensorboardX keeps the memory itself


class _File:
    """An event file in memory."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes) -> None:
        self.content += data

    def flush(self) -> None:
        """Does nothing, like `close`: all is there at once."""

    close = flush


class _Memory:
    """Event files by their paths within the folder.

    They are written to the disk at the end: on a full one the thread in which tensorboardX writes
    ends, and the program waits for it for ever.
    """

    def __init__(self) -> None:
        self.files: dict[str, _File] = {}

    def open(self, path: str) -> _File:
        return self.files.setdefault(path.removeprefix(f"{_SCHEME}:").lstrip("/"), _File())

    def directory_check(self, path: str) -> None:
        """Does nothing: there are no folders in memory."""


def _write_candidates(writer: SummaryWriter, run: Run) -> None:
    best = -np.inf
    for known, candidate in sorted(run.candidates.items()):
        for name in _SCORES:
            value = getattr(candidate, name)
            if value is not None:
                writer.add_scalar(f"candidate/{name}", value, known)
        if candidate.fitness is not None:
            best = max(best, candidate.fitness)
            writer.add_scalar("candidate/best_fitness_so_far", best, known)


def _write_generations(writer: SummaryWriter, run: Run) -> None:
    for row in summary.generations(run):
        for name in ("best", "median", "nodes_normal", "nodes_reduction", "reused", "failed"):
            value = getattr(row, name)
            if value is not None:
                writer.add_scalar(f"generation/{name}", value, row.generation)


def _write_result(writer: SummaryWriter, run: Run) -> None:
    # The best cells so far, those of the winner once there is one.
    if run.best is not None:
        image = _pixels(cell_pictures.draw_cells(run.best.genome, summary.name_of(run, run.best)))
        writer.add_image("cells", image, run.best.id, dataformats="HWC")
    # The settings, and what came out.
    settings = {name: _plain(value) for name, value in configs.flatten(run.config).items()}
    metrics: dict[str, Any] = {}
    if run.best is not None:
        metrics["result/fitness"] = run.best.fitness
    if run.result is not None:
        metrics["result/validation_accuracy"] = run.result.validation_accuracy
        metrics["result/test_accuracy"] = run.result.test_accuracy
        metrics["result/parameters"] = run.result.parameters
        for epoch, loss in enumerate(run.result.final_losses, 1):
            writer.add_scalar("final_training/loss", loss, epoch)
        for epoch, accuracy in enumerate(run.result.final_accuracies, 1):
            writer.add_scalar("final_training/validation_accuracy", accuracy, epoch)
    known = {name: value for name, value in metrics.items() if value is not None}
    writer.add_hparams(settings, known, name="hyperparameters")


def _plain(value: Any) -> bool | int | float | str:
    return value if isinstance(value, bool | int | float) else str(value)


def _pixels(figure: Figure) -> np.ndarray:
    """The picture as uint8 `[H, W, 3]`."""
    picture = io.BytesIO(cell_pictures.rendered(figure, "png", dpi=100))
    return np.asarray(Image.open(picture).convert("RGB"))
