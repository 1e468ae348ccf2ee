"""The task of a search, made of data and settings as a person gives them."""

from __future__ import annotations

import dataclasses
import functools
import os
import pathlib
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from jaxevo.config import SearchConfig, WorkerConfig, replace
from jaxevo.datasets import Images, SearchData, load_search_data, load_test_data, open_dataset
from jaxevo.datasets.arrays import NAME as ARRAYS
from jaxevo.datasets.dataset import Dataset
from jaxevo.datasets.splits import training_subset
from jaxevo.errors import InputError
from jaxevo.files import home_expanded
from jaxevo.machine import default_preset
from jaxevo.run.configuration import continued_config, make_config, with_genomes
from jaxevo.run.drawn import within_bounds
from jaxevo.run.lag import settle_lag
from jaxevo.run.quick_preset import fit_to_machine, read_options
from jaxevo.run.search import Task
from jaxevo.run.workdir import Workdir
from jaxevo.strategies.registry import make_strategy

# A data set's name, a folder of class folders, an .npz file, a pair of arrays (images, labels), a
# dict of x_train, y_train, x_test and y_test, or an open `Dataset`.
Data = Any


def make_task(
    data: Data,
    *,
    preset: str = "auto",
    strategy: str | None = None,
    recipe: str | None = None,
    workdir: str | os.PathLike[str] | None = None,
    data_dir: str | None = None,
    workers: int | WorkerConfig = 0,
    time_limit: float | None = None,
    continues: bool = False,
    settings: Mapping[str, Any] | None = None,
    on_image: Callable[[int, int], None] = lambda done, total: None,
) -> Task:
    """The task of `search`: settings resolved and checked, images loaded. Raises `InputError`.

    Unless an engine is named, a run goes on with the engine that it began with. Where a run is
    continued (`continues`), everything that is not named stays as it was. Data of None are those of
    that run, else digits. `on_image` is told how many image files were read, of how many.
    """
    if time_limit is not None and not time_limit >= 0:
        raise InputError(f"time_limit={time_limit} is not possible: give seconds, 0 or more")
    pool = workers
    if not isinstance(pool, WorkerConfig):
        pool = replace(WorkerConfig(), {"workers": workers})
    settings = dict(settings or {})
    # Find the folder, whose default is named after data, preset and seed.
    dataset = SearchConfig().data.dataset if data is None else dataset_name(data)
    resolved = default_preset() if preset == "auto" else preset
    if workdir is None:
        path = default_workdir(dataset, resolved, settings.get("seed", SearchConfig().seed))
    else:
        path = pathlib.Path(home_expanded(workdir))
    # Make the configuration, a new one or that of the run with changes, and open the data.
    settings = settle_lag(with_genomes(settings, Workdir(path)), Workdir(path), pool)
    named: dict[str, Any] = {"strategy": strategy, "recipe": recipe}
    fitted = None
    if continues:
        settings |= {} if data is None else {"dataset": dataset}
        config = continued_config(Workdir(path), settings, preset=preset, **named)
        opened = _opened_again(data, config, path, data_dir=data_dir)
    else:
        Workdir(path).check_usable()  # before images are read and a lock is made
        preset = resolved
        opened = open_dataset(dataset if data is None else data, data_dir).divided()
        named |= {"preset": preset, "settings": settings, "workdir": Workdir(path)}
        config = make_config(dataset, opened, **named)
        if preset == "quick" and not Workdir(path).config.exists():
            fitted = fit_to_machine(config, opened, settings)
            config = replace(config, fitted.settings)
    # Read the images.
    task = load_task(
        config,
        opened,
        path,
        preset=preset,
        workers=pool,
        time_limit=time_limit,
        on_image=on_image,
    )
    # A person's own test images are read, of which a digest is kept: a damaged one would else end
    # the run after hours, and others might stand in their place by then.
    test_digest = ""
    if task.data.form is not None:
        options = dataclasses.replace(read_options(config.data), progress=on_image)
        test_digest = opened.check_test(task.data.form, options)
    return dataclasses.replace(task, continues=continues, fitted=fitted, test_digest=test_digest)


def _opened_again(
    data: Data, config: SearchConfig, path: pathlib.Path, *, data_dir: str | None
) -> Dataset:
    """The data of a run that is continued, by default those in its configuration.

    Raises `InputError` where these were arrays.
    """
    if data is None and config.data.dataset == ARRAYS:
        raise InputError(
            f"the run in {path} was begun with arrays: give its images and labels again"
        )
    return open_dataset(config.data.dataset if data is None else data, data_dir).divided()


def load_task(
    config: SearchConfig,
    data: Data,
    path: pathlib.Path,
    *,
    preset: str = "none",
    data_dir: str | None = None,
    workers: WorkerConfig | None = None,
    time_limit: float | None = None,
    part: bool = False,
    on_image: Callable[[int, int], None] = lambda done, total: None,
) -> Task:
    """A search of this configuration in a folder, with its images. Raises `InputError`."""
    begin = time.perf_counter()
    images, load_test = load_images(config, data, data_dir, on_image=on_image)
    task = Task(
        config=config,
        workdir=Workdir(path),
        data=images,
        load_test=load_test,
        preset=preset,
        data_seconds=time.perf_counter() - begin,
        workers=workers or WorkerConfig(),
        time_limit=time_limit,
        part=part,
    )
    # Only checks, before there is a folder: enough images, and a genome within the bounds.
    training_subset(images.train.labels, config.data.train_examples, config.seed)
    if fits := within_bounds(config, task.builder.complexity):
        make_strategy(config, fits).ask()
    return task


def load_images(
    config: SearchConfig,
    data: Data,
    data_dir: str | None = None,
    *,
    on_image: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[SearchData, Callable[[], Images] | None]:
    """The images to search on, and how to come by those for the test, if there are any."""
    settings, options = config.data, read_options(config.data)
    images = load_search_data(
        data,
        data_dir,
        validation_fraction=settings.validation_fraction,
        image_size=settings.image_size,
        resize=settings.resize,
        seed=config.seed,
        options=dataclasses.replace(options, progress=on_image),
    )
    if images.summary is not None and not images.summary.num_test:
        return images, None
    load_test = functools.partial(load_test_data, data, data_dir, form=images.form, options=options)
    return images, load_test


def dataset_name(data: Data) -> str:
    """Name of the data in a configuration."""
    return os.fspath(data) if isinstance(data, str | os.PathLike) else ARRAYS


def default_workdir(dataset: str, preset: str, seed: int) -> pathlib.Path:
    """The folder of a run for which none is named."""
    return pathlib.Path("runs") / f"{run_name(dataset)}-{preset}-seed{seed}"


def run_name(dataset: str) -> str:
    """Name of the data set in that of a run's folder, without characters unfit for a path."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", pathlib.Path(dataset).name)
