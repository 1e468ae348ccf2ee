"""Watches a run that another process carries out: in a browser, or with --terminal here.

python -m jaxevo watch runs/digits-quick-seed0
python -m jaxevo watch runs/digits-quick-seed0 --terminal

The page is served to this machine alone, and loads itself anew until the run is complete. From
another machine: ssh -L 8765:127.0.0.1:8765 HOST.
"""

from __future__ import annotations

import pathlib

from absl import flags
from rich.console import Console

from jaxevo.commands import command
from jaxevo.console import say
from jaxevo.errors import InputError
from jaxevo.files import home_expanded
from jaxevo.run.workdir import Workdir

FLAGS = flags.FLAGS

flags.DEFINE_integer(
    "port",
    8765,
    "port of 127.0.0.1 that the page is served at; 0: any that is free",
    lower_bound=0,
    upper_bound=65535,
)
flags.DEFINE_bool("terminal", False, "show the run in this terminal, without a browser")


def serve(workdir: Workdir, console: Console) -> None:
    """Serves the run's report until it is interrupted."""
    from jaxevo.reports.server import ReportServer

    with ReportServer(workdir, FLAGS.port) as server:
        say(console, f"{server.address} shows {workdir.report}; Ctrl-C ends this")
        server.serve_forever()


def start(arguments: list[str]) -> None:
    """Runs the command."""
    operands: list[str] = []

    def main(console: Console) -> None:
        """A folder in, a page or a display out."""
        if len(operands) != 1:
            raise InputError("give the folder of one run, such as runs/digits-quick-seed0")
        workdir = Workdir(pathlib.Path(home_expanded(operands[0])))
        workdir.read_config()  # raises where there is no run
        if FLAGS.terminal:
            from jaxevo.reports.follow import follow

            follow(workdir, console)
        else:
            serve(workdir, console)

    command.run(main, __name__, "the run itself goes on", arguments=arguments, operands=operands)
