"""Shows what is in the folder of a run, or a genome.

The same as `python -m jaxevo inspect`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import inspect

if __name__ == "__main__":
    inspect.start(sys.argv)
