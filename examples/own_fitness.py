"""Evolves cells by a fitness that needs no training: deep cells, but small networks.

python examples/own_fitness.py
python examples/own_fitness.py --generations=200 --strategy=aging
"""

import argparse

import jaxevo
from jaxevo.config import NetworkConfig
from jaxevo.reports.cell_text import cell_lines
from jaxevo.search_space.complexity import measure

parser = argparse.ArgumentParser()
parser.add_argument("--generations", type=int, default=30)
parser.add_argument("--strategy", default="rea", help="rea, aging, random, aco, ...")
arguments = parser.parse_args()


def parameters(genome: jaxevo.Genome) -> int:
    """Parameters of the paper's network of this genome on MNIST."""
    return measure(genome, NetworkConfig(), (28, 28, 1), num_classes=10).parameters


def fitness(genome: jaxevo.Genome) -> float | None:
    """The depth of both cells, less a point for each 100,000 parameters; None refuses a genome."""
    size = parameters(genome)
    depth = sum(max(cell.depths()) for cell in genome.cells)
    return None if size > 400_000 else depth - size / 100_000


if __name__ == "__main__":
    settings = {"strategy": arguments.strategy, "num_generations": arguments.generations}
    best = jaxevo.evolve(fitness, **settings)
    print(f"fitness {best.fitness:.2f} with {parameters(best.genome):,} parameters")
    print("\n".join(cell_lines(best.genome.normal)))
