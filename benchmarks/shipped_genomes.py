"""Chooses shipped genomes from a search on MNIST: its best, under the names given.

    python benchmarks/shipped_genomes.py --run=docs/mnist-search --names evoA evoB --data_dir=DIR
    python benchmarks/shipped_genomes.py --run=docs/mnist-search-b3 --names model_a --data_dir=DIR

Of the candidates whose networks have at most 0.25 M parameters at D=24, the best by the search's
fitness are trained again, each with fresh seeds and as in the search; the best of *those* trainings
are written. What was trained is kept in `--run`, so the same command resumes.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
import statistics

from jaxevo.config import NetworkConfig, SearchConfig
from jaxevo.datasets import load_search_data
from jaxevo.files import read_json, write_json, write_text
from jaxevo.machine import device_name
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluator
from jaxevo.run.reader import Run, load_run
from jaxevo.run.records import Candidate
from jaxevo.run.workdir import Workdir
from jaxevo.search_space import complexity
from jaxevo.search_space.genome_files import dumps
from jaxevo.seeds import Purpose
from jaxevo.training.data import TrainingData

MAX_PARAMETERS = 250_000
PAPER_SIZE = NetworkConfig()  # D=24
IMAGE_SHAPE, CLASSES = (28, 28, 1), 10
_FRESH = 100  # what the seeds are for
assert _FRESH not in set(Purpose), "a search's trainings have other seeds"


def parameters(candidate: Candidate) -> int:
    """At D=24."""
    return complexity.measure(
        candidate.individual.genome, PAPER_SIZE, IMAGE_SHAPE, num_classes=CLASSES
    ).parameters


def best_candidates(run: Run, number: int) -> list[Candidate]:
    """The best that are small enough, no two of them isomorphic."""
    trained = [
        c for c in run.candidates.values() if c.individual.fitness is not None and c.reused is None
    ]
    small = [c for c in trained if parameters(c) <= MAX_PARAMETERS]
    ranked = sorted(small, key=lambda c: (-(c.individual.fitness or 0), c.individual.id))
    return list({c.individual.genome.canonical_key(): c for c in reversed(ranked)}.values())[::-1][
        :number
    ]


def train_again(
    run: Run, candidates: list[Candidate], seeds: int, data_dir: str, known: pathlib.Path
) -> dict[int, list[float]]:
    """Accuracies by the candidates' ids."""
    config: SearchConfig = run.config
    data = load_search_data(
        config.data.dataset,
        data_dir,
        validation_fraction=config.data.validation_fraction,
        seed=config.seed,
        image_size=config.data.image_size,
        resize=config.data.resize,
    )
    builder = NetworkBuilder(config.network, data.image_shape, data.num_classes)
    training = TrainingData.drawn(data.train, config.data.train_examples, config.seed)
    evaluator = Evaluator(config, builder, training, validation=data.validation)
    done = {
        int(key): list(values)
        for key, values in (read_json(known) if known.exists() else {}).items()
    }
    for seed in range(seeds):
        for candidate in candidates:
            number = candidate.individual.id
            if len(done.setdefault(number, [])) <= seed:
                fresh = (config.seed, _FRESH, number, seed)
                found = evaluator.evaluate(candidate.individual.genome, fresh)
                done[number].append(found.accuracy or 0.0)
                write_json(known, {str(key): values for key, values in done.items()})
                print(f"individual {number}: {done[number]}", flush=True)
    return {c.individual.id: done[c.individual.id][:seeds] for c in candidates}


def main() -> None:
    """Flags in, a file for each name out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", type=pathlib.Path, required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--names", nargs="+", required=True)
    parser.add_argument(
        "--output", type=pathlib.Path, default=pathlib.Path("jaxevo/search_space/genomes")
    )
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    run = load_run(Workdir(args.run))
    candidates = best_candidates(run, args.candidates)
    fresh = train_again(run, candidates, args.seeds, args.data_dir, args.run / "fresh.json")
    ranked = sorted(
        candidates, key=lambda c: (-statistics.fmean(fresh[c.individual.id]), c.individual.id)
    )
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
                "chosen by": (
                    f"fresh_fitness, of {len(candidates)} within {MAX_PARAMETERS:,} "
                    f"parameters at D=24"
                ),
                "machine": device_name(),
                "date": str(datetime.date.today()),
            },
        }
        write_text(args.output / f"{name}.json", dumps(individual.genome, metadata))
        print(name, metadata)


if __name__ == "__main__":
    main()
