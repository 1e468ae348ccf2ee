"""The picture of networks for MNIST by size and error, from files of `jaxevo eval --output`.

    python benchmarks/front_picture.py docs/mnist-front/*.json --output=docs/mnist-front/front

Beside them stand networks that people made by hand for this exercise, as published: most of these
figures are of the best epoch by test accuracy, which flatters them.
"""

from __future__ import annotations

import argparse
import json
import pathlib
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from jaxevo.reports.cell_pictures import save
from jaxevo.reports.style import COLORS, GREY, MARKERS, logarithmic

# Parameters and test accuracy.
BY_HAND = (
    *((575, 0.98), (697, 0.99), (8_900, 0.995), (12_700, 0.9946), (15_600, 0.9943)),
    (19_000, 0.9942),
)


class Network(NamedTuple):
    """A trained network: parameters, and test error with its interval, in per cent."""

    by_search: bool
    parameters: int
    error: float
    low: float
    high: float

    @classmethod
    def read(cls, path: pathlib.Path) -> Network:
        """The mean over the seeds of a file."""
        document = json.loads(path.read_text())
        (score,) = document["scores"]
        low, high = score["interval"]
        errors = (100 * (1 - value) for value in (score["mean"], high, low))
        return cls("genome" in document, document["parameters"], *errors)


def draw(networks: list[Network]) -> Figure:
    """Test error by parameters, both logarithmic."""
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    axes = figure.subplots()
    groups = {
        "networks of searches": [each for each in networks if each.by_search],
        "small CNN, by hand, trained alike": [each for each in networks if not each.by_search],
    }
    for style, (label, group) in enumerate(groups.items()):
        sizes, errors, low, high = zip(*(each[1:] for each in sorted(group)), strict=True)
        bars = [np.subtract(errors, low), np.subtract(high, errors)]
        look = {"marker": MARKERS[style], "color": COLORS[style], "capsize": 3}
        axes.errorbar(sizes, errors, bars, label=label, linestyle="-", linewidth=1.2, **look)
    sizes, accuracies = np.array(BY_HAND).T
    label = "by hand, as published"
    axes.plot(sizes, 100 * (1 - accuracies), "x", color=GREY, label=label)
    for axis in (axes.xaxis, axes.yaxis):
        logarithmic(axis)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set(xlabel="parameters", ylabel="test error on MNIST (%)")
    axes.grid(color="#ebebeb")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=9)
    return figure


def main() -> None:
    """Writes the picture as SVG and PNG."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=pathlib.Path, help="of jaxevo eval --output")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="without its ending")
    args = parser.parse_args()
    for path in save(draw([Network.read(path) for path in args.files]), args.output):
        print(path)


if __name__ == "__main__":
    main()
