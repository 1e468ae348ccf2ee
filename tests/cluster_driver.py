"""A search on a cluster by the table in place of training, as a process that may be killed.

The second argument is a JSON object: `cluster`, an address; `attempts`, a folder; `candidates`,
a plan of faults (faults.py); `seconds` that a candidate takes; `settings` of the search; and
`limits` of a candidate. What nodes do is printed, and the winner in the last line.

    python tests/cluster_driver.py FOLDER '{"cluster": "127.0.0.1:6379", "attempts": "/tmp/a"}'
"""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import faults
from builders import SMALL, explore_and_choose

from jaxevo.config import WorkerConfig, replace
from jaxevo.run.dispatch import Dispatcher
from jaxevo.run.open_pool import open_pool
from jaxevo.run.trainings import Trainings
from jaxevo.stopwatch import Stopwatch

# Offspring do not wait for each other, so that several nodes have work.
CONFIG = replace(SMALL, {"lag": 8})


class Idle:
    """Stands for an evaluator where others evaluate."""

    def __init__(self) -> None:
        self.stopwatch = Stopwatch()


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    folder, plan = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
    config = replace(CONFIG, plan.get("settings", {}))
    limits = replace(WorkerConfig(), {"cluster": plan["cluster"]} | plan.get("limits", {}))
    candidates = {int(k): tuple(drawn) for k, drawn in plan.get("candidates", {}).items()}
    attempts = pathlib.Path(plan["attempts"])
    setup = faults.TableSetup(candidates, attempts, seconds=plan.get("seconds", 0.0))
    evaluator: Any = Idle()
    with open_pool(limits, say) as pool:
        dispatcher = Dispatcher(evaluator, Trainings(pool, setup))
        winner = explore_and_choose(folder / "run", config, evaluate=dispatcher.evaluate_first)
    say(f"winner {winner.id} {winner.fitness}")


if __name__ == "__main__":
    main()
