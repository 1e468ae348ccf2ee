"""Flags that commands share, most of them made from the fields of configurations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from jaxevo.config import DataConfig, SearchConfig, WorkerConfig, flatten, leaf_fields, replace
from jaxevo.config.fields import setting
from jaxevo.config.presets import (
    FINAL_RECIPES,
    PRESETS,
    RECIPES,
    STRATEGIES,
    search_settings,
)
from jaxevo.errors import InputError
from jaxevo.files import home_expanded

if TYPE_CHECKING:  # imported late, as it brings libraries
    from jaxevo.datasets import ReadOptions

FLAGS = flags.FLAGS
# Settings of workers that fit any job; the other ones are limits of a candidate.
_POOL = {
    name: field
    for name, (_, field) in leaf_fields(WorkerConfig).items()
    if name not in ("candidate_timeout", "worker_memory_limit", "candidates_per_worker")
}
# Numbers of images, and their sides, by which the preset quick differs.
_NUMBERS_OF_IMAGES, _SIDES = (100, 1000, 3000, 10_000, 100_000), (8, 28)

# The groups of a help, in their order, with the flags that no part of a configuration puts there.
GROUPS: dict[str, tuple[str, ...]] = {
    "data": ("dataset", "test_dataset", "data_dir", "test_pixel_range", "class_map"),
    "search": (
        *("preset", "strategy", "strategies", "seed", "seeds", "evaluations", "initial_genomes"),
        *("fitness", "minimize", "max_trainings", "max_parameters", "max_multiply_adds"),
        *("target_accuracy", "reuse_fitness", "retrain_best", "retrain_seeds"),
    ),
    "network": ("genome", "model", "model_parameters", "weights"),
    "training": ("recipe", "class_weights", "keep", "compare_winner"),
    "run": (
        *("workdir", "save", "output", "latency", "continue", "time_limit", "dry_run"),
        "max_consecutive_failures",
    ),
    "machine": ("engine", "candidates_per_step", "profile", "compilation_cache_dir"),
}
# The group of the settings of a configuration's part.
_GROUP_OF_PART = {
    **{"data": "data", "evolution": "search", "colony": "search", "network": "network"},
    **{"training": "training", "final_training": "training"},
}


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Names of flags by the group of the help that they are in, in the order of `GROUPS`."""
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in sorted(names):
        groups[_group_of(name)].append(name)
    return {group: members for group, members in groups.items() if members}


def _group_of(name: str) -> str:
    for group, names in GROUPS.items():
        if name in names:
            return group
    if name in leaf_fields(WorkerConfig):
        return "machine"
    path, _ = leaf_fields(SearchConfig)[name]
    return _GROUP_OF_PART[path[0]]


class PathParser(flags.ArgumentParser):
    """Takes the paths of all flags: a leading `~` is the home folder."""

    def parse(self, argument: str) -> str:
        return home_expanded(argument)

    def flag_type(self) -> str:
        return "path"


class _MaybePathParser(PathParser):
    """Takes a path, or nothing for none."""

    def parse(self, argument: str) -> str:
        return super().parse(argument) if argument else ""


PATH = PathParser()


class _LagParser(flags.ArgumentParser):
    """Takes a number, or `auto` for one that fits the workers."""

    def parse(self, argument: str) -> int | str:
        return argument if argument == "auto" else int(argument)

    def flag_type(self) -> str:
        return "lag"


def define_config_flags(
    fields: Mapping[str, dataclasses.Field], values: Mapping[str, Mapping[str, Any]]
) -> None:
    """A flag for each field; None, where it is not given, leaves the configuration as it is.

    Args:
        fields: By flag name.
        values: What the help shows: values by flag name, by what they are the values of.
    """
    define = {int: flags.DEFINE_integer, float: flags.DEFINE_float, str: flags.DEFINE_string}
    for name, field in fields.items():
        of = "final training: " if name.startswith("final_") else ""
        text = f"{of}{field.metadata['help']} ({_shown(name, values)})"
        kind = type(field.default)
        if name == "lag":
            flags.DEFINE(_LagParser(), name, None, text)
        elif field.metadata["choices"]:
            flags.DEFINE_enum(name, None, list(field.metadata["choices"]), text)
        elif kind is bool:
            flags.DEFINE_bool(name, None, text)
        else:
            define[kind](name, None, text)


def _shown(name: str, values: Mapping[str, Mapping[str, Any]]) -> str:
    """The values of a setting in words, those that are the same together."""
    labels: dict[str, list[str]] = {}
    for label, settings in values.items():
        labels.setdefault(str(settings[name]) or "empty", []).append(label)
    return ", ".join(f"{' and '.join(named)}: {value}" for value, named in labels.items())


def preset_values() -> dict[str, dict[str, Any]]:
    """The settings of each preset, for help texts; some of `quick` depend on the images."""
    paper = flatten(SearchConfig())
    found = [
        search_settings("quick", None, None, num_images=number, side=side)
        for number in _NUMBERS_OF_IMAGES
        for side in _SIDES
    ]
    quick = {}
    for name in found[0]:
        low, high = (bound(settings[name] for settings in found) for bound in (min, max))
        between = "or" if isinstance(low, str) else "to"
        quick[name] = low if low == high else f"{low} {between} {high} by the images"
    return {"paper": paper, "quick": paper | quick}


def given(names: Iterable[str]) -> dict[str, Any]:
    """The settings that the command line sets."""
    return {name: FLAGS[name].value for name in names if FLAGS[name].value is not None}


def define_preset_flag() -> None:
    """Defines --preset, which names the settings that flags change."""
    text = "settings to begin with; auto: quick on a CPU, else paper"
    flags.DEFINE_enum("preset", "auto", ["auto", *PRESETS], text)


def define_recipe_flag(what: str, default: str | None = "paper") -> None:
    """Defines --recipe, which names the settings of a training that flags change."""
    others = "; ".join(f"{name}: {_listed(RECIPES[name])}" for name in RECIPES if name != "paper")
    text = f"settings of {what} to begin with; paper: as in the paper; {others}"
    if default is None:
        text += f" ({by_preset(FINAL_RECIPES)})"
    flags.DEFINE_enum("recipe", default, list(RECIPES), text)


def define_final_recipe_flag() -> None:
    """Defines --recipe of a search's final training, which is the preset's if it is not given."""
    define_recipe_flag("the final training", None)


def define_engine_flag() -> None:
    """Defines --engine, of the same meaning as a search's."""
    _, field = leaf_fields(SearchConfig)["engine"]
    define_config_flags({"engine": field}, {"default": {"engine": field.default}})


def define_reading_flags() -> None:
    """Defines the flags on how images are understood where they do not tell themselves.

    Other data has its own flags.
    """
    fields = {name: field for name, (_, field) in leaf_fields(DataConfig).items()}
    helps = {name: field.metadata["help"] for name, field in fields.items()}
    choices = list(fields["background"].metadata["choices"])
    flags.DEFINE_string("pixel_range", "", helps["pixel_range"])
    flags.DEFINE_enum("background", "auto", choices, helps["background"])
    flags.DEFINE_bool("skip_unreadable", False, helps["skip_unreadable"])
    flags.DEFINE_string(
        "test_pixel_range", "", "stored values of black and of white of other data that is scored"
    )
    flags.DEFINE_string(
        "class_map", "", "classes of other data by the network's names: its own=the network's,..."
    )


def reading_options() -> tuple[ReadOptions, ReadOptions]:
    """The options that these flags give for the data trained on, and for other data."""
    from jaxevo.datasets import ReadOptions, parse_class_map

    own = ReadOptions.of(FLAGS.pixel_range, FLAGS.background, FLAGS.skip_unreadable)
    other = ReadOptions.of(FLAGS.test_pixel_range, FLAGS.background, FLAGS.skip_unreadable)
    return own, dataclasses.replace(other, class_map=parse_class_map(FLAGS.class_map))


def define_machine_flags() -> None:
    """Flags that say where things lie on this machine, and change no result."""
    text = "folder with the published files, as <data_dir>/<name>/<file>"
    flags.DEFINE(PATH, "data_dir", None, text)
    define_compilation_cache_flag()


def define_pool_flags(part: str) -> None:
    """Defines the flags of the processes that each make a part, such as a search."""
    own = {"workers": setting(0, f"processes that each make a {part} at a time; 0: this process")}
    define_config_flags(_POOL | own, {"default": flatten(WorkerConfig())})


def pool_settings() -> WorkerConfig:
    """The settings that these flags give. Raises `InputError`."""
    return replace(WorkerConfig(), given(_POOL))


def define_compilation_cache_flag() -> None:
    """Defines the flag of the folder of compiled programs."""
    text = (
        "where compiled programs are kept; empty: nowhere (default: jaxevo/compiled in "
        "$XDG_CACHE_HOME, else in ~/.cache)"
    )
    flags.DEFINE(_MaybePathParser(), "compilation_cache_dir", None, text)


def by_preset(defaults: Mapping[str, str]) -> str:
    """What each preset has where nothing is named, for help texts."""
    return "by preset, " + ", ".join(f"{name}: {value}" for name, value in defaults.items())


def strategies_listed() -> str:
    """The strategies that have settings of their own, for help texts."""
    own = {
        name: {key: value for key, value in settings.items() if key != "strategy"}
        for name, settings in STRATEGIES.items()
    }
    return "; ".join(f"{name}: {_listed(settings)}" for name, settings in own.items() if settings)


def check_names(flag: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Raises `InputError` unless they are some of those known, each once."""
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) < len(names):
        named = f"unknown {unknown[0]!r}" if unknown else "give at least one, and each once"
        raise InputError(f"{flag}={','.join(names)}: {named}; choose of {', '.join(known)}")


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())
