"""Compares strategies: a search of each for each seed, all with the same number of trainings; the same command resumes.

The same as `python -m jaxevo compare`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import compare

if __name__ == "__main__":
    compare.start(sys.argv)
