"""Shows what is in the folder of a run, finished or not, or a genome file; builds no network and needs no GPU.

The same as `python -m jaxevo inspect`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import inspect

if __name__ == "__main__":
    inspect.start(sys.argv)
