"""Comparison of strategies on the same problem: tables of their runs, and tests of chance.

A budget is a number of trainings. Runs with the same seed share the split of the images, so
strategies are compared seed by seed. JAX is not imported.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from jaxevo.errors import InputError
from jaxevo.reports.table import Table
from jaxevo.run.reader import Run

MEASURES = {
    "validation": "best validation accuracy in the search",
    "test": "test accuracy of the winner",
}


@dataclasses.dataclass(frozen=True)
class FinishedRun:
    """The outcome of one finished run."""

    strategy: str
    seed: int
    validation: float  # the best validation accuracy of the search, whatever it selected by
    test: float
    parameters: int
    trainings: int  # of candidates; reused ones are not among them
    candidates: int
    generations: int  # begun, the first included
    winner: str  # canonical key of its genome
    curve: tuple[float, ...]  # the same after each training; 0 before the first success
    epochs: int  # of all these trainings, some of which a race ends early


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that came to no result."""

    strategy: str
    seed: int
    reason: str


def outcome(strategy: str, run: Run) -> FinishedRun:
    """Makes the outcome of a finished run. Raises `InputError` for one without a test accuracy."""
    result = run.result
    if result is None or result.test_accuracy is None:
        raise InputError(
            f"{run.path} has no test accuracy to compare: let it end, on data with test images"
        )
    best, epochs = 0.0, 0
    curve = []
    for candidate in run.candidates.values():
        best = max(best, candidate.accuracy or 0.0)
        if candidate.reused is None:
            curve.append(best)
            epochs += candidate.epochs(run.config.training.epochs)
    individuals = [candidate.individual for candidate in run.candidates.values()]
    return FinishedRun(
        strategy=strategy,
        seed=run.config.seed,
        validation=best,
        test=result.test_accuracy,
        parameters=result.parameters,
        trainings=len(curve),
        candidates=len(individuals),
        generations=1 + max(individual.generation for individual in individuals),
        winner=run.candidates[result.id].individual.genome.canonical_key(),
        curve=tuple(curve),
        epochs=epochs,
    )


def curves(outcomes: Sequence[FinishedRun]) -> dict[str, np.ndarray]:
    """Strategy -> best validation accuracy `[seeds, trainings]`.

    A run that came to its end earlier keeps its best.
    """
    longest = max(len(each.curve) for each in outcomes)
    return {
        strategy: np.array(
            [[*each.curve, *[each.validation] * (longest - len(each.curve))] for each in runs]
        )
        for strategy, runs in _by_strategy(outcomes).items()
    }


def summary(outcomes: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """A row a strategy: means over the seeds and standard deviations.

    One seed has no standard deviation.
    """
    rows = []
    for strategy, runs in _by_strategy(outcomes).items():
        row: dict[str, Any] = {"strategy": strategy, "seeds": len(runs)}
        for name in MEASURES:
            values = [getattr(each, name) for each in runs]
            row |= {name: float(np.mean(values))}
            row |= {f"{name}_sd": float(np.std(values, ddof=1)) if len(values) > 1 else None}
        row |= {
            name: float(np.mean([getattr(r, name) for r in runs]))
            for name in ("parameters", "trainings", "epochs")
        }
        row["duplicates"] = float(np.mean([1 - each.trainings / each.candidates for each in runs]))
        rows.append(row)
    return rows


def paired_tests(outcomes: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """The first strategy against each other one, seed by seed.

    Rows have the mean difference and two-sided p-values.

    With one seed there is no test; a Wilcoxon test of n seeds cannot give less than 2 / 2^n.
    """
    from scipy.stats import ttest_1samp, wilcoxon

    (first, mine), *others = _by_strategy(outcomes).items()
    rows = []
    for other, theirs in others:
        for name in MEASURES:
            of_mine, of_theirs = (
                {each.seed: getattr(each, name) for each in runs} for runs in (mine, theirs)
            )
            seeds = sorted(of_mine.keys() & of_theirs.keys())
            if not seeds:  # as runs failed
                continue
            # Shares of the same images that differ alike would differ in their last bits.
            difference = np.round([of_mine[seed] - of_theirs[seed] for seed in seeds], 12)
            row = {"strategies": f"{first} - {other}", "measure": name, "seeds": len(seeds)}
            row |= {"difference": float(difference.mean()), "wilcoxon_p": None, "t_p": None}
            if len(seeds) > 1 and difference.any():
                _, row["wilcoxon_p"] = map(float, wilcoxon(difference))
                if difference.std() > 1e-12:  # else t is infinite
                    _, row["t_p"] = map(float, ttest_1samp(difference, 0.0))
            rows.append(row)
    return rows


def alike(outcomes: Sequence[FinishedRun]) -> list[list[str]]:
    """Groups of strategies that had the same curve and the same winner in every seed."""
    groups: dict[Any, list[str]] = {}
    for strategy, runs in _by_strategy(outcomes).items():
        found = frozenset((each.seed, each.curve, each.winner) for each in runs)
        groups.setdefault(found, []).append(strategy)
    return [names for names in groups.values() if len(names) > 1]


def markdown(
    outcomes: Sequence[FinishedRun], caption: str, failures: Sequence[Failure] = ()
) -> str:
    """Summary, curves and tests as Markdown, and what they cannot show."""
    parts = [[caption], *(table.markdown() for table in tables(outcomes, failures))]
    parts += [[sentence] for sentence in remarks(outcomes, failures)]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def tables(outcomes: Sequence[FinishedRun], failures: Sequence[Failure] = ()) -> list[Table]:
    """Summary, curves and tests; no tests without a pair of strategies."""
    found = [_summary_table(outcomes, failures), _curve_table(outcomes), _test_table(outcomes)]
    return [table for table in found if table.rows]


def _summary_table(outcomes: Sequence[FinishedRun], failures: Sequence[Failure]) -> Table:
    names = (
        "strategy",
        "seeds",
        "best validation",
        "test",
        "parameters",
        "trainings",
        "epochs",
        "duplicates",
    )
    failed = collections.Counter(failure.strategy for failure in failures)
    rows = []
    for row in summary(outcomes):
        accuracies = (_spread(row[name], row[f"{name}_sd"]) for name in MEASURES)
        seeds = f"{row['seeds']}{_failed(failed.pop(row['strategy'], 0))}"
        sizes = f"{row['parameters']:,.0f}", f"{row['trainings']:.1f}", f"{row['epochs']:.0f}"
        rows.append((row["strategy"], seeds, *accuracies, *sizes, f"{row['duplicates']:.0%}"))
    rows += [(strategy, f"0{_failed(number)}", *["-"] * 6) for strategy, number in failed.items()]
    return Table("Strategies", names, rows)


def described(outcomes: Sequence[FinishedRun], measure: str) -> str:
    """The means of one of `MEASURES` in a sentence, for those who do not see a picture of them."""
    means = (f"{row['strategy']} {row[measure]:.2%}" for row in summary(outcomes))
    return f"Mean {MEASURES[measure]}: {', '.join(means)}."


def _failed(number: int) -> str:
    return f", {number} failed" if number else ""


def _curve_table(outcomes: Sequence[FinishedRun]) -> Table:
    """Mean and spread after a sixth, a third, two thirds and all of the trainings."""
    found = curves(outcomes)
    longest = next(iter(found.values())).shape[1]
    trainings = sorted({max(1, round(longest * part)) for part in (1 / 6, 1 / 3, 2 / 3, 1)})
    rows = []
    for strategy, values in found.items():
        at = values[:, [number - 1 for number in trainings]]
        deviations = at.std(0, ddof=1) if len(at) > 1 else [None] * len(trainings)
        rows.append((strategy, *map(_spread, at.mean(0), deviations)))
    columns = ("best validation so far after trainings", *map(str, trainings))
    return Table("Best validation accuracy so far, by trainings", columns, rows)


def _test_table(outcomes: Sequence[FinishedRun]) -> Table:
    rows = []
    for row in paired_tests(outcomes):
        values = (
            "-" if row[name] is None else f"{row[name]:.3f}" for name in ("wilcoxon_p", "t_p")
        )
        rows.append(
            (row["strategies"], row["measure"], f"{100 * row['difference']:+.2f} points", *values)
        )
    columns = ("seed by seed", "of", "mean difference", "p (Wilcoxon)", "p (paired t)")
    return Table("Differences between strategies", columns, rows)


def remarks(outcomes: Sequence[FinishedRun], failures: Sequence[Failure]) -> Iterator[str]:
    """Remarks on facts that the tables do not show."""
    if tests := paired_tests(outcomes):
        yield _how_much_it_says(max(row["seeds"] for row in tests))
    for names in alike(outcomes):
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        yield f"{listed} found the same in every seed: this budget cannot tell them apart."
    for strategy, runs in _by_strategy(outcomes).items():
        if all(each.generations == 1 for each in runs):
            yield (
                f"{strategy} never got beyond its first generation: within this budget it "
                "selected nothing."
            )
    for failure in failures:
        yield (
            f"{failure.strategy}, seed {failure.seed}, is left out, as it failed: {failure.reason}."
        )


def _how_much_it_says(seeds: int) -> str:
    if seeds < 2:
        return "With one seed nothing can be said about chance."
    least = 2 / 2**seeds
    few = " So few seeds can hardly show anything but a large difference." if least > 0.05 else ""
    return (
        "Two-sided p-values of chance between seeds, not of other test images, and not corrected "
        f"for the number of comparisons; with {seeds} seeds the Wilcoxon test cannot give less "
        f"than {least:.3g}.{few}"
    )


def table_rows(outcomes: Sequence[FinishedRun]) -> list[dict[str, Any]]:
    """A row a run, without its curve and its winner's genome."""
    return [
        {k: v for k, v in dataclasses.asdict(each).items() if k not in ("curve", "winner")}
        for each in outcomes
    ]


def document(
    outcomes: Sequence[FinishedRun],
    settings: Mapping[str, Mapping[str, Any]],
    failures: Sequence[Failure] = (),
) -> dict[str, Any]:
    """Everything as plain values for JSON; `settings`: those of each strategy."""
    return {
        "settings": dict(settings),
        "runs": [dataclasses.asdict(each) | {"curve": list(each.curve)} for each in outcomes],
        "summary": summary(outcomes),
        "tests": paired_tests(outcomes),
        "alike": alike(outcomes),
        "failures": [dataclasses.asdict(failure) for failure in failures],
    }


def _by_strategy(outcomes: Sequence[FinishedRun]) -> dict[str, list[FinishedRun]]:
    found: dict[str, list[FinishedRun]] = {}
    for each in outcomes:
        found.setdefault(each.strategy, []).append(each)
    return found


def _spread(mean: float, deviation: float | None) -> str:
    return f"{mean:.2%}" if deviation is None else f"{mean:.2%} ± {100 * deviation:.2f}"
