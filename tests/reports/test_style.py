"""What charts share."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_rgb

from jaxevo.config.search import FITNESSES
from jaxevo.reports import style


def test_colours_differ_in_grey():
    grey = sorted(np.dot(to_rgb(color), (0.299, 0.587, 0.114)) for color in style.COLORS)
    assert min(np.diff(grey)) > 0.05


def test_every_fitness_has_its_name():
    assert set(style.FITNESS) == set(FITNESSES)
