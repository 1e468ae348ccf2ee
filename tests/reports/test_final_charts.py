"""Charts of the final training: what they show, and that nothing overlaps or is cut."""

from __future__ import annotations

import numpy as np
import pytest
from builders_figures import assert_readable
from builders_runs import make_result

from jaxevo.reports.final_charts import MAX_NUMBERED, draw_confusion, draw_training
from jaxevo.run.confusion import Confusion


@pytest.mark.parametrize(
    "losses", [(0.5,), (2.0, 0.5, 0.1), (0.5, 0.0), tuple(np.geomspace(3, 1e-4, 100))]
)
def test_the_curve_has_a_point_an_epoch(tmp_path, losses):
    accuracies = tuple(np.linspace(0.9, 0.99, len(losses)))
    result = make_result(tmp_path, final_losses=losses, final_accuracies=accuracies)
    figure = draw_training(result)
    said = assert_readable(figure)
    assert {"final training of individual 2", "epoch", "mean loss of the epoch"} <= set(said)
    for axes, values in zip(figure.axes, (losses, accuracies), strict=True):
        np.testing.assert_allclose(axes.lines[0].get_xdata(), range(1, len(losses) + 1))
        np.testing.assert_allclose(axes.lines[0].get_ydata(), values)


def drawn(number: int, names: list[str], images: int = 50) -> Confusion:
    """Of each class so many images, of which four fifths are classified rightly."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(number), images)
    right = rng.random(len(labels)) < 0.8
    return Confusion.of(
        labels, np.where(right, labels, rng.integers(0, number, len(labels))), names
    )


@pytest.mark.parametrize("number", [2, 10, 25, 26, 100, 300])
@pytest.mark.parametrize("name", ["{}", "a class of a long name, number {}", "$x_{}$"])
def test_classes_of_any_number_and_name(number, name):
    names = [name.replace("{}", str(k)) for k in range(number)]
    confusion = drawn(number, names)
    figure = draw_confusion(confusion, "test images")
    said = assert_readable(figure)
    assert f"{50 * number:,} test images" in said and {"class", "taken for"} <= set(said)
    axes = figure.axes[0]
    shown = np.asarray(axes.images[0].get_array())
    np.testing.assert_allclose(shown, confusion.counts / 50)
    # Counts above 0 are written, where they fit.
    written = {(round(t.get_position()[1]), round(t.get_position()[0])): t for t in axes.texts}
    if number <= MAX_NUMBERED:
        assert {place: int(text.get_text()) for place, text in written.items()} == {
            (a, b): int(count) for (a, b), count in np.ndenumerate(confusion.counts) if count
        }
    else:
        assert not written


def test_long_names_keep_both_ends():
    names = ["a class of a long name, number 1", "a class of a long name, number 2"]
    said = assert_readable(draw_confusion(drawn(2, names), "test images"))
    assert {"a class …umber 1", "a class …umber 2"} <= set(said)


def test_large_counts_and_a_class_without_images():
    counts = np.array([[12_345, 6], [0, 0]])
    said = assert_readable(draw_confusion(Confusion(("a", "b"), counts), "validation images"))
    assert {"12,345", "12,351 validation images"} <= set(said)
