"""Makes one of the paper's tables again.

The same as `python -m jaxevo reproduce`; `--help` lists the flags.
"""

import sys

from jaxevo.commands import reproduce

if __name__ == "__main__":
    reproduce.start(sys.argv)
