"""What the launchers share: flags made from the config dataclasses, the images, and errors in one line."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags, logging
from rich.console import Console

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.config.presets import RECIPES, STRATEGIES, preset
from jaxevo.errors import InputError, printable
from jaxevo.run.progress import RunReporter
from jaxevo.run.workdir import Workdir, changed_versions, read_json, write_json

if TYPE_CHECKING:  # imported late, as a launcher may need none of it
    from jaxevo.datasets import Images, SearchData
    from jaxevo.run.search import Search
    from jaxevo.training.classifier import Source

FLAGS = flags.FLAGS


def define_config_flags(fields: Mapping[str, dataclasses.Field], defaults: Mapping[str, Any], label: str) -> None:
    """A flag for each field; one that is not given is None and leaves the configuration as it is."""
    for name, field in fields.items():
        of = "final training: " if name.startswith("final_") else ""
        kind, text = type(field.default), f"{of}{field.metadata['help']} ({label}: {defaults[name]})"
        if field.metadata["choices"]:
            flags.DEFINE_enum(name, None, list(field.metadata["choices"]), text)
        elif kind is bool:
            flags.DEFINE_bool(name, None, text)
        else:
            {int: flags.DEFINE_integer, float: flags.DEFINE_float, str: flags.DEFINE_string}[kind](name, None, text)


def given(names: Iterable[str]) -> dict[str, Any]:
    """The settings that the command line sets."""
    return {name: FLAGS[name].value for name in names if FLAGS[name].value is not None}


def define_preset_flag() -> None:
    """Which settings are changed by flags."""
    flags.DEFINE_enum(
        "preset", "auto", ["auto", "quick", "paper"], "settings to begin with; auto: quick on a CPU, else paper"
    )


def strategies_listed() -> str:
    """The strategies that have settings of their own, for help texts."""
    own = {name: {k: v for k, v in made.items() if k != "strategy"} for name, made in STRATEGIES.items()}
    return "; ".join(f"{name}: {_listed(settings)}" for name, settings in own.items() if settings)


def check_names(flag: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Raises `InputError` unless they are some of those known, each once."""
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) < len(names):
        named = f"unknown {unknown[0]!r}" if unknown else "one is missing or given twice"
        raise InputError(f"{flag}={','.join(names)}: {named}; choose of {', '.join(known)}")


def define_recipe_flag(what: str) -> None:
    """Which settings of a training are changed by flags."""
    text = f"settings of {what} to begin with; paper: as in the paper; modern: {_listed(RECIPES['modern'])}"
    flags.DEFINE_enum("recipe", "paper", list(RECIPES), text)


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def recipe(prefix: str = "") -> dict[str, Any]:
    """The settings that the recipe gives, by the names of their flags."""
    return {prefix + name: value for name, value in RECIPES[FLAGS.recipe].items()}


def resolve_configs(
    strategies: Sequence[str], settings: Iterable[str], console: Console
) -> tuple[dict[str, SearchConfig], str]:
    """By strategy the configuration that preset, recipe, strategy and flags give, and the preset's name."""
    import jax

    from jaxevo.datasets import load_train_data

    flagged = given(settings)
    backend = jax.default_backend()
    name = str(FLAGS.preset)
    if name == "auto":
        name = "quick" if backend == "cpu" else "paper"
        console.print(f"preset {name}, as this is a {backend.upper()}; --preset=... chooses another", highlight=False)
    default = SearchConfig()
    images, _ = load_train_data(flagged.get("dataset", default.data.dataset), FLAGS.data_dir)
    begin = preset(name, len(images)) | recipe("final_")
    resolved = {each: configs.replace(default, begin | STRATEGIES[each] | flagged) for each in strategies}
    return {each: with_engine(config) for each, config in resolved.items()}, name


def with_engine(config: SearchConfig) -> SearchConfig:
    """With the engine that `auto` means here."""
    from jaxevo.training.engines import choose_engine

    return configs.replace(config, {"engine": choose_engine(config.engine, config.network.conv_kind)})


def load_images(config: SearchConfig) -> tuple[SearchData, Callable[[], Images], float]:
    """The images to search on, how to come by those for the test, and the seconds that loading took."""
    from jaxevo.datasets import load_search_data, load_test_data

    data, begin = config.data, time.perf_counter()
    load = functools.partial(load_search_data, data.dataset, FLAGS.data_dir, resize=data.resize, seed=config.seed)
    images = load(validation_fraction=data.validation_fraction, image_size=data.image_size)
    seconds = time.perf_counter() - begin
    load_test = functools.partial(
        load_test_data, data.dataset, FLAGS.data_dir, image_shape=images.image_shape, resize=data.resize
    )
    config.network.check_image(*images.image_shape[:2])
    return images, load_test, seconds


def load_tests(source: Source, dataset: str, image_shape: tuple[int, int, int]) -> dict[str, Images]:
    """Test images by the way they were resized: images of other data and size in both ways, as that decides much."""
    from jaxevo.datasets import METHODS, load_test_data, same_dataset

    load = functools.partial(load_test_data, dataset, FLAGS.data_dir, class_names=source.class_names)
    fits = load().images.shape[1:3] == image_shape[:2]
    methods = (source.resize,) if fits or same_dataset(dataset, source.dataset) else METHODS
    return {method: load(image_shape=image_shape, resize=method) for method in methods}


def lock(folder: pathlib.Path) -> int:
    """Makes the folder, and keeps other processes out until the descriptor returned is closed or this process ends."""
    folder.mkdir(parents=True, exist_ok=True)
    return Workdir(folder).lock()


def claim(folder: pathlib.Path, settings: Mapping[str, Any]) -> None:
    """Makes the folder theirs, or checks that it is. Raises `InputError`."""
    if folder.is_symlink() or Workdir(folder).config.exists():
        raise InputError(f"{folder} is a link or the folder of a search; give another --workdir")
    folder.mkdir(parents=True, exist_ok=True)
    document = folder / "training.json"
    if not document.exists():
        write_json(document, settings)
    elif read_json(document) != json.loads(json.dumps(settings)):
        raise InputError(f"{folder} holds another training (see {document}); give another --workdir")


def default_name(config: SearchConfig) -> str:
    """What a folder of runs is called after: the data set's name, without what a path could mind."""
    return re.sub(r"[^A-Za-z0-9_.]+", "_", pathlib.Path(config.data.dataset).name)


def enter(workdir: Workdir, config: SearchConfig, preset: str, images: SearchData) -> int:
    """Creates or opens a run's folder, and keeps other processes out until the descriptor returned is closed."""
    from jaxevo.machine import device_name

    handle = lock(workdir.path)
    document = workdir.open(config, {"preset": preset, "device": device_name(), "data": images.digest()})
    if changed := changed_versions(document):
        print(f"begun with {'; '.join(changed)}: what follows may differ from an uninterrupted run", file=sys.stderr)
    return handle


class NoResultError(InputError):
    """A search that failed; nothing else is wrong, so others can go on."""


@contextlib.contextmanager
def open_search(config: SearchConfig, preset: str, workdir: Workdir, console: Console) -> Iterator[Search]:
    """A search in its folder, which is locked meanwhile; a failed one is a `NoResultError` that names the folder."""
    from jaxevo.run.evaluator import DivergedError
    from jaxevo.run.search import Search, SearchFailedError, Task

    images, load_test, seconds = load_images(config)
    handle = enter(workdir, config, preset, images)
    reporter = RunReporter(config, console)
    try:
        with reporter.live():
            yield Search(Task(config, workdir, images, load_test, seconds), reporter)
    except (SearchFailedError, DivergedError) as error:
        raise NoResultError(f"{workdir.path}: {error}") from error
    finally:
        os.close(handle)


def define_machine_flags() -> None:
    """Flags that say where things lie on this machine, and change no result."""
    flags.DEFINE_string("data_dir", None, "folder with the published files, as <data_dir>/<name>/<file>")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    default = os.path.join(cache, "jaxevo", "compiled")
    flags.DEFINE_string("compilation_cache_dir", default, "where compiled programs are kept; empty: nowhere")


def use_compilation_cache() -> None:
    """Turns the persistent cache on, or says why it cannot be used. Whoever can write to it can run code."""
    if not FLAGS.compilation_cache_dir:
        return
    folder = pathlib.Path(FLAGS.compilation_cache_dir).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} is not writable")
    except OSError as error:
        print(f"no compilation cache ({error}): every run compiles anew", file=sys.stderr)
        return
    from jaxevo.machine import drop_oldest_programs, keep_compiled

    drop_oldest_programs(folder)
    keep_compiled(str(folder))


def run(main: Callable[[], None], doc: str, when_interrupted: str) -> None:
    """Parses flags and runs; wrong input ends in one line and exit code 2, an interrupt in `when_interrupted`."""
    logging.set_verbosity(logging.ERROR)
    if {"--help", "-h", "-help", "--helpfull"} & set(sys.argv[1:]):
        print(f"{doc.strip()}\n\nflags:\n{FLAGS.main_module_help()}")
        print(FLAGS.module_help(sys.modules[__name__]))
        return
    signal.signal(signal.SIGTERM, _terminate)
    _end_at_second_signal(f"interrupted twice; {when_interrupted}\n")
    try:
        rest = FLAGS(sys.argv)[1:]
        if rest:
            raise InputError(f"unexpected argument {rest[0]!r}; flags are written --name=value, see --help")
        main()
    except (InputError, flags.Error, OSError) as error:
        print(f"error: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print(f"interrupted; {when_interrupted}", file=sys.stderr)
        sys.exit(130)


def _terminate(*_: Any) -> None:
    raise KeyboardInterrupt


def _end_at_second_signal(line: str) -> None:
    """Lets a second interrupt end the process at once: Python itself sees none while a computation goes on."""
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender)

    def watch() -> None:
        seen = 0
        while seen < 2:
            seen += sum(number in (signal.SIGINT, signal.SIGTERM) for number in os.read(receiver, 64))
        os.write(sys.stderr.fileno(), line.encode())
        os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
