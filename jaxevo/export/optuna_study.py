"""A run as a study of Optuna, for its dashboard and its pictures.

A candidate is a trial. Optuna's parameters are flat, so a genome is described by counts: the nodes
of each cell, how often each operation is in it, and, where they are genes, the width, the number of
cells and the kind of convolutions. The genome itself is a trial's attribute. JAX is not imported.
"""

from __future__ import annotations

import datetime
import json
import math
import pathlib
import sqlite3
import warnings
from collections import Counter
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from jaxevo.config import CONV_KINDS, LAYOUT_BOUNDS, MAX_NODES
from jaxevo.errors import InputError
from jaxevo.files import drafted
from jaxevo.run.reader import Run
from jaxevo.run.records import Candidate
from jaxevo.run.workdir import Workdir
from jaxevo.search_space.complexity import network_settings
from jaxevo.search_space.genome import CELL_KINDS, LAYOUT_FIELDS, OPS, Genome

_LONGEST = 1e5  # seconds of a trial: a history of a stranger may claim any
_OPERATIONS = IntDistribution(0, 2 * MAX_NODES)  # how often an operation can be in a cell


def save_study(run: Run, path: pathlib.Path) -> None:
    """Writes a study of a run that has candidates.

    A path that ends in `.db` or `.sqlite3` becomes an SQLite data base, any other one Optuna's
    journal, which is written forty times as fast. Histories have no times of day, so that trials
    lie one after another, the last one ending when the history was last written.

    Raises:
        InputError: A data base cannot be written.
        OSError: A journal cannot, or there can be no file.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with drafted(path) as draft:
        if path.suffix in (".db", ".sqlite3"):
            _save_database(run, draft, path)
        else:
            _fill(JournalStorage(JournalFileBackend(str(draft))), run)


def _save_database(run: Run, draft: pathlib.Path, path: pathlib.Path) -> None:
    """Makes an SQLite data base, which is to lie at `path`."""
    # A path within a URL would have to be without `?` and `%`.
    settings = {"creator": lambda: sqlite3.connect(draft, check_same_thread=False)}
    try:
        storage = optuna.storages.RDBStorage("sqlite://", engine_kwargs=settings)
        _fill(storage, run)
        storage.engine.dispose()
    except (SQLAlchemyError, StorageInternalError) as error:
        cause = error.__cause__ or error  # of Optuna's own words, which fit other faults
        reason = str(getattr(cause, "orig", None) or cause)
        raise InputError(
            f"{path} cannot be written ({reason}): make room, or name another place"
        ) from error


def _fill(storage: Any, run: Run) -> None:
    minimize = any(each.individual.cost is not None for each in run.candidates.values())
    # Of a path only the name: the file may go to others.
    data = pathlib.PurePath(run.config.data.dataset).name
    study = optuna.create_study(
        storage=storage,
        study_name=f"{data} {run.config.strategy} seed {run.config.seed}",
        directions=["maximize", "minimize"] if minimize else ["maximize"],
    )
    names = ["fitness", run.config.minimize] if minimize else ["fitness"]
    with warnings.catch_warnings(action="ignore", category=ExperimentalWarning):
        study.set_metric_names(names)
    study.set_user_attr("program", f"jaxevo {run.about['versions'].get('jaxevo', '')}".strip())
    study.add_trials(_trials(run, minimize))


def _trials(run: Run, minimize: bool) -> list[FrozenTrial]:
    # The times at which trials would have ended, had they followed each other.
    known = run.candidates.values()
    spent = [min(_LONGEST, math.fsum(each.seconds.values())) for each in known]
    end = datetime.datetime.fromtimestamp(Workdir(run.path).history.stat().st_mtime)
    begin = end - datetime.timedelta(seconds=math.fsum(spent))
    # A trial for each candidate.
    distributions = _distributions(run)
    trials = []
    for number, (candidate, seconds) in enumerate(zip(known, spent, strict=True)):
        finish = begin + datetime.timedelta(seconds=seconds)
        values = _values(candidate, minimize)
        params = description(candidate.individual.genome, run)
        trials.append(
            FrozenTrial(
                number=number,
                trial_id=number,
                state=TrialState.FAIL if values is None else TrialState.COMPLETE,
                value=None,
                values=values,
                datetime_start=begin,
                datetime_complete=finish,
                params={name: params[name] for name in distributions},
                distributions=distributions,
                user_attrs=_attributes(candidate),
                system_attrs={},
                intermediate_values={},
            )
        )
        begin = finish
    return trials


def _values(candidate: Candidate, minimize: bool) -> list[float] | None:
    """What the study has as objectives; None for a failed candidate."""
    if candidate.fitness is None:
        return None
    return [candidate.fitness, *([float(candidate.individual.cost or 0)] if minimize else [])]


def _attributes(candidate: Candidate) -> dict[str, Any]:
    """What a trial has beside its parameters and values."""
    individual = candidate.individual
    return {
        **{"id": candidate.id, "generation": individual.generation},
        **{"parents": list(individual.parents), "operators": list(individual.operators)},
        **{"accuracy": candidate.accuracy, "cross_entropy": candidate.cross_entropy},
        **{"parameters": candidate.parameters, "multiply_adds": candidate.multiply_adds},
        **{"reused": candidate.reused, "failure": candidate.failure},
        "genome": json.dumps(individual.genome.to_dict()),
    }


def description(genome: Genome, run: Run) -> dict[str, int | str]:
    """Counts that tell of a genome what a flat list of values can."""
    settings = network_settings(genome, run.config.network)
    counts: dict[str, int | str] = {name: getattr(settings, name) for name in LAYOUT_FIELDS}
    for kind, cell in zip(CELL_KINDS, genome.cells, strict=True):
        counts[f"{kind}_nodes"] = cell.num_nodes
        found = Counter(op for node in cell.nodes for op in node.ops)
        counts |= {f"{kind}_{op}": found[op] for op in OPS}
    return counts


def _distributions(run: Run) -> dict[str, BaseDistribution]:
    config = run.config
    ranges: dict[str, BaseDistribution] = {}
    for kind in CELL_KINDS:
        ranges[f"{kind}_nodes"] = IntDistribution(1, MAX_NODES)
        ranges |= {f"{kind}_{op}": _OPERATIONS for op in OPS}
    # Genes only where a search has them as such: else they are the same for all.
    layouts = [each.individual.genome.layout for each in run.candidates.values()]
    genes = [layout.genes() for layout in layouts if layout is not None]
    for name in LAYOUT_BOUNDS.values():
        if own := [each[name] for each in genes if name in each]:
            ranges[name] = IntDistribution(1, max(getattr(config.network, name), *own))
    if any("conv_kind" in each for each in genes):
        ranges["conv_kind"] = CategoricalDistribution(CONV_KINDS)
    return ranges
