"""Searches for a network, trains the winner and tests it once.

The same as `python -m jaxevo search`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import search

if __name__ == "__main__":
    search.start(sys.argv)
