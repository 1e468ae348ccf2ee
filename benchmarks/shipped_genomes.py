"""Chooses shipped genomes from a search on MNIST: its best, under the names given.

    python benchmarks/shipped_genomes.py --run=docs/mnist-search --names evoA evoB --data_dir=DIR
    python benchmarks/shipped_genomes.py --run=docs/mnist-search-b3 --names model_a --data_dir=DIR

Of the candidates whose networks have at most 0.25 M parameters at D=24, the best by the search's fitness are trained
again, each with fresh seeds and as in the search; the best of *those* trainings are written. What was trained is
kept in `--run`, so the same command resumes.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
import statistics

from jaxevo.config import NetworkConfig, SearchConfig
from jaxevo.datasets import load_search_data
from jaxevo.datasets.splits import training_subset
from jaxevo.machine import device_name
from jaxevo.run import records
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.records import Candidate, Run
from jaxevo.run.workdir import Workdir, read_json, write_json, write_text
from jaxevo.search_space import complexity
from jaxevo.search_space.genome import dumps
from jaxevo.training.engines import Problem

MAX_PARAMETERS = 250_000
PAPER_SIZE = NetworkConfig()  # D=24
IMAGE_SHAPE, CLASSES = (28, 28, 1), 10
_FRESH = 3  # what the seeds are for; a search has 0 to 2


def parameters(candidate: Candidate) -> int:
    """At D=24."""
    return complexity.measure(candidate.individual.genome, PAPER_SIZE, IMAGE_SHAPE, CLASSES).parameters


def best_candidates(run: Run, number: int) -> list[Candidate]:
    """The best that are small enough, no two of them isomorphic."""
    trained = [c for c in run.candidates.values() if c.individual.fitness is not None and c.reused is None]
    small = [c for c in trained if parameters(c) <= MAX_PARAMETERS]
    ranked = sorted(small, key=lambda c: (-(c.individual.fitness or 0), c.individual.id))
    return list({c.individual.genome.canonical_key(): c for c in reversed(ranked)}.values())[::-1][:number]


def train_again(
    run: Run, candidates: list[Candidate], seeds: int, data_dir: str, known: pathlib.Path
) -> dict[int, list[float]]:
    """Accuracies by the candidates' ids."""
    config: SearchConfig = run.config
    fraction, side, resize = config.data.validation_fraction, config.data.image_size, config.data.resize
    data = load_search_data(
        config.data.dataset, data_dir, validation_fraction=fraction, seed=config.seed, image_size=side, resize=resize
    )
    problem = Problem(config.network, data.image_shape, data.num_classes)
    evaluator = Evaluator(config, problem, data.train, data.validation)
    subset = training_subset(data.train.labels, config.data.train_examples, config.seed)
    done = {int(key): list(values) for key, values in (read_json(known) if known.exists() else {}).items()}
    for seed in range(seeds):
        for candidate in candidates:
            number = candidate.individual.id
            if len(done.setdefault(number, [])) <= seed:
                found = evaluator.evaluate(candidate.individual.genome, (config.seed, _FRESH, number, seed), subset)
                done[number].append(found.accuracy or 0.0)
                write_json(known, {str(key): values for key, values in done.items()})
                print(f"individual {number}: {done[number]}", flush=True)
    return {c.individual.id: done[c.individual.id][:seeds] for c in candidates}


def main() -> None:
    """Flags in, a file for each name out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path, required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--names", nargs="+", required=True)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("jaxevo/genomes"))
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    run = records.load(Workdir(args.run))
    candidates = best_candidates(run, args.candidates)
    fresh = train_again(run, candidates, args.seeds, args.data_dir, args.run / "fresh.json")
    ranked = sorted(candidates, key=lambda c: (-statistics.fmean(fresh[c.individual.id]), c.individual.id))
    for name, candidate in zip(args.names, ranked, strict=False):
        individual = candidate.individual
        metadata = {
            "search_fitness": individual.fitness,
            "fresh_fitness": fresh[individual.id],
            "parameters": {"channels=24": parameters(candidate)},
            "provenance": {
                "history": str(args.run),
                "candidates": len(run.candidates),
                "individual": individual.id,
                "generation": individual.generation,
                "chosen by": f"fresh_fitness, of {len(candidates)} within {MAX_PARAMETERS:,} parameters at D=24",
                "machine": device_name(),
                "date": str(datetime.date.today()),
            },
        }
        write_text(args.output / f"{name}.json", dumps(individual.genome, metadata))
        print(name, metadata)


if __name__ == "__main__":
    main()
