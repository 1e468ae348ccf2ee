"""The cost of a candidate in the process that hands candidates out, for `scaleout.py`.

Results are there at once, so this process alone decides how many candidates a second there are.
Processor time is what is counted: other programs that run on the machine alter it little.
"""

from __future__ import annotations

import time
from typing import Any

from simulated_search import Landscape, explore, settings_of

from jaxevo.config import SearchConfig, replace
from jaxevo.run.evaluator import Evaluation
from jaxevo.run.explore import Explorer
from jaxevo.run.records import Candidate
from jaxevo.run.reporter import Silent
from jaxevo.search_space.complexity import Complexity, measure
from jaxevo.search_space.genome import Genome
from jaxevo.stopwatch import Stopwatch
from jaxevo.strategies.base import Strategy
from jaxevo.training.checkpoints import Checkpoints

# Drawing and selecting; sizes of networks; the trials under way and the keys of isomorphic genomes.
PARTS = ("strategy", "sizes", "trials", "history", "checkpoint")


class Clocked(Silent):
    """Notes the processor time at each candidate."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def candidate(self, candidate: Candidate, strategy: Strategy) -> None:
        """Notes the time."""
        self.times.append(time.process_time())


class Measured(Explorer):
    """Has its stopwatch told what its parts take."""

    def _charge(self, owner: object, method: str, part: str) -> None:
        called = getattr(owner, method)

        def charged(*arguments: Any) -> Any:
            with self.stopwatch.part(part):
                return called(*arguments)

        setattr(owner, method, charged)

    def _resume(self) -> Strategy:
        """The strategy, at whose beginning all is arranged."""
        self._charge(self, "complexity", "sizes")
        strategy = super()._resume()
        self._charge(strategy, "ask", "strategy")
        self._charge(strategy, "tell", "strategy")
        self._charge(self, "_trials", "trials")
        self._charge(self.ledger, "add_candidate", "history")
        self._charge(self, "evaluate", "evaluate")
        return strategy


def mnist_sizes(genome: Genome) -> Complexity:
    """Sizes of a network for MNIST's images."""
    return measure(genome, SearchConfig().network, (28, 28, 1), num_classes=10)


def driver(lag: int, candidates: int, seed: int) -> dict[str, Any]:
    """What the process that hands out candidates takes for them, if results are there at once."""
    landscape = Landscape(seed)
    stopwatch, clocked = Stopwatch(time.process_time), Clocked()
    config = settings_of("rea", seed, lag)
    evolution = config.evolution
    generations = (candidates - evolution.population_size) // evolution.num_offspring
    begin = time.perf_counter()
    explore(
        replace(config, {"num_generations": generations, "stagnation_avoidance": False}),
        lambda trials: Evaluation(landscape.fitness(trials[0].genome, trials[0].seed)),
        Measured,
        checkpoints=Checkpoints,
        complexity=mnist_sizes,
        reporter=clocked,
        stopwatch=stopwatch,
    )
    clock, total = time.perf_counter() - begin, stopwatch.total()
    # What the fitness takes is the benchmark's own.
    own = stopwatch.seconds.pop("evaluate")
    number = len(clocked.times)
    parts = {part: 1000 * stopwatch.seconds[part] / number for part in PARTS}
    last = clocked.times[-min(1000, number) :]
    return {
        "lag": lag,
        "candidates": number,
        "per_second": number / (total - own),
        "per_second_by_the_clock": number / (clock - own),
        "per_second_of_the_last": (len(last) - 1) / (last[-1] - last[0]),
        "milliseconds": parts | {"rest": 1000 * (total - own) / number - sum(parts.values())},
    }
