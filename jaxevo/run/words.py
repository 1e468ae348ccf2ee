"""A run's result in words, for a terminal, a log or a notebook."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from jaxevo.run.result import Result


def format_duration(seconds: float) -> str:
    """Seconds, minutes or hours, rounded."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def accuracy_line(result: Result) -> str:
    """A line with the winner's accuracy."""
    validation = f"validation accuracy {result.validation_accuracy:.2%}"
    if result.test_accuracy is None or result.test_interval is None:
        return validation
    low, high = result.test_interval
    return (
        f"test accuracy {result.test_accuracy:.2%} (95 % interval {low:.2%} to {high:.2%}, "
        f"{result.test_images:,} images), {validation}"
    )


def result_lines(result: Result) -> list[str]:
    """A run's result and the time it took, a line each."""
    share = result.memo_hits / result.candidates
    return [
        accuracy_line(result),
        f"{result.parameters:,} parameters, {result.multiply_adds:,} multiply-adds an image",
        f"{result.candidates} candidates, {result.memo_hits} ({share:.0%}) isomorphic to an "
        f"earlier one, {result.failures} failed; {result.trainings} trainings",
        where_time_went(result.session_seconds),
    ]


def commands_of(result: Result, data_dir: str | None = None) -> list[str]:
    """The commands that use a run's result, as a shell reads them, a line each."""
    folder = shlex.quote(f"--workdir={result.path}")
    weights = shlex.quote(f"--weights={result.weights}")
    data = [f"--dataset={result.dataset}", *([f"--data_dir={data_dir}"] if data_dir else [])]
    return [
        f"python launch/eval.py {weights} {shlex.join(data)}",
        f"python -m jaxevo predict {weights} IMAGE...",
        f"python launch/inspect_checkpoint.py {folder}",
    ]


def where_time_went(seconds: Mapping[str, float]) -> str:
    """The parts of a session, in per cent."""
    total = sum(seconds.values())
    shares = {part: value / total if total else 0.0 for part, value in seconds.items()}
    parts = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
    return f"{format_duration(total)} in the session that ended it: {parts}"
