"""Running of a command: flags, errors, interrupts, and the cache of programs.

Flags are parsed, errors are one line, and interrupts end the command.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import pathlib
import re
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from absl import flags, logging
from rich.console import Console

from jaxevo.console import say
from jaxevo.errors import InputError, explained, printable
from jaxevo.files import default_cache_dir

FLAGS = flags.FLAGS
_HELP_WIDTH = 100  # characters of a line of a help at most
_INDENT = " " * 6  # of what a flag means
# What Python says of a flag that is no number, and in its place.
_NO_NUMBER = (
    ("invalid literal for int.*", "give a whole number"),
    ("could not convert string to float.*", "give a number"),
)
_SHARED = "jaxevo.commands.flags"  # defines flags that commands have in common


def run(
    main: Callable[[Console], None],
    module: str,
    when_interrupted: str,
    *,
    arguments: list[str],
    operands: list[str] | None = None,
    grouped: Callable[[Iterable[str]], Mapping[str, list[str]]] | None = None,
) -> None:
    """Parses flags and runs a command; ends the process.

    Args:
        main: Prints to the console that it is given.
        module: Name of the command's module, whose docstring is the help.
        when_interrupted: What an interrupt means, in words.
        arguments: The command line, its first entry being the program's name.
        operands: Takes what is not a flag; None refuses it.
        grouped: Divides names of flags into the groups of the help; None: it has no groups.

    Wrong input ends in one line and exit code 2, an interrupt in `when_interrupted` and 130.
    """
    logging.set_verbosity(logging.ERROR)
    signal.signal(signal.SIGTERM, _terminate)
    _end_at_second_signal(f"interrupted twice; {when_interrupted}\n")
    with safe_output():
        try:
            if {"--help", "-h", "-help", "--helpfull"} & set(arguments[1:]):
                _print_help(module, grouped)
                return
            rest = FLAGS(arguments)[1:]
            if operands is not None:
                operands += rest
            elif rest:
                raise InputError(
                    f"unexpected argument {rest[0]!r}; flags are written --name=value, see --help"
                )
            main(Console())
        except BrokenPipeError:
            raise
        except (InputError, flags.Error, OSError) as error:
            print(f"error: {printable(' '.join(_words(error).split()))}", file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:
            print(f"interrupted; {when_interrupted}", file=sys.stderr)
            sys.exit(130)
        finally:
            # All is said: an interrupt while libraries clean up would end in a traceback.
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def safe_output() -> Iterator[None]:
    """Output that ends in no traceback, whoever reads it.

    Characters that the terminal's encoding lacks are escaped. A reader that leaves early, as `head`
    does, ends the block.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def status(console: Console, text: str) -> AbstractContextManager[Any]:
    """Shows on a terminal, within the block, what is being done."""
    return console.status(text) if console.is_terminal else contextlib.nullcontext()


def resolve_preset(name: str, console: Console) -> str:
    """Returns the preset that `auto` means here, and prints it; other names stay."""
    if name != "auto":
        return name
    from jaxevo.machine import backend, default_preset

    preset = default_preset()
    say(console, f"preset {preset}, as this is a {backend().upper()}; --preset=... chooses another")
    return preset


def start_jax() -> None:
    """Starts JAX, with the persistent cache of programs unless that cannot be used.

    Whoever can write to the cache can run code. Raises `InputError` where JAX has no device.
    """
    from jaxevo.machine import backend, drop_oldest_programs, keep_compiled

    backend()
    if FLAGS.compilation_cache_dir == "":
        return
    try:
        named = FLAGS.compilation_cache_dir
        folder = pathlib.Path(named) if named else default_cache_dir() / "compiled"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"{folder} is not writable")
    except (InputError, OSError) as error:
        print(f"no compilation cache ({error}): every run compiles anew", file=sys.stderr)
        return
    drop_oldest_programs(folder)
    keep_compiled(str(folder))


def _print_help(
    module: str, grouped: Callable[[Iterable[str]], Mapping[str, list[str]]] | None
) -> None:
    """Prints the module's docstring and its flags."""
    print((sys.modules[module].__doc__ or "").strip())
    print("\nflags:")
    defined = FLAGS.flags_by_module_dict()
    known = [flag.name for owner in (module, _SHARED) for flag in defined.get(owner, [])]
    groups = grouped(known) if grouped else {"": sorted(known)}
    width = min(shutil.get_terminal_size().columns, _HELP_WIDTH)
    for group, names in groups.items():
        print(f"\n{group.upper()}\n" if group else "")
        for name in names:
            print(f"  {_usage(FLAGS[name])}")
            # absl puts the choices, which the line above has, before the words.
            words = re.sub(r"^<[^>]*>: ", "", FLAGS[name].help or "")
            text = f"{words}{_default(FLAGS[name])}"
            print(textwrap.fill(text, width, initial_indent=_INDENT, subsequent_indent=_INDENT))


def _usage(flag: flags.Flag) -> str:
    """A flag as it is written on the command line."""
    if flag.boolean:
        return f"--[no]{flag.name}"
    choices = getattr(flag.parser, "enum_values", None)
    kinds = {"int": "N", "float": "X", "string": "TEXT", "path": "PATH", "lag": "N|auto"}
    kind = kinds.get(flag.flag_type(), "A,B,...")
    return f"--{flag.name}={'|'.join(choices) if choices else kind}"


def _default(flag: flags.Flag) -> str:
    """The default in words, if the flag has one that says something."""
    if flag.default is None or flag.default is False or flag.default == "":
        return ""
    listed = ",".join(flag.default) if isinstance(flag.default, list) else flag.default
    return f" (default: {listed})"


def _words(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    if isinstance(error, OSError):
        return explained(error)
    text = str(error)
    if isinstance(error, flags.Error):
        for parsers_words, remedy in _NO_NUMBER:
            text = re.sub(parsers_words, remedy, text)
    return text


def _terminate(*_: Any) -> None:
    raise KeyboardInterrupt


def _end_at_second_signal(line: str) -> None:
    """Lets a second interrupt end the process at once.

    Python itself sees no interrupt while a computation goes on.
    """
    receiver, sender = os.pipe()
    os.set_blocking(sender, False)
    signal.set_wakeup_fd(sender)

    def watch() -> None:
        seen = 0
        while seen < 2:
            numbers = os.read(receiver, 64)
            seen += sum(number in (signal.SIGINT, signal.SIGTERM) for number in numbers)
        os.write(sys.stderr.fileno(), line.encode())
        os._exit(130)

    threading.Thread(target=watch, daemon=True).start()
