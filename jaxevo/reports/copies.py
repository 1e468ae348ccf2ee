"""Genome files and weights taken out of a run, for a person's own use."""

from __future__ import annotations

import os
import pathlib

from jaxevo.errors import InputError
from jaxevo.files import copy_folder, write_text
from jaxevo.run.reader import Run
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.genome_files import dumps
from jaxevo.strategies.individual import Individual


def write_genome(run: Run, shown: Individual | None, path: pathlib.Path) -> None:
    """Writes an individual's genome file, that of the winner as the search does at its end.

    Raises `InputError` where there is a file, or no individual, and `OSError`.
    """
    if shown is None:
        raise InputError(
            f"{run.path} has no individual with a fitness yet, so there is nothing to export"
        )
    metadata = run.candidates[shown.id].metadata(run.config.data.dataset, run.config.seed)
    if run.result and run.result.id == shown.id:
        metadata |= {"retrained_fitness": run.result.retrained_fitness}
        if run.result.test_accuracy is not None:
            metadata |= {"test_accuracy": run.result.test_accuracy}
    if os.path.lexists(path):
        raise InputError(f"{path} exists already; give the genome file another name")
    write_text(path, dumps(shown.genome, metadata))


def copy_weights(run: Run, known: int | None, path: pathlib.Path) -> None:
    """Copies the trained network of an individual, by default of the winner, to a new folder.

    Raises `InputError` if the network is not kept, or where there is something, and `OSError`.
    """
    result = run.result
    kept = [] if result is None else [result.id, *(each.id for each in result.kept)]
    wanted = known if known is not None or result is None else result.id
    if wanted not in kept:
        of = "" if wanted is None else f" of individual {wanted}"
        listed = f"those of {', '.join(map(str, kept))} are" if kept else "the run is incomplete"
        raise InputError(
            f"{run.path} has no trained weights{of}: {listed}; "
            "jaxevo search --continue --keep=... keeps more"
        )
    workdir = Workdir(run.path)
    source = workdir.best_weights if wanted == kept[0] else workdir.weights(wanted)
    if os.path.lexists(path):
        raise InputError(f"{path} exists already; give the folder of weights another name")
    workdir.check_inside()
    copy_folder(source, path)
