"""Machines that differ in what results depend on are told apart, in words."""

from __future__ import annotations

from jaxevo.run.likeness import differences, likeness


def test_this_machine_is_like_itself():
    assert differences(likeness(), likeness()) == ""
    assert {"machine", "kernels", "device", "jaxlib", "jaxevo", "python"} <= likeness().keys()


def test_what_differs_is_named():
    here = {"jaxlib": "0.10.2", "vector extensions": "avx avx2 fma", "machine": "x86_64"}
    there = {"jaxlib": "0.9", "vector extensions": "avx avx512f fma", "machine": "x86_64"}
    assert differences(there, here) == (
        "jaxlib 0.9 instead of 0.10.2, its processor lacks avx2, its processor has avx512f besides"
    )
    assert differences({}, {"machine": "x86_64"}) == "machine unknown instead of x86_64"
