"""Several strategies on the same problem: what came out of their runs, in tables, and whether it may be chance.

A budget is a number of trainings. Runs with the same seed share the split of the images, so strategies are compared
seed by seed. JAX is not imported.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxevo.records import Run

# Strategies by the names that a comparison takes, with the settings that make them.
VARIANTS: dict[str, dict[str, Any]] = {
    "rea": {"strategy": "rea"},
    "aging": {"strategy": "aging"},
    "random": {"strategy": "random"},
    "aco": {"strategy": "aco"},
    "aging10": {"strategy": "aging", "population_size": 10, "sample_size": 3},
    "aging100": {"strategy": "aging", "population_size": 100, "sample_size": 25},
    "rea_no_crossover": {"strategy": "rea", "crossover": False},
    "rea_no_avoidance": {"strategy": "rea", "stagnation_avoidance": False},
    "rea_b3": {"strategy": "rea", "min_nodes": 3, "max_nodes": 3},
    "rea_b4": {"strategy": "rea", "min_nodes": 4, "max_nodes": 4},
}
MEASURES = {"validation": "best validation accuracy in the search", "test": "test accuracy of the winner"}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came out of one finished run."""

    strategy: str
    seed: int
    validation: float  # the best fitness of the search
    test: float
    parameters: int
    trainings: int  # of candidates; reused ones are not among them
    candidates: int
    curve: tuple[float, ...]  # best fitness after each training; 0 before the first success


def outcome(strategy: str, run: Run) -> Outcome:
    """Of a finished run."""
    assert run.result is not None
    best, curve = 0.0, []
    for candidate in run.candidates.values():
        best = max(best, candidate.individual.fitness or 0.0)
        if candidate.reused is None:
            curve.append(best)
    result, number = run.result, len(run.candidates)
    sizes = (result["parameters"], len(curve), number)
    return Outcome(strategy, run.config.seed, best, result["test_accuracy"], *sizes, tuple(curve))


def curves(outcomes: Sequence[Outcome]) -> dict[str, np.ndarray]:
    """Strategy -> best fitness `[seeds, trainings]`; a run that came to its end earlier keeps its best."""
    longest = max(len(each.curve) for each in outcomes)
    return {
        strategy: np.array([[*each.curve, *[each.validation] * (longest - len(each.curve))] for each in runs])
        for strategy, runs in _by_strategy(outcomes).items()
    }


def summary(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row a strategy: means over the seeds and standard deviations, which one seed does not have."""
    rows = []
    for strategy, runs in _by_strategy(outcomes).items():
        row: dict[str, Any] = {"strategy": strategy, "seeds": len(runs)}
        for name in MEASURES:
            values = [getattr(each, name) for each in runs]
            row |= {name: float(np.mean(values))}
            row |= {f"{name}_sd": float(np.std(values, ddof=1)) if len(values) > 1 else None}
        row |= {name: float(np.mean([getattr(r, name) for r in runs])) for name in ("parameters", "trainings")}
        row["duplicates"] = float(np.mean([1 - each.trainings / each.candidates for each in runs]))
        rows.append(row)
    return rows


def paired_tests(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The first strategy against each other one, seed by seed: mean difference and two-sided p-values.

    With one seed there is no test; a Wilcoxon test of n seeds cannot give less than 2 / 2^n.
    """
    from scipy.stats import ttest_1samp, wilcoxon

    (first, mine), *others = _by_strategy(outcomes).items()
    rows = []
    for other, theirs in others:
        for name in MEASURES:
            of_mine, of_theirs = ({each.seed: getattr(each, name) for each in runs} for runs in (mine, theirs))
            seeds = sorted(of_mine.keys() & of_theirs.keys())
            difference = np.array([of_mine[seed] - of_theirs[seed] for seed in seeds])
            row = {"strategies": f"{first} - {other}", "measure": name, "seeds": len(seeds)}
            row |= {"difference": float(difference.mean()), "wilcoxon_p": None, "t_p": None}
            if len(seeds) > 1 and difference.any():
                _, row["wilcoxon_p"] = map(float, wilcoxon(difference))
                if difference.std() > 1e-12:  # else t is infinite
                    _, row["t_p"] = map(float, ttest_1samp(difference, 0.0))
            rows.append(row)
    return rows


def markdown(outcomes: Sequence[Outcome], caption: str) -> str:
    """Summary and tests as Markdown."""
    lines = [caption, "", "| strategy | seeds | best validation | test | parameters | trainings | duplicates |"]
    lines.append("|---|---|---|---|---|---|---|")
    for row in summary(outcomes):
        accuracies = (_spread(row[name], row[f"{name}_sd"]) for name in MEASURES)
        sizes = f"{row['parameters']:,.0f} | {row['trainings']:.1f} | {row['duplicates']:.0%}"
        lines.append(f"| {row['strategy']} | {row['seeds']} | {' | '.join(accuracies)} | {sizes} |")
    tests = paired_tests(outcomes)
    if tests:
        seeds = max(row["seeds"] for row in tests)
        lines += ["", "| seed by seed | of | mean difference | p (Wilcoxon) | p (paired t) |", "|---|---|---|---|---|"]
        for row in tests:
            values = (f"{row['wilcoxon_p']:.3f}" if row["wilcoxon_p"] is not None else "-",)
            values += (f"{row['t_p']:.3f}" if row["t_p"] is not None else "-",)
            difference = f"{100 * row['difference']:+.2f} points"
            lines.append(f"| {row['strategies']} | {row['measure']} | {difference} | {' | '.join(values)} |")
        lines += ["", _how_much_it_says(seeds)]
    return "\n".join(lines) + "\n"


def _how_much_it_says(seeds: int) -> str:
    if seeds < 2:
        return "With one seed nothing can be said about chance."
    least = 2 / 2**seeds
    few = " So few seeds can hardly show anything but a large difference." if least > 0.05 else ""
    return (
        f"Two-sided p-values, not corrected for the number of comparisons; with {seeds} seeds the Wilcoxon test cannot "
        f"give less than {least:.3g}.{few}"
    )


def table_rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """A row a run, without its curve."""
    return [{k: v for k, v in dataclasses.asdict(each).items() if k != "curve"} for each in outcomes]


def document(outcomes: Sequence[Outcome], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything as plain values for JSON."""
    return {
        "settings": dict(settings),
        "runs": [dataclasses.asdict(each) | {"curve": list(each.curve)} for each in outcomes],
        "summary": summary(outcomes),
        "tests": paired_tests(outcomes),
    }


def _by_strategy(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        found.setdefault(each.strategy, []).append(each)
    return found


def _spread(mean: float, deviation: float | None) -> str:
    return f"{mean:.2%}" if deviation is None else f"{mean:.2%} ± {100 * deviation:.2f}"
