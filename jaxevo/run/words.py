"""A run's result in words, for a terminal, a log or a notebook."""

from __future__ import annotations

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
    earlier = ", ".join(f"{accuracy:.2%}" for accuracy in result.earlier_tests)
    return [
        accuracy_line(result),
        *(
            [f"the run was continued when its test accuracy was known: {earlier}"]
            if earlier
            else []
        ),
        f"{result.parameters:,} parameters, {result.multiply_adds:,} multiply-adds an image",
        f"{result.candidates} candidates, {result.memo_hits} ({share:.0%}) isomorphic to an "
        f"earlier one, {result.failures} failed; {result.trainings} trainings",
        where_time_went(result.session_seconds),
    ]


def where_time_went(seconds: Mapping[str, float]) -> str:
    """The parts of a session, in per cent."""
    total = sum(seconds.values())
    shares = {part: value / total if total else 0.0 for part, value in seconds.items()}
    parts = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
    return f"{format_duration(total)} in the session that ended it: {parts}"
