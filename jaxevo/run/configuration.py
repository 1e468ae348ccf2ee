"""The configuration of a search, of settings as a person gives them.

It is made anew, as that of the run that is in the folder already, or as that of a run that is to go
on with changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxevo.config import ENGINES, LAYOUT_BOUNDS, DataConfig, SearchConfig, leaf_fields, replace
from jaxevo.config.changes import changed
from jaxevo.config.presets import complete, final_settings, search_settings, strategy_settings
from jaxevo.datasets import NAMES
from jaxevo.datasets.arrays import NAME as ARRAYS
from jaxevo.datasets.dataset import Dataset
from jaxevo.errors import InputError
from jaxevo.run.quick_preset import recorded_choice, size_of
from jaxevo.run.reader import read_config
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import genome_files
from jaxevo.strategies.registry import initial_genomes
from jaxevo.training.engine_choice import with_engine

# Settings by which networks are other ones than those that a preset bounds.
_OF_NETWORKS = {
    *(*LAYOUT_BOUNDS, *LAYOUT_BOUNDS.values(), "conv_kind", "vary_conv_kind", "normal_repeats"),
    *("min_nodes", "max_nodes", "initial_genomes"),
}


def continued_config(
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


def with_genomes(settings: Mapping[str, Any], workdir: Workdir) -> dict[str, Any]:
    """The settings with the genomes to begin with in place of their names.

    A run that is there has its genomes itself: where their files are gone, the name is left out.
    Raises `InputError`.
    """
    named = settings.get("initial_genomes", "")
    others = {name: value for name, value in settings.items() if name != "initial_genomes"}
    if not named:
        return others
    try:
        return others | {"initial_genomes": genome_files.pack(genome_files.listed(named))}
    except InputError:
        stored = workdir.read_config()["config"] if workdir.config.exists() else {}
        if not stored.get("initial_genomes"):
            raise
        return others


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
