"""A search on 1 to 1,000 workers, in virtual time: python benchmarks/scaleout.py

The strategy, the first phase of a run and its history on the disk are the real ones; only the
workers are simulated (`simulated_workers.py`). Trainings last as long as those of the histories in
`docs/`, each in units of its history's mean. Three questions, a table each:

- utilisation: which part of the time that workers are there do they train, with L candidates under
  way, or a whole generation at a time;
- quality: what a search of as many candidates finds with each L;
- driver: how many candidates a second the process can hand out and record, and what takes its time.

The first two depend on the seed alone, the third on the machine.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import pathlib
from typing import Any

import numpy as np
from driver_cost import PARTS, driver
from measuring import write
from scipy import stats
from simulated_search import BARRIER, Landscape, explore, settings_of
from simulated_workers import Conditions, SimulatedWorkers

from jaxevo.config import replace
from jaxevo.strategies.registry import make_strategy

DOCS = pathlib.Path(__file__).parent.parent / "docs"
ALIKE, LAYOUTS = "mnist-search*", "mnist-front"  # all networks of one layout; a layout each
# An attempt of twenty; a node of four workers after fifty trainings, for the time of five.
FAULTS: dict[str, Any] = {"dying_share": 0.05, "node_life": 50.0, "node_absence": 5.0}
CONDITIONS = (
    Conditions("as measured", ALIKE, most_workers=1000),
    Conditions("as measured, isomorphic genomes trained again", ALIKE, reuse=False),
    Conditions("1 % take five times", ALIKE, slow_share=0.01),
    Conditions("5 % die, nodes are lost", ALIKE, most_workers=1000, **FAULTS),
    Conditions("as measured, layouts are genes", LAYOUTS),
)
WORKERS = (1, 2, 4, 10, 32, 100, 1000)
PER_WORKER = (1, 2, 3)  # L
DRIVER_LAGS = (64, 2000)


def measured_durations(pattern: str) -> np.ndarray:
    """The durations of the trainings of several searches, in units of each search's mean."""
    durations = []
    for path in sorted(DOCS.glob(f"{pattern}/history.jsonl")):
        lines = [json.loads(text) for text in path.read_text().splitlines()]
        seconds = [sum(line["seconds"].values()) for line in lines if line["kind"] == "individual"]
        trained = np.array([each for each in seconds if each > 0])  # the others are isomorphic
        durations.append(trained / trained.mean())
    return np.concatenate(durations)


def utilisation(
    workers: int, lag: int, conditions: Conditions, *, trainings: int, seed: int
) -> dict[str, Any]:
    """How busy workers are in a search of so many trainings."""
    simulated = SimulatedWorkers(
        workers,
        measured_durations(conditions.histories),
        conditions,
        fitness=Landscape(seed).fitness,
        seed=seed,
    )
    settings = {"max_trainings": trainings, "reuse_fitness": conditions.reuse}
    config = replace(settings_of("rea", seed, lag), settings)
    candidates = explore(config, simulated.evaluate).ledger.candidates.values()
    history = json.dumps([each.to_dict() for each in candidates])
    return {
        "conditions": conditions.name,
        "workers": workers,
        "lag": lag,
        "trainings": trainings,
        "isomorphic": sum(each.reused is not None for each in candidates) / len(candidates),
        "history": hashlib.sha256(history.encode()).hexdigest(),  # the same for any `workers`
        "failures": sum(each.failure is not None for each in candidates),
        "makespan": simulated.now,
        "utilisation": simulated.busy / simulated.available,
        "lost": simulated.lost / simulated.busy,
    }


def tabulate_utilisation(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A table for each of the conditions, with a row for a number of workers."""
    found = []
    for conditions in CONDITIONS:
        durations = measured_durations(conditions.histories)
        print(
            f"\n{conditions.name} (standard deviation {durations.std():.2f}, longest "
            f"{durations.max():.1f} means)\n\n| workers | trainings | F=10 at a time "
            f"| {' | '.join(f'L={each}W' for each in PER_WORKER)} | isomorphic | lost |\n"
            + "|---" * (5 + len(PER_WORKER))
            + "|"
        )
        for workers in (each for each in options.workers if each <= conditions.most_workers):
            trainings = max(options.trainings, 10 * workers)
            rows = [
                utilisation(workers, lag, conditions, trainings=trainings, seed=options.seed)
                for lag in (BARRIER, *(each * workers for each in PER_WORKER))
            ]
            shares = " | ".join(f"{row['utilisation']:.2f}" for row in rows)
            print(
                f"| {workers:,} | {trainings:,} | {shares} | {rows[2]['isomorphic']:.0%} "
                f"| {rows[2]['lost']:.0%} |",
                flush=True,
            )
            found += rows
    return found


def quality(name: str, lag: int, seed: int, candidates: int) -> float:
    """The true value of what a search of so many candidates holds for the best."""
    landscape = Landscape(seed)
    strategy = make_strategy(settings_of(name, seed, lag))
    trained: dict[str, float] = {}  # fitness by canonical key
    for _ in range(candidates):
        candidate = strategy.ask()[0]
        key = candidate.genome.canonical_key()
        if key not in trained:
            trained[key] = landscape.fitness(candidate.genome, (seed, candidate.id))
        strategy.tell(dataclasses.replace(candidate, fitness=trained[key]))
    assert strategy.best is not None
    return landscape.truth(strategy.best.genome)


def half_width(values: np.ndarray) -> float:
    """Of the 95 % interval of a mean."""
    return float(stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)


def tabulate_quality(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for a strategy and a number of candidates: means, and what they lose to the first L."""
    columns = "".join(f"| L={lag} " for lag in options.lags)
    print(
        f"\nMean true value of the best of {options.repetitions} searches; in brackets the "
        "difference to the same searches with the first L, with its 95 % interval\n\n"
        f"| candidates | strategy {columns}|\n{'|---' * (2 + len(options.lags))}|"
    )
    found = []
    for candidates in options.candidates:
        for name in options.strategies:
            cells, first = [], None
            # What is drawn at random does not depend on what is known.
            for lag in options.lags[: 1 if name == "random" else None]:
                seeds = range(options.seed, options.seed + options.repetitions)
                values = np.array([quality(name, lag, seed, candidates) for seed in seeds])
                first = values if first is None else first
                less, width = float((values - first).mean()), half_width(values - first)
                cells.append(f"{values.mean():.3f} ({less:+.3f} +- {width:.3f})")
                found.append(
                    {"candidates": candidates, "strategy": name, "lag": lag}
                    | {"mean": float(values.mean()), "half_width": half_width(values)}
                    | {"difference": less, "difference_half_width": width}
                )
            cells += ["as with the first"] * (len(options.lags) - len(cells))
            print(f"| {candidates} | {name} | {' | '.join(cells)} |", flush=True)
    return found


def tabulate_driver(options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each lag: the ceiling, and milliseconds a candidate by what they go into."""
    names = (*PARTS, "rest")
    print(
        "\nCandidates a second of processor time (of the last thousand, by the clock), and "
        "milliseconds of processor time a candidate\n\n| L | candidates | a second | "
        f"{' | '.join(names)} |\n{'|---' * (3 + len(names))}|"
    )
    driver(1, 20, options.seed)  # the first checkpoint imports orbax
    found = []
    for lag in DRIVER_LAGS:
        row = driver(lag, options.driver_candidates, options.seed)
        cells = " | ".join(f"{row['milliseconds'][name]:.2f}" for name in names)
        print(
            f"| {lag:,} | {row['candidates']:,} | {row['per_second']:.0f} "
            f"({row['per_second_of_the_last']:.0f}, {row['per_second_by_the_clock']:.0f}) "
            f"| {cells} |",
            flush=True,
        )
        found.append(row)
    return found


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="A search on many workers, in virtual time.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--strategies", nargs="*", default=["rea", "aging", "random"])
    parser.add_argument(
        "--lags", nargs="*", type=int, default=[1, 4, 10, 20, 50, 64, 100, 200], help="of quality"
    )
    parser.add_argument("--candidates", nargs="*", type=int, default=[400, 2000], help="of quality")
    parser.add_argument("--repetitions", type=int, default=50, help="searches for each quality")
    parser.add_argument("--quick", action="store_true", help="all tables in seconds, to try it")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    options.workers, options.trainings, options.driver_candidates = WORKERS, 2000, 10_000
    if options.quick:
        options.workers, options.trainings, options.driver_candidates = (2, 6), 60, 100
        options.candidates, options.repetitions = [40], 2
    return options


TABLES = {
    "utilisation": tabulate_utilisation,
    "quality": tabulate_quality,
    "driver": tabulate_driver,
}


def main() -> None:
    """The tables that are asked for."""
    options = parse()
    found = {name: TABLES[name](options) for name in options.tables}
    write(options.output, vars(options), **found)


if __name__ == "__main__":
    main()
