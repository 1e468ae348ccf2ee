"""Who falls behind in a race, and what would have become of them."""

from __future__ import annotations

import pytest

from jaxevo.run.trial import Rival

RIVAL = Rival(losses=(1.0, 0.5, 0.3), loss=0.6)  # means so far: 1, 0.75, 0.6


@pytest.mark.parametrize(
    ("losses", "margin", "ahead"),
    [
        ((1.05,), 0.1, False),  # behind by less than a tenth
        ((1.15,), 0.1, True),
        ((1.15, 0.45), 0.1, False),  # a mean of 0.8, at most 0.825
        ((1.15, 0.55), 0.1, True),  # of 0.85
        ((1.0, 0.5, 0.3), 0.1, False),
        ((9.0, 9.0, 9.0, 9.0), 0.1, False),  # it has not been trained for so long itself
    ],
)
def test_a_rival_is_ahead_by_more_than_the_margin_of_its_mean_loss(losses, margin, ahead):
    assert RIVAL.is_ahead(losses, margin) is ahead


def test_a_training_that_ended_early_is_foretold_to_go_on_as_the_rivals_did():
    assert RIVAL.foretell((1.5,)) == pytest.approx(1.5 * 0.6 / 1.0)
    assert RIVAL.foretell((1.5, 0.75)) == pytest.approx(1.125 * 0.6 / 0.75)
    # The rival ended early too, and its own loss was foretold.
    assert Rival((1.0,), 0.4).foretell((2.0,)) == pytest.approx(0.8)
    assert Rival((0.0,), 0.0).foretell((0.5,)) == 0.5
