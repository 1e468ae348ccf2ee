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

from jaxevo.config import (
    ENGINES,
    LAYOUT_BOUNDS,
    DataConfig,
    SearchConfig,
    WorkerConfig,
    leaf_fields,
    replace,
)
from jaxevo.config.changes import changed
from jaxevo.config.presets import (
    complete,
    final_settings,
    search_settings,
    strategy_settings,
)
from jaxevo.datasets import (
    NAMES,
    Images,
    SearchData,
    load_search_data,
    load_test_data,
    open_dataset,
)
from jaxevo.datasets.dataset import Dataset
from jaxevo.datasets.splits import training_subset
from jaxevo.errors import InputError
from jaxevo.files import home_expanded
from jaxevo.machine import default_preset
from jaxevo.run.explore import within_bounds
from jaxevo.run.fitted import fit_to_machine, read_options, recorded_choice, size_of
from jaxevo.run.lag import settle_lag
from jaxevo.run.reader import read_config
from jaxevo.run.search import Task
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files
from jaxevo.strategies.registry import initial_genomes, make_strategy
from jaxevo.training.engines import with_engine

# A data set's name, a folder of class folders, an .npz file, a pair of arrays (images, labels), a
# dict of x_train, y_train, x_test and y_test, or an open `Dataset`.
Data = Any
# Settings by which networks are other ones than those that a preset bounds.
_OF_NETWORKS = {
    *(*LAYOUT_BOUNDS, *LAYOUT_BOUNDS.values(), "conv_kind", "vary_conv_kind", "normal_repeats"),
    *("min_nodes", "max_nodes", "initial_genomes"),
}
ARRAYS = "arrays"  # their name in a configuration


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
    settings = dict(settings or {})
    if time_limit is not None and not time_limit >= 0:
        raise InputError(f"time_limit={time_limit} is not possible: give seconds, 0 or more")
    begun = SearchConfig()
    # Find the folder, whose default is named after data, preset and seed.
    dataset = begun.data.dataset if data is None else dataset_name(data)
    resolved = default_preset() if preset == "auto" else preset
    default = default_workdir(dataset, resolved, settings.get("seed", begun.seed))
    path = default if workdir is None else pathlib.Path(home_expanded(workdir))
    folder = Workdir(path)
    limits = (
        workers
        if isinstance(workers, WorkerConfig)
        else replace(WorkerConfig(), {"workers": workers})
    )
    settings = settle_lag(_with_genomes(settings, folder), folder, limits)
    # Make the configuration, anew or of that of the run, and open the data.
    fitted = None
    if continues:
        settings |= {} if data is None else {"dataset": dataset}
        config = _continued(folder, settings, preset=preset, strategy=strategy, recipe=recipe)
        if data is None and config.data.dataset == ARRAYS:
            raise InputError(
                f"the run in {path} was begun with arrays: give its images and labels again"
            )
        opened = open_dataset(config.data.dataset if data is None else data, data_dir).divided()
    else:
        folder.check_usable()  # before images are read and a lock is made
        preset = resolved
        opened = open_dataset(dataset if data is None else data, data_dir).divided()
        config = make_config(
            dataset,
            opened,
            preset=preset,
            strategy=strategy,
            recipe=recipe,
            settings=settings,
            workdir=folder,
        )
        if preset == "quick" and not folder.config.exists():
            fitted = fit_to_machine(config, opened, settings)
            config = replace(config, fitted.settings)
    task = load_task(
        config,
        opened,
        path,
        preset=preset,
        workers=limits,
        time_limit=time_limit,
        on_image=on_image,
    )
    if task.data.form is not None and not task.workdir.result.exists():
        options = dataclasses.replace(read_options(config.data), progress=on_image)
        opened.check_test(task.data.form, options)
    return dataclasses.replace(task, continues=continues, fitted=fitted)


def _continued(
    workdir: Workdir,
    settings: Mapping[str, Any],
    *,
    preset: str,
    strategy: str | None,
    recipe: str | None,
) -> SearchConfig:
    """The configuration of a run with changes. Raises `InputError` for one that is not possible."""
    now = read_config(workdir)
    begun = workdir.read_config().get("preset")
    if preset not in ("auto", begun):
        raise InputError(
            f"preset={preset} is not possible: the run in {workdir.path} began with preset "
            f"{begun}; leave --preset out"
        )
    named = strategy_settings(strategy) if strategy else {}
    named.pop("racing", None)  # it cannot change, so the run's own stays unless --racing is given
    named |= final_settings(recipe) if recipe else {}
    config = replace(now, named | dict(settings))
    # Refused before images are loaded; whether moved ones are the run's own is seen then.
    places = now.data.dataset, config.data.dataset
    moved = not {ARRAYS, *NAMES} & set(places)
    changed(now, replace(config, {"dataset": places[0]}) if moved else config)
    return config


def _with_genomes(settings: Mapping[str, Any], workdir: Workdir) -> dict[str, Any]:
    """The settings with the genomes to begin with in place of their names.

    A run that is there has its genomes itself: where their files are gone, the name is left out.
    Raises `InputError`.
    """
    named = settings.get("initial_genomes", "")
    others = {name: value for name, value in settings.items() if name != "initial_genomes"}
    if not named:
        return others
    names = named.split(",") if isinstance(named, str) else named
    try:
        return others | {"initial_genomes": genome_files.pack(names)}
    except InputError:
        stored = workdir.read_config()["config"] if workdir.config.exists() else {}
        if not stored.get("initial_genomes"):
            raise
        return others


def _as_begun(
    workdir: Workdir,
    config: SearchConfig,
    settings: Mapping[str, Any],
    *,
    strategy: str | None,
    recipe: str | None,
) -> SearchConfig:
    """The configuration as of the run in this folder where nothing is named.

    The engine, the genomes to begin with, what was chosen for the machine, and what the preset had
    in another version are the run's. Settings that its version did not have are as if they had not
    come.
    """
    document = workdir.read_config()
    stored = document["config"]
    begun = {name: value for name, value in complete(stored).items() if name not in stored}
    begun |= recorded_choice(document)
    changed_in_presets = {"num_normal_cells", "fitness", "epochs", "num_generations"}
    changed_in_presets |= {"conv_kind", "max_parameters"}
    changed_in_presets |= set() if "fitness" in settings else {"racing"}
    changed_in_presets |= set() if recipe else set(final_settings("paper"))
    changed_in_presets |= set() if strategy else {"strategy"}
    begun |= {name: value for name, value in stored.items() if name in changed_in_presets}
    begun["initial_genomes"] = stored.get("initial_genomes", "")
    if stored.get("engine") in ENGINES and settings.get("engine", "auto") == "auto":
        begun["engine"] = stored["engine"]
    named = {name: value for name, value in settings.items() if name != "engine"}
    return with_engine(replace(config, begun | named))


def make_config(
    dataset: str,
    data: Dataset,
    *,
    preset: str,
    strategy: str | None,
    recipe: str | None,
    settings: Mapping[str, Any],
    workdir: Workdir | None = None,
) -> SearchConfig:
    """The configuration of preset, recipe, strategy and settings; later ones go over earlier ones.

    The preset is for the training images of `data`; None for strategy or recipe takes the preset's.
    The engine `auto` is resolved. If `workdir` has a run already, the configuration is as of that
    run where nothing is named. Raises `InputError` for unknown names and impossible values.
    """
    num_images, named = len(data.train), dict.fromkeys(leaf_fields(DataConfig))
    of_data = {name: value for name, value in settings.items() if name in named}
    size = size_of(replace(SearchConfig(), of_data).data, data)
    side = min(size.height, size.width)
    begin = search_settings(preset, strategy, recipe, num_images=num_images, side=side)
    # Where something is named that excludes a race, a strategy's own margin does not count.
    if settings.get("fitness", "speed") != "speed" or settings.get("candidates_per_step", 1) != 1:
        begin["racing"] = 0.0
    # Where networks are to be other ones, the preset's bound on their size does not count.
    if _OF_NETWORKS & settings.keys():
        begin["max_parameters"] = 0
    config = with_engine(replace(SearchConfig(), begin | dict(settings) | {"dataset": dataset}))
    initial_genomes(config)
    if workdir is not None and workdir.config.exists():
        return _as_begun(workdir, config, settings, strategy=strategy, recipe=recipe)
    return config


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
    task = Task(
        config=config,
        workdir=Workdir(path),
        data=images,
        load_test=load_test,
        preset=preset,
        data_seconds=time.perf_counter() - begin,
        workers=workers or WorkerConfig(),
        time_limit=time_limit,
    )
    # Refused before there is a folder: too few images, or no genome within the bounds.
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
