"""Running of a command: flags, errors, interrupts, and the cache of programs.

Flags are parsed, errors are one line, and interrupts end the command.
"""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from absl import flags, logging
from rich.console import Console

from jaxevo.errors import InputError, printable
from jaxevo.files import default_cache_dir

FLAGS = flags.FLAGS


def run(
    main: Callable[[Console], None],
    module: str,
    when_interrupted: str,
    *,
    arguments: list[str],
    operands: list[str] | None = None,
) -> None:
    """Parses flags and runs a command; ends the process.

    Args:
        main: Prints to the console that it is given.
        module: Name of the command's module, whose docstring is the help.
        when_interrupted: What an interrupt means, in words.
        arguments: The command line, its first entry being the program's name.
        operands: Takes what is not a flag; None refuses it.

    Wrong input ends in one line and exit code 2, an interrupt in `when_interrupted` and 130.
    """
    logging.set_verbosity(logging.ERROR)
    signal.signal(signal.SIGTERM, _terminate)
    _end_at_second_signal(f"interrupted twice; {when_interrupted}\n")
    with safe_output():
        try:
            if {"--help", "-h", "-help", "--helpfull"} & set(arguments[1:]):
                _print_help(module)
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
            print(f"error: {printable(' '.join(str(error).split()))}", file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:
            print(f"interrupted; {when_interrupted}", file=sys.stderr)
            sys.exit(130)


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


def say(console: Console, text: str) -> None:
    """Prints words as they are."""
    console.print(text, highlight=False, markup=False, emoji=False, soft_wrap=True)


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


def _print_help(module: str) -> None:
    print((sys.modules[module].__doc__ or "").strip())
    print("\nflags:\n")
    print(FLAGS.module_help(module))
    print(FLAGS.module_help("jaxevo.commands.flags"))


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
