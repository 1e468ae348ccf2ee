"""Properties of a machine on which the results of trainings depend, and how two machines differ.

Machines that are alike compute the same bits, so a search may be spread over them.
"""

from __future__ import annotations

import platform
import re

from jaxevo.versions import versions

# Extensions of the processor with which XLA and the native kernels compute.
_VECTORS = "vector extensions"
_EXTENSIONS = re.compile(r"avx\w*|fma\w*|amx\w*|f16c|asimd\w*|sve\w*")


def likeness() -> dict[str, str]:
    """What has to be the same here and on another machine, by name, in words."""
    import jax

    from jaxevo.machine import processor_flags
    from jaxevo.networks.native import kernels_name

    extensions = sorted(flag for flag in processor_flags() if _EXTENSIONS.fullmatch(flag))
    found = {
        "machine": platform.machine(),
        _VECTORS: " ".join(extensions),
        "kernels": kernels_name() or "none",
        "device": "cpu" if jax.default_backend() == "cpu" else jax.devices()[0].device_kind,
    }
    return found | versions()


def differences(there: dict[str, str], here: dict[str, str]) -> str:
    """How another machine differs, in words; empty if the two are alike."""
    found = []
    for name, own in here.items():
        other = there.get(name, "unknown")
        if other == own:
            continue
        if name == _VECTORS:
            lacking = sorted(set(own.split()) - set(other.split()))
            more = sorted(set(other.split()) - set(own.split()))
            found += [f"its processor lacks {' '.join(lacking)}"] if lacking else []
            found += [f"its processor has {' '.join(more)} besides"] if more else []
        else:
            found.append(f"{name} {other} instead of {own}")
    return ", ".join(found)
