"""The connection to a cluster of Ray: started here, or joined with a token.

A process that reaches a cluster without a token can run anything on all of its nodes, so none is
joined beyond this machine. No dashboard is started, and no usage is reported.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import warnings
from collections.abc import Iterator
from typing import Any

from jaxevo.errors import InputError
from jaxevo.extras import need

_STORE_BYTES = 512 << 20  # of shared memory a node started here has for arrays

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # What will be Ray's default, of which it would else warn.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def connect(cluster: str) -> Any:
    """Connects this process to a cluster, and returns Ray; `ray.shutdown()` ends it.

    Args:
        cluster: `local` starts a cluster of this machine that ends with this process; `auto` joins
            the one that runs here; anything else is the address of a head.

    Raises `InputError`.
    """
    check_cluster(cluster)
    if cluster == "local":
        # Only this machine can reach the cluster, and only who has the token: this process.
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # listens on 127.0.0.1 alone
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # Ray reads it once
    import ray
    import ray.exceptions

    if ray.is_initialized():
        raise InputError(
            f"--cluster={cluster} cannot be used, as this process is connected to Ray already: "
            "call ray.shutdown() first"
        )
    options: dict[str, Any] = {"address": cluster, "log_to_driver": False}
    options |= {"logging_level": logging.ERROR}
    if cluster == "local":
        cores = len(os.sched_getaffinity(0))
        options |= {"num_cpus": cores, "include_dashboard": False}
        options |= {"object_store_memory": _STORE_BYTES}
    with _signals_kept(), warnings.catch_warnings():
        # JAX warns of forks. Ray's children set up signals and then become other programs.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        try:
            ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
            raise InputError(
                f"--cluster={cluster} cannot be joined ({error}): start Ray there and here "
                "(docs/cluster.md), or begin a cluster of this machine with --cluster=local"
            ) from None
    _silence()
    return ray


def check_cluster(cluster: str) -> None:
    """Raises `InputError` if a cluster may not be joined; whether it is there is not tried."""
    need("ray", "ray")
    os.environ.update(_QUIET)  # before Ray is imported
    if cluster not in ("local", "auto") and not is_here(cluster.rpartition(":")[0] or cluster):
        check_token(cluster)


def is_here(host: str) -> bool:
    """True if a host's name or address is this machine's."""
    import ray

    return host in ("localhost", "127.0.0.1", "::1", ray.util.get_node_ip_address())


def check_token(address: str) -> None:
    """Raises `InputError` if a cluster beyond this machine would be used without a token."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() != "token":
        raise InputError(
            f"{address} is not this machine, and whoever reaches a cluster without a token can run "
            "anything on it: start all of its nodes, and this command, with RAY_AUTH_MODE=token "
            "(docs/cluster.md)"
        )


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keeps this process's own handling of signals, in place of which Ray puts another."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _silence() -> None:
    """Keeps reports of nodes out of this process's output; the pool tells of them itself.

    Ray has no setting for these: `log_to_driver` is for the output of tasks.
    """
    import ray._private.worker

    ray._private.worker.print_to_stdstream = lambda data, ignore_prefix: None
