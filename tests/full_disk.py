"""A disk on which a file that grows too large ends in an error, as on a full one."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator


@contextlib.contextmanager
def full_disk(largest: int) -> Iterator[None]:
    """Lets this process write files of at most so many bytes within the block."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing fails by itself
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
