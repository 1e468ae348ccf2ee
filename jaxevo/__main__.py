"""The program: `python -m jaxevo COMMAND` or `jaxevo COMMAND`, one of those in `COMMANDS`."""

from __future__ import annotations

import importlib
import sys

COMMANDS = {
    "search": "search for a network, train the winner and test it",
    "eval": "train one genome or hand-designed network fully, or score saved weights",
    "predict": "name the classes of image files by a trained network",
    "inspect": "show what is in a run's folder, or a genome",
    "export": "write a network or a run in the form of another program",
    "watch": "watch a run of another process, in a browser or a terminal",
    "compare": "compare strategies over several seeds",
    "reproduce": "make one of the paper's tables again",
}


def main() -> None:
    """Hands the command line over to the command that it names first."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in COMMANDS:
        module = importlib.import_module(f"jaxevo.commands.{name}")
        module.start([f"jaxevo {name}", *sys.argv[2:]])
        return
    from jaxevo.commands.command import safe_output

    with safe_output():
        _answer(name)


def _answer(name: str) -> None:
    """Prints version or usage; anything else is refused."""
    if name == "--version":
        import jaxevo

        print(f"jaxevo {jaxevo.__version__}")
        return
    known = "\n".join(f"  {command:<10} {text}" for command, text in COMMANDS.items())
    flags = "jaxevo COMMAND --help lists its flags"
    usage = f"usage: jaxevo COMMAND --flag=value ...\n\n{known}\n\n{flags}"
    if name in ("--help", "-h", "help"):
        print(usage)
        return
    print(f"error: {name!r} is no command; {usage}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
