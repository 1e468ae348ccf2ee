"""Searches for a network on a data set, trains the winner and tests it once; the same command resumes.

The same as `python -m jaxevo search`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import search

if __name__ == "__main__":
    search.start(sys.argv)
