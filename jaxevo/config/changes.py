"""Changes of a run's settings: those with which it can go on, and why it cannot with others."""

from __future__ import annotations

from typing import Any

from jaxevo.config.fields import flatten, leaf_fields
from jaxevo.config.search import SearchConfig
from jaxevo.errors import InputError

# The ends of a search, which can be put off; 0 takes the last two away.
ENDS = ("num_generations", "max_trainings", "target_accuracy")

# Of what follows the search, and of when it is given up.
_FREE = ("keep", "compare_winner", "max_consecutive_failures")

_TRAINED_OTHERWISE = "its candidates were trained in another way"
_CHOSEN_OTHERWISE = "earlier and later winners are compared by as many trainings"
_DRAWN_OTHERWISE = "its candidates would have been others"
# Why a setting, or those of a group, cannot change; the others decide which candidates are drawn.
_REASONS = {
    "data": "its candidates were trained and measured on other images",
    "network": "its candidates were other networks",
    **dict.fromkeys(("training", "engine", "candidates_per_step"), _TRAINED_OTHERWISE),
    "class_weights": _TRAINED_OTHERWISE,
    **dict.fromkeys(("retrain_best", "retrain_seeds"), _CHOSEN_OTHERWISE),
}


def can_change(name: str) -> bool:
    """True for a setting with which a run can go on that it did not begin with."""
    return name in _FREE or name in ENDS or name.startswith("final_")


def changed(now: SearchConfig, asked: SearchConfig) -> dict[str, Any]:
    """The settings of `asked` that differ from `now`, by flag name.

    Raises `InputError` naming each setting that cannot change, and the reason.
    """
    before = flatten(now)
    differences = {name: value for name, value in flatten(asked).items() if value != before[name]}
    refused = [
        f"{name} is {before[name]!r} and cannot become {value!r}, since {reason}"
        for name, value in differences.items()
        if (reason := _why_not(name, before[name], value))
    ]
    if refused:
        raise InputError(
            f"the run cannot be continued so: {'; '.join(refused)}; leave that as it is, or search "
            "in another workdir"
        )
    return differences


def _why_not(name: str, before: Any, after: Any) -> str | None:
    """Why a setting cannot change so; None if it can."""
    if name in ENDS:
        # No bound is 0 for two of them, and nothing lies beyond it.
        unbounded = 0 if name != "num_generations" else None
        later = before != unbounded and (after > before or after == unbounded)
        return None if later else "a search can only be continued beyond its end"
    if can_change(name):
        return None
    group = leaf_fields(SearchConfig)[name][0][0]
    return _REASONS.get(group, _DRAWN_OTHERWISE)
