"""A run's result in words, for a terminal, a log or a notebook."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from jaxevo.datasets.arrays import NAME as ARRAYS
from jaxevo.intervals import SIGNIFICANT, sign_test
from jaxevo.run.confusion import Confusion
from jaxevo.run.result import BaselineScores, Result

_WEAKEST = 3  # classes that are told
_UNEVEN = 0.75  # of the images in one class, from which on accuracy says little by itself
_SKEWED = 2  # images of the largest class to one of the smallest, from which on it says less


def format_duration(seconds: float) -> str:
    """Seconds, minutes or hours, rounded; parts of a second to one digit."""
    if seconds < 90:
        return f"{seconds:.1g} s" if 0.01 <= seconds < 1 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def percent(value: float | None) -> str:
    """A share in per cent; a dash for none."""
    return "-" if value is None else f"{value:.2%}"


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


def duplicates_note(number: int, tested: int) -> str:
    """A sentence on so many test images that are training images too; empty if there are none."""
    if not number:
        return ""
    return (
        f"{number:,} of {tested:,} test images are training images too, which flatters the accuracy"
    )


def known_note(known: int, checked: int) -> str:
    """A sentence on test images that a network was trained on; empty if none is known."""
    if not known:
        return ""
    return (
        f"the network was trained on {known:,} of the {checked:,} test images that could be "
        "compared, which flatters the accuracy"
    )


def result_lines(result: Result) -> list[str]:
    """A run's result and the time it took, a line each."""
    share = result.memo_hits / result.candidates
    return [
        accuracy_line(result),
        *worth_lines(result),
        *_kept_lines(result),
        f"{result.parameters:,} parameters, {result.multiply_adds:,} multiply-adds an image",
        f"{result.candidates} candidates, {result.memo_hits} ({share:.0%}) isomorphic to an "
        f"earlier one, {result.failures} failed; {result.trainings} trainings",
        where_time_went(result.session_seconds),
    ]


def _kept_lines(result: Result) -> list[str]:
    """A line on the networks that are kept beside the winner, if there are any."""
    kept = [
        f"individual {each.id} ({each.parameters:,} parameters, validation accuracy "
        f"{each.validation_accuracy:.2%})"
        for each in sorted(result.kept, key=lambda each: each.parameters)
    ]
    return [f"kept beside the winner: {', '.join(kept)}"] if kept else []


def commands_of(result: Result, data_dir: str | None = None) -> list[str]:
    """The commands that use a run's result, as a shell reads them, a line each."""
    folder = shlex.quote(f"--workdir={result.path}")
    weights = shlex.quote(f"--weights={result.weights}")
    data = [f"--dataset={result.dataset}", *([f"--data_dir={data_dir}"] if data_dir else [])]
    # Arrays in Python have no name by which a command finds them.
    named = result.dataset != ARRAYS
    return [
        *([f"python -m jaxevo eval {weights} {shlex.join(data)}"] if named else []),
        f"python -m jaxevo predict {weights} IMAGE...",
        f"python -m jaxevo inspect {folder}",
    ]


def worth_lines(result: Result) -> list[str]:
    """Sentences on what the figures are worth, and what the search was worth."""
    lines = []
    if note := duplicates_note(result.test_repeated, result.test_images or 0):
        lines.append(note)
    if result.earlier_tests:
        known = ", ".join(f"{accuracy:.2%}" for accuracy in result.earlier_tests)
        lines.append(f"the run was continued when its test accuracy was known: {known}")
    if result.generation is not None:
        lines.append(f"the winner was born in generation {result.generation}{_gain(result)}")
    if result.baseline is not None:
        lines.append(_worth(result, result.baseline))
    elif result.no_baseline:
        lines.append(f"the small CNN is left out: {result.no_baseline}")
    return lines


def _gain(result: Result) -> str:
    """The winner beside the best of the first generation, where that was measured."""
    if result.first_fitness is None:
        return ""
    if result.first_id == result.id:
        return " and is the best of it: the search gained nothing"
    gain = 100 * (result.retrained_fitness - result.first_fitness)
    points = f"{gain:.2f} points of fitness"
    outcome = f"gained {points}" if gain > 0 else f"gained nothing ({points})"
    return (
        f"; trained again it has a fitness of {result.retrained_fitness:.2%}, "
        f"the best of the first generation {result.first_fitness:.2%}: the search {outcome}"
    )


def _worth(result: Result, baseline: BaselineScores) -> str:
    """The winner beside the small CNN, on test images if there are any."""
    images, mine, theirs = "test", result.test_accuracy, baseline.test_accuracy
    if mine is None or theirs is None:
        images, mine, theirs = (
            "validation",
            result.validation_accuracy,
            baseline.validation_accuracy,
        )
    # A sign test on the images that only one of the two classifies rightly.
    chance = sign_test(baseline.winner_alone, baseline.baseline_alone)
    shown = chance < SIGNIFICANT
    explained = f"which chance {'hardly explains' if shown else 'may explain'} (p = {chance:.2g})"
    difference = f"{100 * abs(mine - theirs):.2f} points, {explained}"
    if mine > theirs:
        answer = "yes" if shown else "perhaps"
        outcome = f"the winner is better by {difference}"
    else:
        answer = "no"
        lost = f"lost to it by {difference}"
        outcome = f"the winner {lost if mine < theirs else 'is not better'}"
    return (
        f"was the search worth it? {answer}: the small hand-designed CNN "
        f"({baseline.parameters:,} parameters), trained in the same way, has a {images} accuracy "
        f"of {theirs:.2%}; {outcome}"
    )


def class_lines(result: Result) -> list[str]:
    """`class_line` of a result, if its classes were counted. Raises `FileError`."""
    confusion = result.confusion()
    return [] if confusion is None else [class_line(confusion)]


def class_line(confusion: Confusion) -> str:
    """The classes that are known least, the most frequent mistake, and what is not to be known.

    Where some classes are more frequent than others, the accuracy is mostly theirs: the balanced
    one is added, and where one class has nearly all images, what naming it always would give.
    """
    absent = [
        name
        for name, images in zip(confusion.class_names, confusion.images, strict=True)
        if not images
    ]
    parts = [_weakest(confusion)]
    if absent:
        more = f" and {len(absent) - _WEAKEST} more" if len(absent) > _WEAKEST else ""
        parts.append(f"no image is of {', '.join(absent[:_WEAKEST])}{more}")
    if not absent and confusion.images.max() >= _SKEWED * confusion.images.min():
        balanced = confusion.balanced_accuracy
        parts.append(f"balanced accuracy, the mean of all classes: {balanced:.2%}")
    share = confusion.images.max() / max(1, confusion.images.sum())
    if share >= _UNEVEN:
        name = confusion.class_names[confusion.images.argmax()]
        parts.append(f"to name {name} each time would be right for {share:.2%}")
    return "; ".join(parts)


def _weakest(confusion: Confusion) -> str:
    names = confusion.class_names
    known = [
        (accuracy, names[k])
        for k, accuracy in enumerate(confusion.accuracies)
        if accuracy is not None and accuracy < 1
    ]
    if not known:
        return "every image is classified rightly"
    weakest = ", ".join(f"{name} {accuracy:.2%}" for accuracy, name in sorted(known)[:_WEAKEST])
    one, other, number = confusion.mistakes()[0]
    often = f"; {names[one]} is taken for {names[other]} {number:,} times" if number > 1 else ""
    return f"weakest classes: {weakest}{often}"


def where_time_went(seconds: Mapping[str, float]) -> str:
    """The parts of a session, in per cent."""
    total = sum(seconds.values())
    shares = {part: value / total if total else 0.0 for part, value in seconds.items()}
    parts = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
    return f"{format_duration(total)} in the session that ended it: {parts}"
