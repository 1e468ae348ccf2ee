"""What the launchers share: flags made from the config dataclasses, and errors in one line."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from absl import flags, logging

from jaxevo.errors import InputError, printable

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


def define_machine_flags() -> None:
    """Flags that say where things lie on this machine, and change no result."""
    flags.DEFINE_string("data_dir", None, "folder with the published files, as <data_dir>/<name>/<file>")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    default = os.path.join(cache, "jaxevo", "compiled")
    flags.DEFINE_string("compilation_cache_dir", default, "where compiled programs are kept; empty: nowhere")


def use_compilation_cache() -> None:
    """Turns the persistent cache on, or says why it cannot be used. Whoever can write to it can run code."""
    import jax

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
    jax.config.update("jax_compilation_cache_dir", str(folder))


def run(main: Callable[[], None], doc: str, when_interrupted: str) -> None:
    """Parses flags and runs; wrong input ends in one line and exit code 2, an interrupt in `when_interrupted`."""
    logging.set_verbosity(logging.ERROR)
    if {"--help", "-h", "-help", "--helpfull"} & set(sys.argv[1:]):
        print(f"{doc.strip()}\n\nflags:\n{FLAGS.main_module_help()}")
        print(FLAGS.module_help(sys.modules[__name__]))
        return
    signal.signal(signal.SIGTERM, _terminate)
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
