"""Trains one network fully and tests it, or scores saved weights.

The same as `python -m jaxevo eval`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import eval

if __name__ == "__main__":
    eval.start(sys.argv)
