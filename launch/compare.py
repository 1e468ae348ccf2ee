"""Compares strategies by searches with several seeds.

The same as `python -m jaxevo compare`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import compare

if __name__ == "__main__":
    compare.start(sys.argv)
