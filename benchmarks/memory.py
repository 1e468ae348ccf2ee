"""Resident memory, memory maps and seconds a candidate over many candidates.

    python benchmarks/memory.py --candidates=200 --engine=universal

Trains random genomes on the embedded digits, one epoch each, and prints a row now and then. At
about 65,000 memory maps a process dies, so what grows ends a long search.
"""

from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np
from measuring import write
from rich.console import Console
from rich.table import Table

from jaxevo import config as configs
from jaxevo.config import SearchConfig
from jaxevo.datasets import load_search_data
from jaxevo.networks.builder import NetworkBuilder
from jaxevo.run.evaluator import Evaluator
from jaxevo.search_space.genome import Genome
from jaxevo.search_space.variation import random_cell
from jaxevo.training.data import TrainingData


def measure() -> tuple[float, int]:
    """Resident MiB and the number of memory maps."""
    status = pathlib.Path("/proc/self/status").read_text()
    resident = next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
    return int(resident) / 1024, len(pathlib.Path("/proc/self/maps").read_text().splitlines())


def run(candidates: int, engine: str) -> list[dict]:
    """Memory after each candidate."""
    settings = {"channels": 8, "epochs": 1, "learning_rate": 0.01, "engine": engine}
    config: SearchConfig = configs.replace(SearchConfig(), settings)
    data = load_search_data("digits")
    builder = NetworkBuilder(config.network, data.image_shape, data.num_classes)
    evaluator = Evaluator(config, builder, TrainingData.of(data.train), validation=data.validation)
    rng = np.random.default_rng(0)
    rows = []
    for number in range(candidates):
        normal, reduction = (random_cell(rng, int(rng.integers(2, 7))) for _ in range(2))
        genome = Genome(normal, reduction)
        begin = time.perf_counter()
        evaluator.evaluate(genome, (number,))
        resident, maps = measure()
        rows.append(
            {
                "candidate": number,
                "seconds": time.perf_counter() - begin,
                "resident": resident,
                "maps": maps,
            }
        )
    return rows


def main() -> None:
    """Prints a table and writes JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--candidates", type=int, default=200)
    parser.add_argument(
        "--engine", choices=["native", "universal", "compiled"], default="universal"
    )
    parser.add_argument("--output", type=pathlib.Path, help="JSON file")
    args = parser.parse_args()
    rows = run(args.candidates, args.engine)
    table = Table("candidates", "resident MiB", "maps", "mean seconds of the last ten")
    for row in (rows[n] for n in range(9, len(rows), max(1, len(rows) // 10))):
        last = [other["seconds"] for other in rows[row["candidate"] - 9 : row["candidate"] + 1]]
        table.add_row(
            f"{row['candidate'] + 1}",
            f"{row['resident']:.0f}",
            f"{row['maps']}",
            f"{np.mean(last):.2f}",
        )
    first, last = rows[9], rows[-1]
    growth = {part: last[part] / first[part] - 1 for part in ("resident", "maps")}
    said = ", ".join(f"{part} {value:+.1%}" for part, value in growth.items())
    Console().print(args.engine, table, f"growth after the first ten: {said}")
    write(args.output, vars(args), rows=rows)


if __name__ == "__main__":
    main()
