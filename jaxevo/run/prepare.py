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

from jaxevo.config import ENGINES, SearchConfig, WorkerConfig, replace
from jaxevo.config.presets import search_settings
from jaxevo.datasets import (
    Images,
    ReadOptions,
    SearchData,
    load_search_data,
    load_test_data,
    open_dataset,
)
from jaxevo.files import home_expanded
from jaxevo.machine import default_preset
from jaxevo.run.fitted import Fitted, fit_to_machine
from jaxevo.run.search import Task
from jaxevo.run.workdir import Workdir
from jaxevo.training.engines import with_engine

# A data set's name, a folder of class folders, an .npz file, a pair of arrays (images, labels), a
# dict of x_train, y_train, x_test and y_test, or an open `Dataset`.
Data = Any


def make_task(
    data: Data,
    *,
    preset: str = "auto",
    strategy: str = "rea",
    recipe: str = "paper",
    workdir: str | os.PathLike[str] | None = None,
    data_dir: str | None = None,
    workers: int | WorkerConfig = 0,
    time_limit: float | None = None,
    settings: Mapping[str, Any] | None = None,
    on_image: Callable[[int, int], None] = lambda done, total: None,
) -> Task:
    """The task of `search`: settings resolved and checked, images loaded. Raises `InputError`.

    Unless an engine is named, a run goes on with the engine that it began with. `on_image` is told
    how many image files were read, of how many.
    """
    preset = default_preset() if preset == "auto" else preset
    opened = open_dataset(data, data_dir).divided()
    config = make_config(
        dataset_name(data),
        len(opened.train),
        preset=preset,
        strategy=strategy,
        recipe=recipe,
        settings=settings or {},
    )
    # A run that goes on keeps the engine that it began with.
    default = default_workdir(config, preset)
    path = default if workdir is None else pathlib.Path(home_expanded(workdir))
    if (settings or {}).get("engine", "auto") == "auto":
        config = _with_engine_of(Workdir(path), config)
    fitted = Fitted(config)
    if preset == "quick":
        fitted = fit_to_machine(config, opened, Workdir(path), given=settings or {})
    limits = (
        workers
        if isinstance(workers, WorkerConfig)
        else replace(WorkerConfig(), {"workers": workers})
    )
    task = load_task(
        fitted.config,
        opened,
        path,
        preset=preset,
        workers=limits,
        time_limit=time_limit,
        on_image=on_image,
    )
    return dataclasses.replace(task, fitted=fitted)


def _with_engine_of(workdir: Workdir, config: SearchConfig) -> SearchConfig:
    """The configuration with the engine of the run in this folder, if there is one."""
    if not workdir.config.exists():
        return config
    engine = workdir.read_config()["config"].get("engine")
    return with_engine(replace(config, {"engine": engine})) if engine in ENGINES else config


def make_config(
    dataset: str,
    num_images: int,
    *,
    preset: str,
    strategy: str,
    recipe: str,
    settings: Mapping[str, Any],
) -> SearchConfig:
    """The configuration of preset, recipe, strategy and settings; later ones go over earlier ones.

    The preset is for a training split of `num_images`. The engine `auto` is resolved. Raises
    `InputError` for unknown names and impossible values.
    """
    begin = search_settings(preset, strategy, recipe, num_images=num_images)
    return with_engine(replace(SearchConfig(), begin | dict(settings) | {"dataset": dataset}))


def load_task(
    config: SearchConfig,
    data: Data,
    path: pathlib.Path,
    *,
    preset: str = "none",
    data_dir: str | None = None,
    workers: WorkerConfig | None = None,
    time_limit: float | None = None,
    on_image: Callable[[int, int], None] = lambda done, total: None,
) -> Task:
    """A search of this configuration in a folder, with its images. Raises `InputError`."""
    begin = time.perf_counter()
    images, load_test = load_images(config, data, data_dir, on_image=on_image)
    return Task(
        config=config,
        workdir=Workdir(path),
        data=images,
        load_test=load_test,
        preset=preset,
        data_seconds=time.perf_counter() - begin,
        workers=workers or WorkerConfig(),
        time_limit=time_limit,
    )


def load_images(
    config: SearchConfig,
    data: Data,
    data_dir: str | None = None,
    *,
    on_image: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[SearchData, Callable[[], Images] | None]:
    """The images to search on, and how to come by those for the test, if there are any."""
    settings = config.data
    options = ReadOptions.of(settings.pixel_range, settings.background, settings.skip_unreadable)
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
    return os.fspath(data) if isinstance(data, str | os.PathLike) else "arrays"


def default_workdir(config: SearchConfig, preset: str) -> pathlib.Path:
    """The folder of a run for which none is named."""
    name = run_name(config.data.dataset)
    return pathlib.Path("runs") / f"{name}-{preset}-seed{config.seed}"


def run_name(dataset: str) -> str:
    """Name of the data set in that of a run's folder, without characters unfit for a path."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", pathlib.Path(dataset).name)
